package import HubProtocol

/// The records of which the hub wants a mutation later, and until when they wait. A value; the caller
/// has the clock. Each has a pause of its own, which doubles with each time that it is put off.
package struct DeferredRecords: Hashable, Sendable {
  private struct Wait: Hashable {
    /// How often in a row it was put off.
    var count: Int
    var due: Duration
  }

  private var waits: [RecordID: Wait] = [:]

  package init() {}

  /// Those that no pass is to send yet.
  /// - Parameter now: since any moment that stays the same.
  package func waiting(at now: Duration) -> Set<RecordID> {
    Set(waits.lazy.filter { $0.value.due > now }.map(\.key))
  }

  /// How long it takes until the next is due; nil: none waits.
  package func pause(at now: Duration) -> Duration? {
    waits.values.map(\.due).min().map { max(.zero, $0 - now) }
  }

  /// A pass has ended.
  /// - Parameters:
  ///   - deferred: what the hub has put off in it.
  ///   - left: what it did not send, since it waits.
  ///   - chance: from 0 up to 1, for the pauses: what was put off together is sent together.
  package mutating func passed(
    deferred: Set<RecordID>, leaving left: Set<RecordID>, at now: Duration, chance: Double
  ) {
    var next = waits.filter { left.contains($0.key) }
    for record in deferred {
      let count = (waits[record]?.count ?? 0) + 1
      next[record] = Wait(
        count: count, due: now + RetryPause.pause(failureCount: count, chance: chance))
    }
    waits = next
  }
}
