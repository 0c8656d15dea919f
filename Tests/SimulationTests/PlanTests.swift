import Simulation
import Testing

@Suite("The plan of a seed")
struct PlanTests {
  @Test("the same seed has the same steps, and another one others")
  func same() {
    let plan = Plan(seed: 7, stepCount: 200)
    #expect(plan.steps == Plan(seed: 7, stepCount: 200).steps)
    #expect(plan.steps.prefix(50) == Plan(seed: 7, stepCount: 50).steps[...])
    #expect(plan.steps != Plan(seed: 8, stepCount: 200).steps)
  }

  @Test("some seeds leave a kind of step out, none leaves out those that everything needs")
  func swarm() {
    let plans = (0..<200).map { Plan(seed: $0, stepCount: 0) }
    for kind in Step.Kind.allCases {
      let count = plans.count { plan in plan.weights.contains { $0.kind == kind } }
      if [.enqueue, .pass, .signIn].contains(kind) {
        #expect(count == plans.count)
      } else {
        #expect((100..<200).contains(count), "\(kind) is in \(count) of 200")
      }
    }
    #expect(Set(plans.map(\.deviceCount)) == [1, 2, 3])
    #expect(Set(plans.map(\.accountCount)) == [2, 3, 4])
  }

  @Test("shrinking finds the steps that matter")
  func shrinking() {
    var attempts = 0
    let few = Shrinking.fewest(Array(0..<400)) { kept in
      attempts += 1
      return kept.contains(17) && kept.contains(301)
    }
    #expect(few == [17, 301])
    #expect(attempts <= Shrinking.attemptCountMax)
    #expect(Shrinking.fewest([1, 2, 3]) { _ in true }.isEmpty)
    #expect(Shrinking.fewest([1, 2, 3]) { $0.count == 3 } == [1, 2, 3])
  }

  @Test("a log's digest changes with each byte and each line")
  func digest() {
    func digest(_ lines: [String]) -> UInt64 {
      var log = EventLog(isKept: false)
      for line in lines { log.note(line) }
      #expect(log.count == lines.count && log.lines.isEmpty)
      return log.digest
    }
    #expect(digest(["ab", "c"]) == digest(["ab", "c"]))
    #expect(
      Set([digest(["ab", "c"]), digest(["abc"]), digest(["a", "bc"]), digest([])]).count == 4)
  }
}
