/// Which position a batch carries. A value. (Contract sections 5.7 and 6.)
///
/// A position says "everything up to this batch is saved". An app whose store is behind (it came
/// from a backup) replays, and keeps the position that it gave until the replay's last batch: cut off
/// before, it is still seen to be behind.
package struct BatchPositions: Hashable, Sendable {
  /// Where in a pass a batch is handed over.
  package enum Place: Hashable, Sendable {
    /// A pulled page, or another batch outside of a replay.
    case ordinary
    /// Part of a replay.
    case replay(isLast: Bool)
  }

  /// What the area has stored.
  package private(set) var stored: UInt64
  /// What the app has saved.
  package private(set) var app: UInt64

  /// - Parameter app: nil when the app gave none: then it is taken at the area's word.
  package init(stored: UInt64, app: UInt64?) {
    self.stored = stored
    self.app = app ?? stored
  }

  /// Whether the app lacks batches that it once accepted.
  package var isBehind: Bool { app < stored }

  /// The position for the next batch.
  package func position(at place: Place) -> UInt64 {
    switch place {
    case .ordinary where isBehind, .replay(isLast: false): app
    case .ordinary, .replay(isLast: true): max(stored, app) + 1
    }
  }

  /// The app has saved a batch with this position.
  /// - Returns: what the area is to store; nil when that batch was no step forward.
  package mutating func accept(_ position: UInt64) -> UInt64? {
    guard position > max(stored, app) else { return nil }
    stored = position
    app = position
    return position
  }
}
