public import Foundation
import HubProtocol
import LMDB

/// The tables of an area. All keys are bytes in the order in which they are wanted.
///
/// What the hub's versions are is one row for each record in `known`; where the area keeps the app's
/// records, their payloads lie in `bodies`, in the order in which they came. So random record IDs make
/// small rows dirty and no payloads. What this device has changed lies in the outbox alone: a record is
/// shown as its newest waiting edit, else as the hub's version.
struct AreaTables: Sendable {
  /// Single values under the names of ``AreaKey``.
  let values: Table<TextCodec, BytesCodec>
  /// order → mutation.
  let outbox: Table<UInt64Codec, OutboxCodec>
  /// UUID of a mutation that the app has named, or that is parked → order, or that it is settled.
  let mutations: Table<UUIDCodec, MutationPlaceCodec>
  /// order → the high water that was known when the mutation was first sent: apart from the mutation, so
  /// that noting it rewrites no payload.
  let sent: Table<UInt64Codec, UInt64Codec>
  /// record → the orders of its waiting mutations.
  let edits: MultiTable<RecordIDCodec, UInt64Codec>
  /// The same, for IDs that lie in memory that is lent.
  let editsInPlace: MultiTable<RecordBytesCodec, UInt64Codec>
  /// record → what is known of it at the hub.
  let known: Table<RecordIDCodec, KnownRecordCodec>
  /// The same, for IDs that lie in memory that is lent.
  let knownInPlace: Table<RecordBytesCodec, KnownRecordCodec>
  /// place → the payload of a version of the hub, in the order in which they came.
  let bodies: Table<UInt64Codec, BytesCodec>
  /// counter → an acknowledged mutation, kept for the case that the hub loses it.
  let acknowledged: Table<UInt64Codec, AcknowledgedCodec>
  /// record → what the hub lost with an epoch.
  let lost: Table<RecordIDCodec, MetadataCodec>
  /// adoption UUID → receipt.
  let adoptions: Table<UUIDCodec, AdoptionReceiptCodec>

  init(_ environment: Environment) throws {
    values = try environment.table("values", key: TextCodec.self, value: BytesCodec.self)
    outbox = try environment.table("outbox", key: UInt64Codec.self, value: OutboxCodec.self)
    mutations = try environment.table(
      "mutations", key: UUIDCodec.self, value: MutationPlaceCodec.self)
    sent = try environment.table("sent", key: UInt64Codec.self, value: UInt64Codec.self)
    edits = try environment.multiTable(
      Self.editsName, key: RecordIDCodec.self, value: UInt64Codec.self)
    editsInPlace = try environment.multiTable(
      Self.editsName, key: RecordBytesCodec.self, value: UInt64Codec.self)
    known = try environment.table("known", key: RecordIDCodec.self, value: KnownRecordCodec.self)
    knownInPlace = try environment.table(
      "known", key: RecordBytesCodec.self, value: KnownRecordCodec.self)
    bodies = try environment.table("bodies", key: UInt64Codec.self, value: BytesCodec.self)
    acknowledged = try environment.table(
      "acknowledged", key: UInt64Codec.self, value: AcknowledgedCodec.self)
    lost = try environment.table("lost", key: RecordIDCodec.self, value: MetadataCodec.self)
    adoptions = try environment.table(
      "adoptions", key: UUIDCodec.self, value: AdoptionReceiptCodec.self)
  }

  /// The one table in which a key has several values.
  static let editsName = "edits"

  /// The prefix of the names of an app's own tables.
  static let appPrefix = "app."

  /// Checks format and identity before anything else is looked at, or written where it is missing.
  /// - Parameter names: the tables that there are.
  /// - Throws: `newerFormat`; `damaged` when it is not that area.
  static func requireReadable(
    _ environment: Environment, _ names: [String], as id: AreaID
  ) throws {
    let name = "values"
    guard names.contains(name) else {
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

  /// Its UUID, without reading the rest.
  static func mutation(_ bytes: RawSpan) throws(LMDBError) -> UUID {
    try requireHead(bytes)
    return bytes.loadUUID(at: headByteCount + OutboxEntry.mutationOffset)
  }

  /// When it was acknowledged, without reading the rest.
  static func acknowledgedAt(_ bytes: RawSpan) throws(LMDBError) -> Date {
    try requireHead(bytes)
    return Date(
      timeIntervalSince1970: Double(bytes.loadBigEndian(UInt64.self, at: 24)) / 1_000)
  }

  private static func requireHead(_ bytes: RawSpan) throws(LMDBError) {
    guard bytes.byteCount >= headByteCount + OutboxEntry.mutationOffset + 16 else {
      throw LMDBError(.badForm, operation: "decode", detail: "an acknowledged mutation")
    }
  }

  /// What lies before the entry.
  private static let headByteCount = 44

  /// How long one with this stored entry is.
  static func byteCount(of entry: RawSpan) -> Int { headByteCount + entry.byteCount }

  /// Writes one where it is going to lie, with the entry as it is stored.
  /// - Parameter room: of ``byteCount(of:)``.
  static func write(
    epoch: UUID, version: UInt64, acknowledgedAt: Date, order: UInt64, entry: RawSpan,
    to room: inout OutputRawSpan
  ) {
    room.append(epoch.uuid, as: uuid_t.self)
    room.append(version.bigEndian, as: UInt64.self)
    room.append(acknowledgedAt.storedMilliseconds.bigEndian, as: UInt64.self)
    room.append(order.bigEndian, as: UInt64.self)
    room.append(UInt32(entry.byteCount).bigEndian, as: UInt32.self)
    room.withUnsafeMutableBytes { room, filled in
      // SAFETY: the slice's own check holds the bounds.
      entry.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: room[filled...]).copyMemory(from: $0)
      }
      filled += entry.byteCount
    }
  }

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
