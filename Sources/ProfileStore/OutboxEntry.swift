public import Foundation
public import HubProtocol
import LMDB

/// A record's newest state at the hub, as a verdict named it.
public struct HubVersion: Sendable, Hashable {
  /// The hub's per-account sequence number; 0 once its epoch was left, when it compares no more.
  public var version: UInt64
  /// A tombstone.
  public var isDeleted: Bool
  /// The payload; nil for a tombstone, or when it is not here.
  public var payload: Data?
  /// The payload is not here: the answer had no room for it, or a pull has handed it to the app's own
  /// store.
  public var isPayloadOmitted: Bool

  package init(version: UInt64, isDeleted: Bool, payload: Data?, isPayloadOmitted: Bool) {
    self.version = version
    self.isDeleted = isDeleted
    self.payload = payload
    self.isPayloadOmitted = isPayloadOmitted
  }

  /// What an edit is based on that was made in the sight of this version.
  public var base: Mutation.Base { isDeleted || version == 0 ? .mustNotExist : .version(version) }
}

/// Why a mutation is parked: kept in its place, visible, not sent by itself.
public struct Parked: Sendable, Hashable {
  /// The kind of refusal.
  public enum Reason: UInt8, Sendable, CaseIterable {
    /// The record moved on at the hub: keep the hub's, keep the local one, or merge.
    case conflict = 1
    /// The hub refused it for good; ``Parked/code`` says why.
    case rejected = 2
    /// It is longer than the hub takes.
    case tooLarge = 3
    /// It was adopted, or copied from another profile, where the account has an edit of the same record
    /// pending.
    case adopted = 4
    /// It was discarded; the hub's version is handed to the app before it goes.
    case discarding = 5
  }

  /// The kind of refusal.
  public var reason: Reason
  /// The hub's code, where it gave one.
  public var code: String?
  /// The record at the hub as this device knows it: as the hub named it when it refused the mutation,
  /// or newer where one has come since; nil where none is known.
  public var current: HubVersion?

  package init(reason: Reason, code: String? = nil, current: HubVersion? = nil) {
    self.reason = reason
    self.code = code
    self.current = current
  }
}

/// One mutation as it lies in the outbox.
public struct OutboxEntry: Sendable, Hashable {
  /// Its place: unique and growing within the area.
  public internal(set) var order: UInt64
  /// Its UUID, kept over crashes, restarts and adoption.
  public internal(set) var mutation: UUID
  /// The app gave the UUID and strikes it off.
  public internal(set) var isCallerGiven: Bool
  /// Bytes of the account under which it was enqueued; nil: signed out.
  package var stamp: Data?
  /// Put or delete.
  public internal(set) var kind: MutationKind
  /// The record.
  public internal(set) var record: RecordID
  /// What it is based on.
  public internal(set) var base: Mutation.Base?
  /// The high water known when it was first sent, in the area's epoch; nil: never sent. Stored apart,
  /// in `sent`.
  public package(set) var firstSent: UInt64?
  /// When it was enqueued, by this device's clock; for a person, decides nothing.
  public internal(set) var enqueuedAt: Date
  /// Why it is parked; nil: it is pending.
  public internal(set) var parked: Parked?
  /// The hub fails on this one; nil: it is not held. Stored apart, see ``PushTrouble``.
  public package(set) var held: Held?
  /// The payload of a put.
  public internal(set) var payload: Data?
  /// Whether a record with this edit is shown as the edit has it: not what was adopted beside what the
  /// account has, before the person has decided.
  package internal(set) var isShown = true

  /// How many payload bytes were ever enqueued in its area, up to and with it.
  var enqueuedByteCount: UInt64 = 0

  /// Whether its UUID has a row of its own: the app, or a person, may name it.
  var isNamed: Bool { isCallerGiven || parked != nil }

  /// The account under which it was enqueued; nil: signed out.
  package var account: VerifiedAccount? {
    stamp.flatMap { VerifiedAccount(storedBytes: $0, proof: .area) }
  }

  /// Forgets its payload and the hub's, for who keeps many entries and shows none.
  package mutating func dropPayloads() {
    payload = nil
    parked?.current?.payload = nil
  }

  /// Bytes that count against the outbox's limit.
  var payloadByteCount: Int { payload?.count ?? 0 }
}

extension OutboxEntry {
  fileprivate static let form: UInt8 = 2
  /// Where its UUID lies in the stored form.
  static let mutationOffset = 2

  /// The UUID of a stored entry, without reading the rest.
  static func mutation(_ bytes: RawSpan) throws(StoreError) -> UUID {
    guard bytes.byteCount >= mutationOffset + 16 else { throw .damaged("mutation") }
    return bytes.loadUUID(at: mutationOffset)
  }

  /// The sum that a stored entry carries, without reading the rest.
  static func enqueuedByteCount(_ bytes: RawSpan) throws(StoreError) -> UInt64 {
    guard bytes.byteCount >= mutationOffset + 24 else { throw .damaged("mutation") }
    return bytes.loadBigEndian(at: mutationOffset + 16)
  }

  /// How many bytes the sum and the time of the enqueue have, which lie behind the UUID.
  static let sumAndTimeByteCount = 16

  /// The form and the flags, with which a stored entry begins.
  static func flags(_ reader: inout SpanReader) throws(StoreError) -> UInt8 {
    guard try reader.readUInt8() == form else { throw reader.damaged }
    let flags = try reader.readUInt8()
    guard flags < 16 else { throw reader.damaged }
    return flags
  }

  enum Flag {
    static let isCallerGiven: UInt8 = 1
    static let isPut: UInt8 = 2
    static let isHidden: UInt8 = 4
    static let isParked: UInt8 = 8
  }

  func encoded() -> [UInt8] {
    let form = OutboxForm(self)
    return Array(unsafeUninitializedCapacity: form.byteCount(record, payload)) { room, count in
      form.write(record, payload, to: UnsafeMutableRawBufferPointer(room))
      count = room.count
    }
  }

  init(order: UInt64, bytes: RawSpan) throws(StoreError) {
    var reader = ByteReader(bytes, of: "mutation")
    guard try reader.readUInt8() == Self.form else { throw reader.damaged }
    let flags = try reader.readUInt8()
    guard flags < 16 else { throw reader.damaged }
    self.order = order
    isCallerGiven = flags & Flag.isCallerGiven != 0
    kind = flags & Flag.isPut != 0 ? .put : .delete
    isShown = flags & Flag.isHidden == 0
    mutation = try reader.readUUID()
    enqueuedByteCount = try reader.readUInt64()
    enqueuedAt = try reader.readTime()
    stamp = try reader.readOptional { (reader) throws(StoreError) in Data(try reader.readBytes()) }
    record = RecordID(uncheckedBytes: try reader.readBytes())
    base = try reader.readOptional { (reader) throws(StoreError) in try reader.readBase() }
    firstSent = nil
    parked = flags & Flag.isParked != 0 ? try reader.readParked() : nil
    held = nil
    payload = kind == .put ? reader.readLast() : nil
    try reader.requireEnd()
  }
}

/// The stored form of an entry but for record and payload, which are copied once, to their place.
struct OutboxForm {
  private let mutation: UUID
  private let flags: UInt8
  private let enqueuedByteCount: UInt64
  private let enqueuedAt: UInt64
  private let stamp: [UInt8]
  /// Base, and why it is parked; empty where there is neither, as with most.
  private let rest: [UInt8]

  init(_ entry: OutboxEntry) {
    self.init(
      mutation: entry.mutation, isCallerGiven: entry.isCallerGiven, kind: entry.kind,
      isShown: entry.isShown, enqueuedByteCount: entry.enqueuedByteCount,
      enqueuedAt: entry.enqueuedAt.storedMilliseconds, stamp: Self.form(ofStamp: entry.stamp),
      base: entry.base, parked: entry.parked)
  }

  /// - Parameter stamp: as ``form(ofStamp:)`` has it.
  init(
    mutation: UUID, isCallerGiven: Bool, kind: MutationKind, isShown: Bool,
    enqueuedByteCount: UInt64, enqueuedAt: UInt64, stamp: [UInt8], base: Mutation.Base?,
    parked: Parked?
  ) {
    var flags: UInt8 = 0
    if isCallerGiven { flags |= OutboxEntry.Flag.isCallerGiven }
    if kind == .put { flags |= OutboxEntry.Flag.isPut }
    if !isShown { flags |= OutboxEntry.Flag.isHidden }
    if parked != nil { flags |= OutboxEntry.Flag.isParked }
    self.mutation = mutation
    self.flags = flags
    self.enqueuedByteCount = enqueuedByteCount
    self.enqueuedAt = enqueuedAt
    self.stamp = stamp
    rest = base == nil && parked == nil ? [] : Self.form(of: base, parked)
  }

  static func form(ofStamp stamp: Data?) -> [UInt8] {
    var writer = ByteWriter(byteCount: 5 + (stamp?.count ?? 0))
    writer.write(stamp) { $0.write($1) }
    return writer.bytes
  }

  private static func form(of base: Mutation.Base?, _ parked: Parked?) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(base) { $0.write($1) }
    if let parked { writer.write(parked) }
    return writer.bytes
  }

  func byteCount(_ record: RecordID, _ payload: Data?) -> Int {
    34 + stamp.count + 4 + record.bytes.count + max(rest.count, 1) + (payload?.count ?? 0)
  }

  /// - Precondition: the room has ``byteCount(_:_:)`` bytes.
  func write(_ record: RecordID, _ payload: Data?, to room: UnsafeMutableRawBufferPointer) {
    precondition(
      room.count == byteCount(record, payload), "ProfileStore: an entry without its room")
    room.storeBytes(of: OutboxEntry.form, toByteOffset: 0, as: UInt8.self)
    room.storeBytes(of: flags, toByteOffset: 1, as: UInt8.self)
    room.storeBytes(of: mutation.uuid, toByteOffset: 2, as: uuid_t.self)
    room.storeBytes(of: enqueuedByteCount.bigEndian, toByteOffset: 18, as: UInt64.self)
    room.storeBytes(of: enqueuedAt.bigEndian, toByteOffset: 26, as: UInt64.self)
    var offset = 34
    func put(_ bytes: UnsafeRawBufferPointer) {
      UnsafeMutableRawBufferPointer(rebasing: room[offset...]).copyMemory(from: bytes)
      offset += bytes.count
    }
    stamp.withUnsafeBytes { put($0) }
    room.storeBytes(
      of: UInt32(record.bytes.count).bigEndian, toByteOffset: offset, as: UInt32.self)
    offset += 4
    record.bytes.withUnsafeBytes { put($0) }
    if rest.isEmpty {
      room.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self)
      offset += 1
    } else {
      rest.withUnsafeBytes { put($0) }
    }
    payload?.withUnsafeBytes { put($0) }
  }
}

extension ByteWriter {
  mutating func write(_ base: Mutation.Base) {
    switch base {
    case .mustNotExist: write(UInt8(0))
    case .version(let version):
      write(UInt8(1))
      write(version)
    case .mutation(let mutation):
      write(UInt8(2))
      write(mutation)
    }
  }

  mutating func write(_ parked: Parked) {
    write(parked.reason.rawValue)
    write(parked.code) { $0.write($1.utf8) }
    write(parked.current) { $0.write($1) }
  }

  mutating func write(_ version: HubVersion) {
    write(version.version)
    write(UInt8(version.isDeleted ? 1 : 0))
    write(UInt8(version.isPayloadOmitted ? 1 : 0))
    write(version.payload) { $0.write($1) }
  }
}

extension ByteReader {
  mutating func readBase() throws(StoreError) -> Mutation.Base {
    switch try readUInt8() {
    case 0: return .mustNotExist
    case 1: return .version(try readUInt64())
    case 2: return .mutation(try readUUID())
    default: throw damaged
    }
  }

  mutating func readParked() throws(StoreError) -> Parked {
    guard let reason = Parked.Reason(rawValue: try readUInt8()) else { throw damaged }
    return Parked(
      reason: reason,
      code: try readOptional { (reader) throws(StoreError) in try reader.readText() },
      current: try readOptional { (reader) throws(StoreError) in try reader.readHubVersion() })
  }

  mutating func readHubVersion() throws(StoreError) -> HubVersion {
    let version = try readUInt64()
    let isDeleted = try readFlag()
    let isPayloadOmitted = try readFlag()
    let payload = try readOptional { (reader) throws(StoreError) in Data(try reader.readBytes()) }
    return HubVersion(
      version: version, isDeleted: isDeleted, payload: payload, isPayloadOmitted: isPayloadOmitted)
  }
}
