import Foundation
import HubProtocol
import ProfileStore

/// A waiting mutation as `profilectl outbox` shows it. It has payloads only if they were asked for.
struct OutboxRow: Sendable {
  /// What keeps it in the outbox.
  enum State: String, Sendable {
    /// It is sent by the next pass.
    case pending
    /// It was sent, and no answer has settled it yet.
    case sent
    /// The hub fails on it; it is tried again by itself.
    case held
    /// An earlier mutation of its record is parked or held: it waits with that one.
    case waiting
    /// It is not sent by itself; `parked` says why.
    case parked
  }

  var entry: OutboxEntry
  var payloadByteCount: Int?
  var state: State

  /// Makes rows of entries in their order.
  struct Maker {
    private let keepsPayloads: Bool
    private var blocked: Set<RecordID> = []

    init(keepsPayloads: Bool) {
      self.keepsPayloads = keepsPayloads
    }

    /// The row of the next entry.
    mutating func row(_ entry: OutboxEntry) -> OutboxRow {
      var row = OutboxRow(
        entry: entry, payloadByteCount: entry.payload?.count, state: state(of: entry))
      if !keepsPayloads { row.entry.dropPayloads() }
      return row
    }

    private mutating func state(of entry: OutboxEntry) -> State {
      if entry.parked != nil {
        blocked.insert(entry.record)
        return .parked
      }
      if blocked.contains(entry.record) { return .waiting }
      if entry.held != nil {
        blocked.insert(entry.record)
        return .held
      }
      return entry.firstSent == nil ? .pending : .sent
    }
  }
}
