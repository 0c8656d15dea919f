/// How much has happened to an outbox by those who want something sent: a pass changes it by nothing.
package struct OutboxMark: Sendable, Hashable {
  /// The order of the newest mutation.
  package var lastOrder: UInt64
  /// How often a person has decided about what waits: a retry, a discard, a resolution,
  /// an edit in the place of others.
  package var decisions: UInt64

  package init(lastOrder: UInt64 = 0, decisions: UInt64 = 0) {
    self.lastOrder = lastOrder
    self.decisions = decisions
  }
}
