import Foundation
import HubProtocol
import HubRules
import LMDB

// What stands behind the keys; integers are big-endian.
//
//   accounts  number (8) | status (1) | epoch (16) | high water (8) | minimum cursor (8)
//             | idempotency floor (8) | last fork by a cursor, seconds or Int64.min (8)
//             | lineage: epoch (16) and forkedAt (8), repeated
//   records   version (8) | 1 for a tombstone, else 0 (1)
//   changes   1 for a tombstone, else 0 (1) | client (16) | mutation (16) | length of the ID (2)
//             | record ID | payload
//   results   version (8) | content digest (16)
//   order     mutation UUID (16) | stored at, seconds (8) | record ID
//   clients   length of the account ID (2) | account ID | name

/// An account's row: its state and the number that its keys begin with.
struct AccountRow: Hashable, Sendable {
  var number: UInt64
  var state: AccountState
}

/// Rows of the table `accounts`.
enum AccountRowCodec: ValueCodec {
  private static let headByteCount = 57
  private static let entryByteCount = 24
  private static let neverForked = Int64.min

  static func withEncoded<R>(
    _ row: AccountRow, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let state = row.state
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headByteCount + state.lineage.count * entryByteCount)
    bytes.append(bigEndian: row.number)
    bytes.append(state.status.rawValue)
    bytes.append(state.epoch)
    bytes.append(bigEndian: state.highWater)
    bytes.append(bigEndian: state.minimumCursor)
    bytes.append(bigEndian: state.idempotencyFloor)
    bytes.append(bigEndian: state.lastCursorForkAt ?? neverForked)
    for entry in state.lineage {
      bytes.append(entry.epoch)
      bytes.append(bigEndian: entry.forkedAt)
    }
    return try body(bytes.span.bytes)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> AccountRow {
    guard bytes.byteCount >= headByteCount,
      (bytes.byteCount - headByteCount).isMultiple(of: entryByteCount),
      let status = AccountStatus(rawValue: bytes.loadBigEndian(at: 8))
    else { throw badForm("an account row of \(bytes.byteCount) bytes") }
    var state = AccountState(epoch: bytes.loadUUID(at: 9))
    state.status = status
    state.highWater = bytes.loadBigEndian(at: 25)
    state.minimumCursor = bytes.loadBigEndian(at: 33)
    state.idempotencyFloor = bytes.loadBigEndian(at: 41)
    let forkedAt: Int64 = bytes.loadBigEndian(at: 49)
    state.lastCursorForkAt = forkedAt == neverForked ? nil : forkedAt
    for offset in stride(from: headByteCount, to: bytes.byteCount, by: entryByteCount) {
      state.lineage.append(
        LineageEntry(
          epoch: bytes.loadUUID(at: offset), forkedAt: bytes.loadBigEndian(at: offset + 16)))
    }
    return AccountRow(number: bytes.loadBigEndian(), state: state)
  }
}

/// Values of the table `records`.
enum RecordHeadCodec: ValueCodec {
  static func withEncoded<R>(
    _ head: RecordHead, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let words: InlineArray<2, UInt64> = [
      head.version.bigEndian, ((head.deleted ? UInt64(1) : 0) << 56).bigEndian,
    ]
    return try body(words.span.bytes.extracting(first: 9))
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> RecordHead {
    guard bytes.byteCount == 9 else { throw badForm("a record head of \(bytes.byteCount) bytes") }
    return RecordHead(
      version: bytes.loadBigEndian(), deleted: bytes.loadBigEndian(UInt8.self, at: 8) == 1)
  }
}

/// A change as it is stored; its version is in the key.
struct StoredChange: Sendable {
  var id: RecordID
  /// Nil for a tombstone.
  var payload: Data?
  var client: UUID
  var mutation: UUID

  func record(version: UInt64) -> WireRecord {
    WireRecord(
      id: id, version: version, deleted: payload == nil, payload: payload, client: client,
      mutation: mutation)
  }
}

/// Values of the table `changes`.
enum StoredChangeCodec: ValueCodec {
  private static let headByteCount = 35

  static func withEncoded<R>(
    _ change: StoredChange, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    guard let payload = change.payload else {
      return try withEncoded(change, payload: nil, body)
    }
    return try withEncoded(change, payload: payload.span.bytes, body)
  }

  private static func withEncoded<R>(
    _ change: StoredChange, payload: RawSpan?, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let id = change.id.bytes
    var bytes = [UInt8](repeating: 0, count: byteCount(id: id.span.bytes, payload: payload))
    fill(&bytes) { room in
      write(
        id: id.span.bytes, payload: payload, client: change.client, mutation: change.mutation,
        to: &room)
    }
    return try body(bytes.span.bytes)
  }

  /// How long a stored change is.
  static func byteCount(id: RawSpan, payload: RawSpan?) -> Int {
    headByteCount + id.byteCount + (payload?.byteCount ?? 0)
  }

  /// Writes a stored change where it is going to lie.
  /// - Parameter room: of ``byteCount(id:payload:)``.
  static func write(
    id: RawSpan, payload: RawSpan?, client: UUID, mutation: UUID, to room: inout OutputRawSpan
  ) {
    room.append(payload == nil ? 1 as UInt8 : 0, as: UInt8.self)
    room.append(client)
    room.append(mutation)
    room.append(bigEndian: UInt16(id.byteCount))
    room.append(contentsOf: id)
    if let payload { room.append(contentsOf: payload) }
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> StoredChange {
    let payload = try payloadOffset(in: bytes)
    return StoredChange(
      id: RecordID(uncheckedBytes: bytes.extracting(headByteCount..<payload).copiedBytes()),
      payload: try isTombstone(bytes) ? nil : bytes.extracting(payload...).copiedData(),
      client: bytes.loadUUID(at: 1), mutation: bytes.loadUUID(at: 17))
  }

  /// Adds a stored change to the records of a page, without making it a value first.
  static func append(
    _ bytes: RawSpan, version: UInt64, to records: inout EncodedRecords
  ) throws(LMDBError) {
    let payload = try payloadOffset(in: bytes)
    records.append(
      id: bytes.extracting(headByteCount..<payload), version: version,
      payload: try isTombstone(bytes) ? nil : bytes.extracting(payload...),
      client: bytes.loadUUID(at: 1), mutation: bytes.loadUUID(at: 17))
  }

  /// Payload and ID bytes of a stored change, without copying it.
  static func contentByteCount(_ bytes: RawSpan) -> Int { bytes.byteCount - headByteCount }

  static func isTombstone(_ bytes: RawSpan) throws(LMDBError) -> Bool {
    try requireHead(of: bytes)
    return bytes.loadBigEndian(UInt8.self) == 1
  }

  private static func requireHead(of bytes: RawSpan) throws(LMDBError) {
    guard bytes.byteCount >= headByteCount else {
      throw badForm("a change of \(bytes.byteCount) bytes")
    }
  }

  private static func payloadOffset(in bytes: RawSpan) throws(LMDBError) -> Int {
    try requireHead(of: bytes)
    let offset = headByteCount + Int(bytes.loadBigEndian(UInt16.self, at: 33))
    guard offset <= bytes.byteCount else { throw badForm("a change cut short") }
    return offset
  }
}

/// Values of the table `results`: small, since a push writes them all over the table.
enum StoredResultCodec: ValueCodec {
  private static let byteCount = 8 + ContentDigest.byteCount

  static func withEncoded<R>(
    _ result: StoredResult, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let words: InlineArray<3, UInt64> = [
      result.version.bigEndian, result.digest.high.bigEndian, result.digest.low.bigEndian,
    ]
    return try body(words.span.bytes)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> StoredResult {
    guard bytes.byteCount == byteCount else {
      throw badForm("a result of \(bytes.byteCount) bytes")
    }
    return StoredResult(
      version: bytes.loadBigEndian(),
      digest: ContentDigest(
        high: bytes.loadBigEndian(at: 8), low: bytes.loadBigEndian(at: 16)))
  }
}

/// What was applied under a version, for as long as its result is kept.
struct AppliedMutation: Hashable, Sendable {
  var mutation: UUID
  /// Seconds since 1970: it decides when the result may be purged.
  var storedAt: Int64
  var id: RecordID
}

/// Values of the table `order`.
enum AppliedMutationCodec: ValueCodec {
  private static let headByteCount = 24

  static func withEncoded<R>(
    _ applied: AppliedMutation, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    let id = applied.id.bytes
    var bytes = [UInt8](repeating: 0, count: byteCount(id: id.span.bytes))
    fill(&bytes) { room in
      write(id: id.span.bytes, mutation: applied.mutation, storedAt: applied.storedAt, to: &room)
    }
    return try body(bytes.span.bytes)
  }

  /// How long a stored one is.
  static func byteCount(id: RawSpan) -> Int { headByteCount + id.byteCount }

  /// Writes one where it is going to lie.
  /// - Parameter room: of ``byteCount(id:)``.
  static func write(
    id: RawSpan, mutation: UUID, storedAt: Int64, to room: inout OutputRawSpan
  ) {
    room.append(mutation)
    room.append(bigEndian: storedAt)
    room.append(contentsOf: id)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> AppliedMutation {
    guard bytes.byteCount > headByteCount else {
      throw badForm("an applied mutation of \(bytes.byteCount) bytes")
    }
    return AppliedMutation(
      mutation: bytes.loadUUID(), storedAt: bytes.loadBigEndian(at: 16),
      id: RecordID(uncheckedBytes: bytes.extracting(headByteCount...).copiedBytes()))
  }
}

/// A client of the directory.
struct ClientRow: Hashable, Sendable {
  var account: AccountID
  /// 0 to 256 bytes, shown to people.
  var name: String
}

/// Values of the table `clients`.
enum ClientRowCodec: ValueCodec {
  static func withEncoded<R>(
    _ row: ClientRow, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: UInt16(row.account.bytes.count))
    bytes.append(contentsOf: row.account.bytes)
    bytes.append(contentsOf: row.name.utf8)
    return try body(bytes.span.bytes)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> ClientRow {
    guard bytes.byteCount > 2 else { throw badForm("a client of \(bytes.byteCount) bytes") }
    let end = 2 + Int(bytes.loadBigEndian(UInt16.self))
    guard end <= bytes.byteCount,
      let account = try? AccountID(bytes: bytes.extracting(2..<end).copiedBytes())
    else { throw badForm("a client whose account is none") }
    let name = String(decoding: bytes.extracting(end...).copiedBytes(), as: UTF8.self)
    return ClientRow(account: account, name: name)
  }
}

extension [UInt8] {
  fileprivate mutating func append(bigEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }

  fileprivate mutating func append(_ uuid: UUID) {
    Swift.withUnsafeBytes(of: uuid.uuid) { append(contentsOf: $0) }
  }
}

/// Has bytes filled from their beginning.
private func fill(_ bytes: inout [UInt8], _ body: (inout OutputRawSpan) -> Void) {
  bytes.withUnsafeMutableBytes { buffer in
    // SAFETY: the buffer is written within the closure only.
    var room = OutputRawSpan(buffer: buffer, initializedCount: 0)
    body(&room)
    _ = room.finalize(for: buffer)
  }
}

extension OutputRawSpan {
  fileprivate mutating func append(bigEndian value: some FixedWidthInteger & BitwiseCopyable) {
    append(value.bigEndian, as: type(of: value))
  }

  fileprivate mutating func append(_ uuid: UUID) { append(uuid.uuid, as: uuid_t.self) }

  /// - Precondition: there is room.
  fileprivate mutating func append(contentsOf bytes: RawSpan) {
    withUnsafeMutableBytes { room, filled in
      // SAFETY: the slice's own check holds the bounds.
      UnsafeMutableRawBufferPointer(rebasing: room[filled..<filled + bytes.byteCount])
        .copyMemory(from: bytes.withUnsafeBytes { $0 })
      filled += bytes.byteCount
    }
  }
}
