public import Foundation
import HubProtocol
import LMDB

/// The tables of an area. All keys are bytes in the order in which they are wanted.
struct AreaTables: Sendable {
  /// Single values under the names of ``AreaKey``.
  let values: Table<TextCodec, BytesCodec>
  /// order → mutation.
  let outbox: Table<UInt64Codec, OutboxCodec>
  /// mutation UUID → order, or how it was settled.
  let mutations: Table<UUIDCodec, MutationPlaceCodec>
  /// (record, order): the outbox by record.
  let outboxByRecord: Table<RecordOrderCodec, BytesCodec>
  /// record → its local state.
  let records: Table<RecordIDCodec, StoredRecordCodec>
  /// record → the hub's version that waits beside a pending or parked edit.
  let beside: Table<RecordIDCodec, StoredRecordCodec>
  /// record → (epoch, version, tombstone).
  let metadata: Table<RecordIDCodec, MetadataCodec>
  /// counter → an acknowledged mutation, kept for the case that the hub loses it.
  let acknowledged: Table<UInt64Codec, AcknowledgedCodec>
  /// record: what the running scan from zero brought.
  let brought: Table<RecordIDCodec, BytesCodec>
  /// record → what the hub lost with an epoch.
  let lost: Table<RecordIDCodec, MetadataCodec>
  /// record → the version that the hub gave a mutation of this device, which no pull has brought yet:
  /// an edit that is written meanwhile is based on it, whatever the person's row says.
  let unpulled: Table<RecordIDCodec, MetadataCodec>
  /// adoption UUID → receipt.
  let adoptions: Table<UUIDCodec, AdoptionReceiptCodec>

  init(_ environment: Environment) throws {
    values = try environment.table("values", key: TextCodec.self, value: BytesCodec.self)
    outbox = try environment.table("outbox", key: UInt64Codec.self, value: OutboxCodec.self)
    mutations = try environment.table(
      "mutations", key: UUIDCodec.self, value: MutationPlaceCodec.self)
    outboxByRecord = try environment.table(
      "outboxByRecord", key: RecordOrderCodec.self, value: BytesCodec.self)
    records = try environment.table(
      "records", key: RecordIDCodec.self, value: StoredRecordCodec.self)
    beside = try environment.table("beside", key: RecordIDCodec.self, value: StoredRecordCodec.self)
    metadata = try environment.table("metadata", key: RecordIDCodec.self, value: MetadataCodec.self)
    acknowledged = try environment.table(
      "acknowledged", key: UInt64Codec.self, value: AcknowledgedCodec.self)
    brought = try environment.table("brought", key: RecordIDCodec.self, value: BytesCodec.self)
    lost = try environment.table("lost", key: RecordIDCodec.self, value: MetadataCodec.self)
    unpulled = try environment.table(
      "unpulled", key: RecordIDCodec.self, value: MetadataCodec.self)
    adoptions = try environment.table(
      "adoptions", key: UUIDCodec.self, value: AdoptionReceiptCodec.self)
  }

  /// The prefix of the names of an app's own tables.
  static let appPrefix = "app."

  /// Checks format and identity before anything else is looked at, or written where it is missing.
  /// - Throws: `newerFormat`; `damaged` when it is not that area.
  static func requireReadable(_ environment: Environment, as id: AreaID) throws {
    let name = "values"
    guard try environment.tableNames().contains(name) else {
      throw StoreError.damaged("identity of an area")
    }
    let values = try environment.table(name, key: TextCodec.self, value: BytesCodec.self)
    let identity: AreaIdentity? = try environment.read { transaction in
      guard let bytes = try transaction.bytes(of: AreaKey.identity.rawValue, in: values) else {
        return nil
      }
      return try AreaIdentity(bytes)
    }
    guard identity?.area == id else { throw StoreError.damaged("identity of an area") }
  }
}

/// The single values of an area.
enum AreaKey: String {
  /// Format, area ID, creation time.
  case identity
  /// The owner's bytes; absent: unowned.
  case owner
  /// The last order enqueued while unowned: everything up to it is stamped with the owner.
  case unownedThrough
  /// ``RecordKeepingMark`` of the store, for a registry that is rebuilt.
  case recordKeeping
  /// ``AreaState``; absent: active.
  case state
  /// Client UUID, and whether the hub has it.
  case client
  /// Device, inode and machine of the data file.
  case file
  /// The last order given.
  case lastOrder
  /// Count, parked count and payload bytes of the outbox.
  case totals
  /// ``Cursor``.
  case cursor
  /// The newest high water known, with its epoch.
  case highWater
  /// What the hub announced.
  case hubLimits
  /// Epochs that were left, with the place where they forked.
  case lineage
  /// The running scan from zero.
  case scan
  /// A scan from zero has been finished.
  case hasFinishedScan
  /// The position of the last batch that a closure accepted.
  case position
  /// The last counter of `acknowledged`.
  case lastAcknowledged
  /// The hub said that the account is erased there.
  case erasedAtHub
  /// When the last pass ended, and how.
  case lastPass
  /// ``PushTrouble``; absent: the hub has failed on nothing.
  case pushTrouble
}

/// A record ID's bytes.
enum RecordIDCodec: KeyCodec {
  static func encode(_ key: RecordID, into buffer: inout KeyBuffer) { buffer.append(key.bytes) }
  static func decode(_ bytes: RawSpan) throws(LMDBError) -> RecordID {
    RecordID(uncheckedBytes: bytes.copiedBytes())
  }
}

/// A record ID with its length before it, so that no ID is a prefix of another, then the order.
enum RecordOrderCodec: KeyCodec {
  struct Key: Sendable {
    var record: RecordID
    /// nil only in a prefix.
    var order: UInt64?
  }

  static func encode(_ key: Key, into buffer: inout KeyBuffer) {
    buffer.append(bigEndian: UInt16(key.record.bytes.count))
    buffer.append(key.record.bytes)
    if let order = key.order { buffer.append(bigEndian: order) }
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Key {
    guard bytes.byteCount >= 10 else {
      throw LMDBError(.badForm, operation: "decode", detail: "outbox index")
    }
    let count = Int(bytes.loadBigEndian(UInt16.self))
    guard bytes.byteCount == count + 10 else {
      throw LMDBError(.badForm, operation: "decode", detail: "outbox index")
    }
    return Key(
      record: RecordID(uncheckedBytes: bytes.extracting(2..<2 + count).copiedBytes()),
      order: bytes.loadBigEndian(at: 2 + count))
  }
}

/// Makes a value codec from a stored form.
protocol StoredForm: ValueCodec {
  static func encoded(_ value: Value) -> [UInt8]
  static func read(_ reader: inout ByteReader) throws(StoreError) -> Value
}

extension StoredForm {
  static func withEncoded<R>(
    _ value: Value, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    try body(encoded(value).span.bytes)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Value {
    var reader = ByteReader(bytes, of: "\(Self.self)")
    do {
      let value = try read(&reader)
      try reader.requireEnd()
      return value
    } catch {
      throw LMDBError(.badForm, operation: "decode", detail: error.message)
    }
  }
}

/// An outbox entry without its order, which is its key.
enum OutboxCodec: ValueCodec {
  static func withEncoded<R>(
    _ value: OutboxEntry, _ body: (RawSpan) throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    try body(value.encoded().span.bytes)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> OutboxEntry {
    do {
      return try OutboxEntry(order: 0, bytes: bytes)
    } catch {
      throw LMDBError(.badForm, operation: "decode", detail: error.message)
    }
  }
}

/// Where a mutation UUID stands.
enum MutationPlace: Sendable, Hashable {
  case waiting(order: UInt64)
  /// Caller-given, settled, and not struck off yet.
  case settled
}

enum MutationPlaceCodec: StoredForm {
  typealias Value = MutationPlace

  static func encoded(_ value: MutationPlace) -> [UInt8] {
    var writer = ByteWriter()
    switch value {
    case .waiting(let order):
      writer.write(UInt8(0))
      writer.write(order)
    case .settled: writer.write(UInt8(1))
    }
    return writer.bytes
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> MutationPlace {
    switch try reader.readUInt8() {
    case 0: return .waiting(order: try reader.readUInt64())
    case 1: return .settled
    default: throw reader.damaged
    }
  }
}

enum MetadataCodec: StoredForm {
  typealias Value = RecordMetadata

  static func encoded(_ value: RecordMetadata) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(value.epoch)
    writer.write(value.version)
    writer.write(UInt8(value.isDeleted ? 1 : 0))
    return writer.bytes
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> RecordMetadata {
    RecordMetadata(
      epoch: try reader.readUUID(), version: try reader.readUInt64(),
      isDeleted: try reader.readFlag())
  }
}

/// A record's row in the area.
struct StoredRecord: Sendable, Hashable {
  /// The hub's version that it has or was made from; nil: the hub never had it, or in an epoch
  /// that was left.
  var version: UInt64?
  /// It holds an edit of this device that waits in the outbox.
  var isLocal: Bool
  /// nil: deleted.
  var payload: Data?
}

enum StoredRecordCodec: StoredForm {
  typealias Value = StoredRecord

  static func encoded(_ value: StoredRecord) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(value.version) { $0.write($1) }
    writer.write(UInt8(value.isLocal ? 1 : 0))
    writer.write(UInt8(value.payload == nil ? 0 : 1))
    if let payload = value.payload { writer.writeLast(payload) }
    return writer.bytes
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> StoredRecord {
    StoredRecord(
      version: try reader.readOptional { (reader) throws(StoreError) in try reader.readUInt64() },
      isLocal: try reader.readFlag(), payload: try reader.readFlag() ? reader.readLast() : nil)
  }
}

/// A mutation that the hub has acknowledged.
public struct AcknowledgedMutation: Sendable, Hashable {
  /// The epoch in which it was acknowledged.
  public var epoch: UUID
  /// The version that it was given.
  public var version: UInt64
  /// When, by this device's clock.
  public var acknowledgedAt: Date
  /// The mutation as it was sent.
  public var entry: OutboxEntry
}

enum AcknowledgedCodec: StoredForm {
  typealias Value = AcknowledgedMutation

  static func encoded(_ value: AcknowledgedMutation) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(value.epoch)
    writer.write(value.version)
    writer.write(value.acknowledgedAt)
    writer.write(value.entry.order)
    writer.write(value.entry.encoded())
    return writer.bytes
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> AcknowledgedMutation {
    let epoch = try reader.readUUID()
    let version = try reader.readUInt64()
    let time = try reader.readTime()
    let order = try reader.readUInt64()
    let bytes = try reader.readBytes()
    return AcknowledgedMutation(
      epoch: epoch, version: version, acknowledgedAt: time,
      entry: try OutboxEntry(order: order, bytes: bytes.span.bytes))
  }
}

/// What an adoption leaves behind in the adopting area.
public struct AdoptionReceipt: Sendable, Hashable {
  /// The unowned area that was adopted.
  public var source: AreaID
  /// When, by this device's clock.
  public var adoptedAt: Date
  /// Mutations that were taken over.
  public var mutations: Int
  /// Records that were taken over.
  public var records: Int

  package init(source: AreaID, adoptedAt: Date, mutations: Int, records: Int) {
    self.source = source
    self.adoptedAt = adoptedAt
    self.mutations = mutations
    self.records = records
  }
}

enum AdoptionReceiptCodec: StoredForm {
  typealias Value = AdoptionReceipt

  static func encoded(_ value: AdoptionReceipt) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(value.source.uuid)
    writer.write(value.adoptedAt)
    writer.write(UInt64(value.mutations))
    writer.write(UInt64(value.records))
    return writer.bytes
  }

  static func read(_ reader: inout ByteReader) throws(StoreError) -> AdoptionReceipt {
    AdoptionReceipt(
      source: AreaID(uuid: try reader.readUUID()),
      adoptedAt: try reader.readTime(),
      mutations: Int(clamping: try reader.readUInt64()),
      records: Int(clamping: try reader.readUInt64()))
  }
}
