import CMachine
import Foundation
import Simulation

/// Runs the seeds of an order, some at the same time, and prints what came of them.
struct Runner {
  private let order: Order

  init(_ order: Order) { self.order = order }

  /// - Returns: whether nothing was violated.
  func run() -> Bool {
    let start = machine_real_seconds()
    var total = World.Counts()
    var violationCount = 0
    var running: [SeedRun] = []
    var next = order.firstSeed
    let end = order.firstSeed + order.seedCount
    while next < end || !running.isEmpty {
      while next < end, running.count < order.workerCount {
        running.append(SeedRun(next, order, taking: order.taking, log: order.log))
        next += 1
      }
      let outcome = running.removeFirst().outcome()
      total.add(outcome.counts)
      violationCount += outcome.violations.count
      if order.seedCount == 1 { print(line(outcome)) }
      if !outcome.violations.isEmpty { tell(outcome) }
    }
    let seconds = machine_real_seconds() - start
    print(
      "\(total.mutations) mutations, \(total.requests) requests, \(total.commits) commits, "
        + "\(total.kills) kills, \(String(format: "%.1f", seconds)) s")
    print(
      "\(order.seedCount) seeds, \(total.steps) steps, \(total.switches) switches, "
        + "\(total.faults) faults, \(violationCount) violations")
    return violationCount == 0
  }

  private func line(_ outcome: Outcome) -> String {
    "seed \(outcome.seed): \(outcome.lineCount) events, "
      + "digest \(String(outcome.digest, radix: 16))"
  }

  /// A failing seed: what was wrong, with how few steps it still is, and how it is repeated.
  private func tell(_ outcome: Outcome) {
    print("seed \(outcome.seed) fails:")
    for violation in outcome.violations.prefix(5) { print("  \(violation)") }
    let command =
      "Tools/simulate --first \(outcome.seed) --seeds 1 --steps \(order.stepCount)"
    print("  repeat: \(command)")
    guard order.shrinks, order.taking == nil else { return }
    let plan = Plan(seed: outcome.seed, stepCount: order.stepCount)
    let checks = Set(outcome.violations.map(\.check))
    let few = Shrinking.fewest(Array(plan.steps.indices)) { taken in
      let again = SeedRun(outcome.seed, order, taking: Set(taken)).outcome()
      return !checks.isDisjoint(with: again.violations.map(\.check))
    }
    print("  \(few.count) steps are enough:")
    for index in few { print("    \(index) \(plan.steps[index])") }
    let numbers = few.map(String.init).joined(separator: ",")
    print("  repeat them: \(command) --taking \(numbers.isEmpty ? "-1" : numbers)")
  }
}
