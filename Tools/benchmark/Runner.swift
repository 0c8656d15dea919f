import Measuring
import ToolSupport

/// Measures groups round by round, each round beginning with another subject.
struct Runner {
  /// A bar near 1 is judged by this many rounds, unless fewer than the default were asked for.
  static let pairedRounds = 11
  static let roundsByDefault = 5

  let rounds: Int
  let console: Console

  var pairs: Int {
    rounds < Self.roundsByDefault ? rounds : max(rounds, Self.pairedRounds)
  }

  func run(_ group: Group, into samples: inout Samples) throws {
    console.note("bench: \(group.workload.rawValue) \(group.title)")
    for round in 0..<pairs {
      let taking = group.subjects.filter { round < rounds || $0.isPaired }
      for place in taking.indices {
        let subject = taking[(place + round) % taking.count]
        for (metric, value) in try subject.measure() {
          samples.add(
            value, round: round, to: Samples.Key(group.workload, subject.engine, metric))
        }
      }
    }
  }
}
