package import Foundation

/// What came of one seed.
package struct Outcome: Sendable, Hashable, Codable {
  /// The seed.
  package var seed: UInt64
  /// What happened, in numbers.
  package var counts: World.Counts
  /// What must not have happened.
  package var violations: [Violation]
  /// Of the event log: the same again for the same seed.
  package var digest: UInt64
  /// Lines of the event log.
  package var lineCount: Int

  /// Takes every member.
  package init(
    seed: UInt64, counts: World.Counts, violations: [Violation], digest: UInt64, lineCount: Int
  ) {
    self.seed = seed
    self.counts = counts
    self.violations = violations
    self.digest = digest
    self.lineCount = lineCount
  }

  /// Reads what ``encoded()`` wrote; nil: it is none.
  package init?(decoding bytes: Data) {
    guard let outcome = try? JSONDecoder().decode(Outcome.self, from: bytes) else { return nil }
    self = outcome
  }

  /// For another process.
  package func encoded() throws -> Data { try JSONEncoder().encode(self) }
}

extension World.Counts {
  /// Adds another world's.
  package mutating func add(_ other: Self) {
    steps += other.steps
    switches += other.switches
    faults += other.faults
    kills += other.kills
    commits += other.commits
    requests += other.requests
    mutations += other.mutations
  }
}
