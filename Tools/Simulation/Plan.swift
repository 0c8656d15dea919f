import HoldfastTesting

/// What a seed says before anything happens: the size of the world, its kinds of steps, its steps.
package struct Plan: Sendable {
  /// The seed.
  package let seed: UInt64
  /// 1 to 3.
  package let deviceCount: Int
  /// 2 to 4.
  package let accountCount: Int
  /// Whether each device keeps the app's records in its areas.
  package let keepsRecords: [Bool]
  /// Whether the hub, or the way to it, may also lie, not only fail.
  package let mayLie: Bool
  /// The most jobs that run between two steps.
  package let jobCountMax: Int
  /// The kinds that this seed has, and how often.
  package let weights: [(kind: Step.Kind, weight: Int)]
  /// All steps.
  package let steps: [Step]

  /// Makes the plan of a seed.
  package init(seed: UInt64, stepCount: Int) {
    var random = SeededRandom(seed: seed &* 0x2545_F491_4F6C_DD1D)
    self.seed = seed
    deviceCount = random.number(from: 1, through: 3)
    accountCount = random.number(from: 2, through: 4)
    keepsRecords = (0..<deviceCount).map { _ in random.happens(perThousand: 600) }
    mayLie = random.happens(perThousand: 300)
    jobCountMax = random.choice([4, 15, 40, 120])
    let weights = Self.swarm(&random)
    self.weights = weights
    let devices = deviceCount
    steps = (0..<stepCount).map { _ in
      Step(
        kind: random.choice(weights), device: random.number(below: devices),
        a: random.number(below: 10_000), b: random.number(below: 10_000),
        c: random.number(below: 10_000))
    }
  }

  /// How often each kind occurs where it does.
  private static let usual: [(kind: Step.Kind, weight: Int)] = [
    (.enqueue, 30), (.burst, 8), (.trespass, 6), (.pass, 24), (.replay, 5), (.keep, 4),
    (.cancel, 6), (.signIn, 14), (.signOut, 6), (.adoptByName, 3), (.decide, 6), (.sendAgain, 3),
    (.erase, 2), (.suspend, 3), (.crash, 8), (.restart, 4), (.letGo, 2), (.restoreApp, 2),
    (.weather, 5), (.wait, 5), (.operate, 4),
  ]
  /// Without these nothing would happen at all.
  private static let always: Set<Step.Kind> = [.enqueue, .pass, .signIn]

  /// Switches whole kinds off, and makes others much more or less frequent: what only shows where
  /// something else never happens is met, too.
  private static func swarm(
    _ random: inout SeededRandom
  ) -> [(kind: Step.Kind, weight: Int)] {
    usual.compactMap { kind, weight in
      let isOff = random.happens(perThousand: 250)
      let factor = random.choice([1, 2, 2, 2, 4, 8])
      return isOff && !always.contains(kind) ? nil : (kind, weight * factor)
    }
  }
}

extension SeededRandom {
  /// A number below a positive one.
  mutating func number(below end: Int) -> Int { Int(next() % UInt64(end)) }

  /// A number of a range.
  mutating func number(from first: Int, through last: Int) -> Int {
    first + number(below: last - first + 1)
  }

  /// One of some.
  mutating func choice<Element>(_ elements: [Element]) -> Element {
    elements[number(below: elements.count)]
  }

  /// One of some that are more or less frequent.
  mutating func choice<Element>(_ elements: [(Element, weight: Int)]) -> Element {
    var place = number(below: elements.reduce(0) { $0 + $1.weight })
    for (element, weight) in elements {
      if place < weight { return element }
      place -= weight
    }
    return elements[elements.count - 1].0
  }
}
