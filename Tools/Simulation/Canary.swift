/// A text that may lie only where it belongs: each account has one, and each signed-out area.
package struct Canary: Hashable, Sendable {
  /// 0 to 255. Those below ``firstGuest`` are accounts'.
  package let number: Int

  /// The first one of a signed-out area.
  package static let firstGuest = 16
  /// How many there are.
  package static let countMax = 256

  /// Takes a number, 0 to 255.
  package init(_ number: Int) {
    precondition((0..<Self.countMax).contains(number), "a canary's number has two digits")
    self.number = number
  }

  /// Its text, as it is written into IDs and payloads.
  package var text: String {
    let digits = String(number, radix: 16)
    return "~kanarie~\(digits.count == 1 ? "0" : "")\(digits)~"
  }
}

/// A set of canaries.
package struct CanarySet: Hashable, Sendable {
  private var words: SIMD4<UInt64>

  /// The empty one.
  package init() { words = .zero }

  /// Takes bits: canary 0 is the lowest of the first word.
  package init(words: SIMD4<UInt64>) { self.words = words }

  /// Takes canaries.
  package init(_ canaries: some Sequence<Canary>) {
    self.init()
    for canary in canaries { insert(canary) }
  }

  /// Whether there are none.
  package var isEmpty: Bool { words == .zero }

  /// Adds one.
  package mutating func insert(_ canary: Canary) {
    words[canary.number / 64] |= 1 << UInt64(canary.number % 64)
  }

  /// Adds all of another set.
  package mutating func formUnion(_ other: CanarySet) { words |= other.words }

  /// Those that are in no other set.
  package func subtracting(_ other: CanarySet) -> CanarySet {
    CanarySet(words: words & ~other.words)
  }

  /// Whether it has one.
  package func contains(_ canary: Canary) -> Bool {
    words[canary.number / 64] & 1 << UInt64(canary.number % 64) != 0
  }

  /// In the order of their numbers.
  package var members: [Canary] {
    (0..<Canary.countMax).map { Canary($0) }.filter(contains)
  }
}
