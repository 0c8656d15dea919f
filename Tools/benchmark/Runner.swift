import Measuring
import ToolSupport

/// Measures groups round by round, each round beginning with another subject.
struct Runner {
  static let roundsByDefault = 5

  let rounds: Int
  let console: Console

  /// A bar near 1 needs more rounds, unless fewer than the default were asked for.
  private func pairs(_ group: Group) -> Int {
    rounds < Self.roundsByDefault ? rounds : max(rounds, group.pairedRounds)
  }

  func run(_ group: Group, into samples: inout Samples) throws {
    console.note("bench: \(group.workload.rawValue) \(group.title)")
    for round in 0..<pairs(group) {
      let taking = group.subjects.filter { round < rounds || $0.isPaired }
      for place in taking.indices {
        let subject = taking[(place + round) % taking.count]
        for reading in try subject.measure() {
          samples.add(
            reading.value, round: round,
            to: Samples.Key(group.workload, reading.engine, reading.metric))
        }
      }
    }
  }
}
