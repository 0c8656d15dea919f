public import Foundation
import HubProtocol
import LMDB

/// How much lies in an outbox, so that a limit costs no scan.
///
/// Each entry carries how many payload bytes were ever enqueued up to it, so that an enqueue writes no
/// sums: they are what was stored when something was last taken out, and what came since.
struct OutboxTotals: Sendable, Hashable {
  var count: UInt64 = 0
  var parked: UInt64 = 0
  var payloadByteCount: UInt64 = 0
  /// The last order given.
  var lastOrder: UInt64 = 0
  /// Payload bytes that were ever enqueued.
  var enqueuedByteCount: UInt64 = 0
  /// Whether they are more than what the entries themselves say.
  var needStoring = false

  init() {}

  /// Reads the stored form, in place: every enqueue does.
  init(_ bytes: RawSpan) throws(StoreError) {
    guard bytes.byteCount == 32 else { throw .damaged(AreaKey.totals.rawValue) }
    parked = bytes.loadBigEndian(at: 0)
    payloadByteCount = bytes.loadBigEndian(at: 8)
    lastOrder = bytes.loadBigEndian(at: 16)
    enqueuedByteCount = bytes.loadBigEndian(at: 24)
  }

  /// The stored form; ``count`` is that of the table.
  func write(to writer: inout ByteWriter) {
    writer.write(parked)
    writer.write(payloadByteCount)
    writer.write(lastOrder)
    writer.write(enqueuedByteCount)
  }

  /// An entry that is behind all others.
  /// - Throws: `damaged` where the stored sums are none of an outbox with that content.
  mutating func add(payloadByteCount: Int, isParked: Bool) throws(StoreError) {
    count = try Self.sum(count, 1)
    self.payloadByteCount = try Self.sum(self.payloadByteCount, Int64(payloadByteCount))
    enqueuedByteCount = try Self.sum(enqueuedByteCount, Int64(payloadByteCount))
    if isParked { try change(parked: 1) }
  }

  /// Any other change.
  /// - Throws: as ``add(payloadByteCount:isParked:)``.
  mutating func change(
    count: Int64 = 0, parked: Int64 = 0, payloadByteCount: Int64 = 0
  ) throws(StoreError) {
    self.count = try Self.sum(self.count, count)
    self.parked = try Self.sum(self.parked, parked)
    self.payloadByteCount = try Self.sum(self.payloadByteCount, payloadByteCount)
    needStoring = true
  }

  /// Whether the limits leave room for one more.
  func hasRoom(for mutation: Mutation, _ limits: StoreLimits) -> Bool {
    Int(clamping: count) < limits.outboxCountMax
      && Int(clamping: payloadByteCount)
        <= limits.outboxByteCountMax - (mutation.payload?.count ?? 0)
  }

  private static func sum(_ stored: UInt64, _ change: Int64) throws(StoreError) -> UInt64 {
    let (sum, isOver) =
      change < 0
      ? stored.subtractingReportingOverflow(change.magnitude)
      : stored.addingReportingOverflow(change.magnitude)
    guard !isOver else { throw .damaged("outbox totals") }
    return sum
  }
}

/// Who and where an area is, written once.
struct AreaIdentity: Sendable, Hashable {
  /// The format that this version writes. A store of a higher one is refused.
  static let format: UInt32 = 2

  var area: AreaID
  var createdAt: Date

  init(area: AreaID, createdAt: Date) {
    self.area = area
    self.createdAt = createdAt
  }

  /// Reads the stored form: the format first, since what follows it may have changed.
  init(_ bytes: RawSpan) throws(StoreError) {
    var reader = ByteReader(bytes, of: "identity of an area")
    let format = try reader.readUInt32()
    guard format <= Self.format else {
      throw StoreError(
        .newerFormat,
        "the area has format \(format), this version reads up to \(Self.format): update the "
          + "program")
    }
    guard format == Self.format else {
      throw StoreError(
        .olderFormat,
        "the area has format \(format), which was never released: send what it holds with the "
          + "program that wrote it, then begin a new store")
    }
    area = AreaID(uuid: try reader.readUUID())
    createdAt = try reader.readTime()
    try reader.requireEnd()
  }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.write(Self.format)
    writer.write(area.uuid)
    writer.write(createdAt)
    return writer.bytes
  }
}

/// The file in which an area lives; another one means a copy.
struct FileIdentity: Sendable, Hashable {
  var device: UInt64
  var inode: UInt64
  var machine: [UInt8]
}

extension FileIdentity {
  /// A data file of this machine.
  init(_ file: Environment.FileIdentity) {
    self.init(device: file.device, inode: file.inode, machine: Files.machine)
  }
}

/// The client that an area is at the hub.
package struct ClientIdentity: Sendable, Hashable {
  package var id: UUID
  package var isRegistered: Bool

  package init(id: UUID, isRegistered: Bool) {
    self.id = id
    self.isRegistered = isRegistered
  }
}

/// A scan from zero that is under way. (Contract section 6.)
package struct ScanState: Sendable, Hashable {
  package enum Kind: UInt8, Sendable {
    /// The area's first pull.
    case first = 1
    /// The hub purged tombstones that the cursor needs (410).
    case expired = 2
    /// A replay that takes up a new epoch.
    case newEpoch = 3
    /// A replay that the app asked for.
    case replay = 4
  }

  package enum Phase: UInt8, Sendable {
    /// Pages up to `until` are being brought.
    case legs = 1
    /// They were; the pull from `until` and what follows it is still to come.
    case tail = 2
  }

  /// Names this scan; a continuation carries it.
  package var id: UUID
  package var kind: Kind
  package var epoch: UUID
  package var until: UInt64
  /// Everything up to it was delivered and committed.
  package var place: UInt64
  package var phase: Phase

  package init(
    id: UUID, kind: Kind, epoch: UUID, until: UInt64, place: UInt64 = 0, phase: Phase = .legs
  ) {
    self.id = id
    self.kind = kind
    self.epoch = epoch
    self.until = until
    self.place = place
    self.phase = phase
  }

  /// Whether any pass goes on with it by itself.
  package var isForced: Bool { kind != .replay }
}

/// How the last pass ended, for a person.
public struct PassOutcome: Sendable, Hashable {
  /// When, by this device's clock, to 5 minutes: later passes that end alike are not noted by themselves
  /// until then.
  public var endedAt: Date
  /// Whether it did all it had to do.
  public var isComplete: Bool
  /// One sentence; empty for a complete pass.
  public var message: String

  package init(endedAt: Date, isComplete: Bool, message: String) {
    self.endedAt = endedAt
    self.isComplete = isComplete
    self.message = message
  }

  /// How far apart passes that end alike are noted, in seconds.
  package static let noteInterval = 300.0

  /// Whether it says as much as a later one. A clock that was set back makes none older.
  package func says(_ later: PassOutcome) -> Bool {
    isComplete == later.isComplete && message == later.message
      && (0..<Self.noteInterval).contains(later.endedAt.timeIntervalSince(endedAt))
  }
}

/// Reading and writing the single values, within somebody's transaction.
extension AreaTables {
  private func read<T: Transaction & ~Copyable, V>(
    _ key: AreaKey, _ transaction: borrowing T,
    _ body: (inout ByteReader) throws(StoreError) -> V
  ) throws -> V? {
    guard let bytes = try transaction.bytes(of: key.rawValue, in: values) else { return nil }
    var reader = ByteReader(bytes, of: key.rawValue)
    let value = try body(&reader)
    try reader.requireEnd()
    return value
  }

  private func write(
    _ key: AreaKey, _ transaction: inout WriteTransaction, _ body: (inout ByteWriter) -> Void
  ) throws {
    var writer = ByteWriter()
    body(&writer)
    try transaction.put(writer.bytes, for: key.rawValue, in: values)
  }

  func clear(_ key: AreaKey, _ transaction: inout WriteTransaction) throws {
    try transaction.delete(key.rawValue, in: values)
  }

  func identity<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> AreaIdentity? {
    guard let bytes = try transaction.bytes(of: AreaKey.identity.rawValue, in: values) else {
      return nil
    }
    return try AreaIdentity(bytes)
  }

  func setIdentity(_ identity: AreaIdentity, _ transaction: inout WriteTransaction) throws {
    try transaction.put(identity.encoded, for: AreaKey.identity.rawValue, in: values)
  }

  func owner<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> Data? {
    try transaction.value(of: AreaKey.owner.rawValue, in: values).map { Data($0) }
  }

  /// Whether the area is that account's, compared in place; nil: it is unowned.
  func isOwned<T: Transaction & ~Copyable>(
    by account: Data, _ transaction: borrowing T
  ) throws -> Bool? {
    guard let owner = try transaction.bytes(of: AreaKey.owner.rawValue, in: values) else {
      return nil
    }
    return owner.isEqual(to: account.bytes)
  }

  func setOwner(_ account: Data, _ transaction: inout WriteTransaction) throws {
    try transaction.put(Array(account), for: AreaKey.owner.rawValue, in: values)
  }

  func state<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> AreaState {
    guard let bytes = try transaction.bytes(of: AreaKey.state.rawValue, in: values) else {
      return .active
    }
    return try AreaState(bytes)
  }

  func setState(_ state: AreaState, _ transaction: inout WriteTransaction) throws {
    try transaction.put(state.encoded, for: AreaKey.state.rawValue, in: values)
  }

  func client<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> ClientIdentity? {
    try read(.client, transaction) { (reader) throws(StoreError) in
      ClientIdentity(id: try reader.readUUID(), isRegistered: try reader.readFlag())
    }
  }

  func setClient(_ client: ClientIdentity, _ transaction: inout WriteTransaction) throws {
    try write(.client, &transaction) { writer in
      writer.write(client.id)
      writer.write(UInt8(client.isRegistered ? 1 : 0))
    }
  }

  func file<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> FileIdentity? {
    try read(.file, transaction) { (reader) throws(StoreError) in
      FileIdentity(
        device: try reader.readUInt64(), inode: try reader.readUInt64(),
        machine: try reader.readBytes())
    }
  }

  func setFile(_ file: FileIdentity, _ transaction: inout WriteTransaction) throws {
    try write(.file, &transaction) { writer in
      writer.write(file.device)
      writer.write(file.inode)
      writer.write(file.machine)
    }
  }

  func number<T: Transaction & ~Copyable>(
    _ key: AreaKey, _ transaction: borrowing T
  ) throws -> UInt64 {
    try read(key, transaction) { (reader) throws(StoreError) in try reader.readUInt64() } ?? 0
  }

  func setNumber(
    _ key: AreaKey, _ number: UInt64, _ transaction: inout WriteTransaction
  ) throws {
    try write(key, &transaction) { $0.write(number) }
  }

  /// Counts on.
  /// - Throws: `damaged` where the stored number is the last there is.
  func next(_ key: AreaKey, _ transaction: inout WriteTransaction) throws -> UInt64 {
    let (number, isOver) = try number(key, transaction).addingReportingOverflow(1)
    guard !isOver else { throw StoreError.damaged(key.rawValue) }
    try setNumber(key, number, &transaction)
    return number
  }

  func totals<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> OutboxTotals {
    var totals = OutboxTotals()
    if let bytes = try transaction.bytes(of: AreaKey.totals.rawValue, in: values) {
      totals = try OutboxTotals(bytes)
    }
    totals.count = UInt64(try transaction.count(of: outbox))
    try transaction.scan(outbox, reversed: true, limit: 1) { key, bytes in
      let order = try UInt64Codec.decode(key)
      guard order > totals.lastOrder else { return .stop }
      totals.lastOrder = order
      let enqueued = try OutboxEntry.enqueuedByteCount(bytes)
      let (since, isOver) = enqueued.subtractingReportingOverflow(totals.enqueuedByteCount)
      let (sum, isSumOver) = totals.payloadByteCount.addingReportingOverflow(since)
      guard !isOver, !isSumOver else { throw StoreError.damaged("outbox totals") }
      totals.enqueuedByteCount = enqueued
      totals.payloadByteCount = sum
      return .stop
    }
    return totals
  }

  /// Stores the sums, unless the entries themselves say them.
  func setTotals(_ totals: OutboxTotals, _ transaction: inout WriteTransaction) throws {
    guard totals.needStoring else { return }
    try write(.totals, &transaction) { totals.write(to: &$0) }
  }

  func cursor<T: Transaction & ~Copyable>(
    _ key: AreaKey = .cursor, _ transaction: borrowing T
  ) throws -> Cursor? {
    try read(key, transaction) { (reader) throws(StoreError) in
      Cursor(epoch: try reader.readUUID(), sequence: try reader.readUInt64())
    }
  }

  func setCursor(
    _ key: AreaKey = .cursor, _ cursor: Cursor, _ transaction: inout WriteTransaction
  ) throws {
    try write(key, &transaction) { writer in
      writer.write(cursor.epoch)
      writer.write(cursor.sequence)
    }
  }

  func hubLimits<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> HubLimits? {
    try read(.hubLimits, transaction) { (reader) throws(StoreError) in
      func next() throws(StoreError) -> Int { Int(clamping: try reader.readUInt64()) }
      return HubLimits(
        pullRecords: try next(), pullBytes: try next(), pushMutations: try next(),
        pushBytes: try next(), payloadBytes: try next(), waitSeconds: try next())
    }
  }

  func setHubLimits(_ limits: HubLimits, _ transaction: inout WriteTransaction) throws {
    try write(.hubLimits, &transaction) { writer in
      for number in [
        limits.pullRecords, limits.pullBytes, limits.pushMutations, limits.pushBytes,
        limits.payloadBytes, limits.waitSeconds,
      ] { writer.write(UInt64(max(0, number))) }
    }
  }

  func lineage<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> [LineageEntry] {
    try read(.lineage, transaction) { (reader) throws(StoreError) in
      var entries: [LineageEntry] = []
      for _ in 0..<(try reader.readUInt32()) {
        entries.append(
          LineageEntry(epoch: try reader.readUUID(), forkedAt: try reader.readUInt64()))
      }
      return entries
    } ?? []
  }

  func setLineage(_ lineage: [LineageEntry], _ transaction: inout WriteTransaction) throws {
    try write(.lineage, &transaction) { writer in
      writer.write(UInt32(lineage.count))
      for entry in lineage {
        writer.write(entry.epoch)
        writer.write(entry.forkedAt)
      }
    }
  }

  func scan<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> ScanState? {
    try read(.scan, transaction) { (reader) throws(StoreError) in
      let id = try reader.readUUID()
      guard let kind = ScanState.Kind(rawValue: try reader.readUInt8()) else {
        throw reader.damaged
      }
      let epoch = try reader.readUUID()
      let until = try reader.readUInt64()
      let place = try reader.readUInt64()
      guard let phase = ScanState.Phase(rawValue: try reader.readUInt8()) else {
        throw reader.damaged
      }
      return ScanState(id: id, kind: kind, epoch: epoch, until: until, place: place, phase: phase)
    }
  }

  func setScan(_ scan: ScanState, _ transaction: inout WriteTransaction) throws {
    try write(.scan, &transaction) { writer in
      writer.write(scan.id)
      writer.write(scan.kind.rawValue)
      writer.write(scan.epoch)
      writer.write(scan.until)
      writer.write(scan.place)
      writer.write(scan.phase.rawValue)
    }
  }

  func epochs<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> EpochList {
    try read(.epochs, transaction) { (reader) throws(StoreError) in
      var epochs: [UUID] = []
      for _ in 0..<(try reader.readUInt32()) { epochs.append(try reader.readUUID()) }
      return EpochList(epochs)
    } ?? EpochList()
  }

  /// The number of an epoch, given to it where it has none yet.
  func number(
    of epoch: UUID, in list: inout EpochList, _ transaction: inout WriteTransaction
  ) throws -> UInt16 {
    if let number = list.number(of: epoch) { return number }
    let number = try list.add(epoch)
    try write(.epochs, &transaction) { writer in
      writer.write(UInt32(list.epochs.count))
      for epoch in list.epochs { writer.write(epoch) }
    }
    return number
  }

  func bodyLog<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> BodyLog {
    try read(.bodies, transaction) { (reader) throws(StoreError) in
      let log = BodyLog(
        next: try reader.readUInt64(), total: try reader.readUInt64(),
        live: try reader.readUInt64(), liveCount: try reader.readUInt64())
      guard log.isPossible else { throw reader.damaged }
      return log
    } ?? BodyLog()
  }

  func setBodyLog(_ log: BodyLog, _ transaction: inout WriteTransaction) throws {
    try write(.bodies, &transaction) { writer in
      writer.write(log.next)
      writer.write(log.total)
      writer.write(log.live)
      writer.write(log.liveCount)
    }
  }

  func lastPass<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> PassOutcome? {
    try read(.lastPass, transaction) { (reader) throws(StoreError) in
      PassOutcome(
        endedAt: try reader.readTime(),
        isComplete: try reader.readFlag(), message: try reader.readText())
    }
  }

  func setLastPass(_ outcome: PassOutcome, _ transaction: inout WriteTransaction) throws {
    try write(.lastPass, &transaction) { writer in
      writer.write(outcome.endedAt)
      writer.write(UInt8(outcome.isComplete ? 1 : 0))
      writer.write(outcome.message.utf8)
    }
  }
}
