package import HubProtocol

/// 128 bits made from a mutation's content: kind, ID and payload, and nothing else.
///
/// It is what the hub remembers of an applied mutation, to tell a repetition from a second mutation
/// under the same UUID. (protocol.md: one ID with another content is `mutation_reused`.)
package struct ContentDigest: Hashable, Sendable {
  /// Its length, in bytes.
  package static let byteCount = 16
  /// Its bytes as two integers, the first byte the highest of the first.
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}

/// Makes the digests of a push. What one maker makes of two contents is equal only if they are.
package protocol ContentDigester: Sendable {
  /// One for each mutation, in list order.
  func digests(of push: PushOutline) -> [ContentDigest]
}
