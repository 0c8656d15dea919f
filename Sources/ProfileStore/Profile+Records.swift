public import Foundation
public import HubProtocol
public import LMDB

/// A record as it is on this device now, local edits included.
public struct Record: Sendable, Hashable {
  /// Its ID.
  public let id: RecordID
  /// Its payload.
  public let payload: Data
  /// The newest version of the hub that this device has of it; nil: the hub has not had it yet, or
  /// has deleted it, or has lost that version with an epoch.
  public let version: UInt64?
  /// It holds an edit that waits in the outbox.
  public let isPending: Bool

  /// What an edit of this record is based on: give it to `put` or `delete`, so that an edit of
  /// another device is not overwritten unseen.
  public var base: Mutation.Base { version.map { .version($0) } ?? .mustNotExist }

  /// Decodes the payload as JSON.
  /// - Throws: what the decoding throws.
  public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try JSONDecoder().decode(type, from: payload)
  }
}

// Reading: while the session says the owner.
extension Profile {
  /// The record, or nil when there is none or it is deleted.
  /// - Throws: `notSignedIn`, `anotherAccountSignedIn`, `sessionUnknown`; `adoptionUndecided`,
  ///   `setAside`, `moved` for an unowned area; `badRecordID`, `erased`, `storage`.
  public func record(_ id: RecordID) throws -> Record? {
    try Area.validate(id)
    return try area.read { transaction in
      try requireReadable(transaction)
      return registry.policy.keepsRecords ? try area.shown(id, transaction) : nil
    }
  }

  /// The records whose IDs begin with a prefix (all by default), in byte order of their IDs.
  /// - Parameters:
  ///   - after: only IDs behind this one, for pages.
  ///   - limit: how many at most.
  /// - Throws: as ``record(_:)``; a prefix and the ID to go on behind may be empty.
  public func records(
    prefix: RecordID? = nil, after: RecordID? = nil, limit: Int = .max
  ) throws -> [Record] {
    for id in [prefix, after].compactMap({ $0 }) where !id.bytes.isEmpty { try Area.validate(id) }
    return try area.read { transaction in
      try requireReadable(transaction)
      guard registry.policy.keepsRecords else { return [] }
      return try area.shownRecords(
        Self.range(prefix, after), prefix: prefix, limit: limit, transaction)
    }
  }

  private static func range(_ prefix: RecordID?, _ after: RecordID?) -> KeyRange<RecordID> {
    let prefix = prefix.flatMap { $0.bytes.isEmpty ? nil : $0 }
    let after = after.flatMap { $0.bytes.isEmpty ? nil : $0 }
    guard let after else { return prefix.map { .prefix($0) } ?? .all }
    guard let prefix, after < prefix else { return .after(after) }
    return .prefix(prefix)
  }

  /// One of the app's own tables in this area, made on first use; read with ``read(_:)``, written in
  /// the `saving` closures.
  /// - Parameter name: 1 to 200 bytes, the app's own name for it.
  /// - Throws: `storage` with the cause `tablesFull` when the area has no room for one more: about 115
  ///   of the app's own; keep several kinds in one table, apart by their keys. `erased`.
  public func table<K, V>(_ name: String, key: K.Type, value: V.Type) throws -> Table<K, V> {
    try area.appTable(name, key: key, value: value)
  }

  /// Lends a snapshot of the area, for the app's own tables.
  public func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try area.read { transaction in
      try requireReadable(transaction)
      return try body(transaction)
    }
  }

  /// The mutations that wait in the outbox, in order, parked ones included.
  public func outbox(limit: Int = .max) throws -> [OutboxEntry] {
    try outbox(limit: limit) { _ in true }
  }

  /// The parked mutations, in order, each with its reason and with the record at the hub as this device
  /// knows it now, for a person to decide by ``resolve(_:seen:account:_:)``.
  public func parked() throws -> [OutboxEntry] {
    try outbox(limit: .max) { $0.parked != nil }
  }

  private func outbox(limit: Int, where isWanted: (OutboxEntry) -> Bool) throws -> [OutboxEntry] {
    var entries: [OutboxEntry] = []
    try area.read { transaction in
      try requireReadable(transaction)
      let trouble = try area.pushTrouble(transaction)
      try transaction.scan(area.tables.outbox) { key, bytes in
        guard entries.count < limit else { return .stop }
        var entry = try OutboxEntry(order: UInt64Codec.decode(key), bytes: bytes)
        entry.held = trouble.held(entry.mutation)
        entry.firstSent = try area.firstSent(entry.order, transaction)
        if isWanted(entry) { entries.append(try area.brought(upToDate: entry, transaction)) }
        return .next
      }
    }
    return entries
  }

  /// How much has not reached the hub, parked included: what to tell a person who signs out. Needs
  /// no session.
  public func pendingSummary() throws -> PendingSummary {
    try area.read { try area.pendingSummary($0) }
  }

  /// The place up to which everything was applied and committed; nil before the first pull ended.
  public func cursor() throws -> Cursor? {
    try area.read { try area.tables.cursor(.cursor, $0) }
  }

  /// Acknowledged mutations that are still kept, oldest first.
  public func acknowledged() throws -> [AcknowledgedMutation] {
    var found: [AcknowledgedMutation] = []
    try area.read { transaction in
      try requireReadable(transaction)
      try transaction.scan(area.tables.acknowledged) { _, bytes in
        found.append(try AcknowledgedCodec.decode(bytes))
        return .next
      }
    }
    return found
  }

  /// What adoptions have brought into this area.
  public func adoptionReceipts() throws -> [AdoptionReceipt] {
    var found: [AdoptionReceipt] = []
    try area.read { transaction in
      try transaction.scan(area.tables.adoptions) { _, bytes in
        found.append(try AdoptionReceiptCodec.decode(bytes))
        return .next
      }
    }
    return found
  }

  /// Records that the hub lost with an epoch, which this device still has. See
  /// ``sendAgain(lost:account:)``.
  public func lostAtHub() throws -> [RecordID] {
    var found: [RecordID] = []
    try area.read { transaction in
      try requireReadable(transaction)
      try transaction.scan(area.tables.lost) { key, _ in
        found.append(try RecordIDCodec.decode(key))
        return .next
      }
    }
    return found
  }
}

extension Profile {
  /// Mutations that the hub acknowledged in an epoch that it has lost since, above the place where
  /// the histories parted: send them again with ``sendAgain(acknowledged:account:)``.
  public func acknowledgedButLost() throws -> [AcknowledgedMutation] {
    let (lineage, cursor) = try area.read { transaction in
      (try area.tables.lineage(transaction), try area.tables.cursor(.cursor, transaction))
    }
    guard let cursor else { return [] }
    return try acknowledged().filter { known in
      known.epoch != cursor.epoch && known.version > lineage.forkedAt(known.epoch)
    }
  }
}
