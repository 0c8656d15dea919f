package import Foundation
package import HubProtocol
import LMDB

/// What an area says at one moment, in one snapshot, an erased one too: for whoever compares it with
/// what must hold.
package struct AreaStanding: Sendable, Hashable {
  /// A version of the hub, as metadata has it.
  package struct Mark: Sendable, Hashable {
    /// Its epoch.
    package var epoch: UUID
    /// The hub's sequence number.
    package var version: UInt64

    /// Puts the two together.
    package init(epoch: UUID, version: UInt64) {
      self.epoch = epoch
      self.version = version
    }
  }

  /// Bytes of its owner; nil: it has none.
  package var owner: Data?
  /// What it says of itself.
  package var state: AreaState
  /// Everything up to it was applied.
  package var cursor: Cursor?
  /// The last batch that a closure has accepted.
  package var position: UInt64
  /// What waits, in order.
  package var outbox: [OutboxEntry]
  /// The newest version of each record that was applied.
  package var applied: [RecordID: Mark]
  /// Whether a scan from zero is under way.
  package var isScanning: Bool

  /// Takes every member.
  package init(
    owner: Data?, state: AreaState, cursor: Cursor?, position: UInt64, outbox: [OutboxEntry],
    applied: [RecordID: Mark], isScanning: Bool
  ) {
    self.owner = owner
    self.state = state
    self.cursor = cursor
    self.position = position
    self.outbox = outbox
    self.applied = applied
    self.isScanning = isScanning
  }
}

extension Area {
  /// What it says now.
  /// - Throws: `damaged`, `storage`.
  /// - Cost: outbox and metadata are read whole.
  package func standing() throws -> AreaStanding {
    try readState { transaction in
      let epochs = try tables.epochs(transaction).epochs
      var standing = AreaStanding(
        owner: try tables.owner(transaction), state: try tables.state(transaction),
        cursor: try tables.cursor(.cursor, transaction),
        position: try tables.number(.position, transaction), outbox: [], applied: [:],
        isScanning: try tables.scan(transaction) != nil)
      try transaction.scan(tables.outbox) { key, bytes in
        standing.outbox.append(try OutboxEntry(order: UInt64Codec.decode(key), bytes: bytes))
        return .next
      }
      try transaction.scan(tables.known) { key, bytes in
        guard let mark = try KnownRecordCodec.decode(bytes).applied else { return .next }
        guard Int(mark.epoch) < epochs.count else { throw StoreError.damaged("epochs") }
        standing.applied[try RecordIDCodec.decode(key)] = AreaStanding.Mark(
          epoch: epochs[Int(mark.epoch)], version: mark.version)
        return .next
      }
      return standing
    }
  }
}
