import Foundation
import HubProtocol
import LMDB

/// How far the log of payloads has come, and how much of it is in use.
///
/// A new version is written behind all others, so that records with random IDs fill pages instead of
/// touching one each; the version before it stays where it is until the log is tidied. A value, kept
/// in the area beside the log.
struct BodyLog: Sendable, Hashable {
  /// The place that the next body gets; the first is 1.
  var next: UInt64 = 1
  /// Units of all bodies that are there.
  var total: UInt64 = 0
  /// Units of those that a row names.
  var live: UInt64 = 0
  /// How many bodies a row names.
  var liveCount: UInt64 = 0

  /// Bytes of a body before the ID and payload: version, epoch, length of the ID.
  static let headByteCount = 12
  /// A body of so many units lies on pages of its own; it goes at once when it is superseded.
  static let largeUnits = UInt8.max
  /// The log is tidied while more than half as much again as is in use is there, and not only a little.
  static let slackUnitsMin: UInt64 = 4_096

  /// What a body counts for: 16 bytes each, with what LMDB adds to it.
  static func units(byteCount: Int) -> UInt8 { UInt8(min(255, (byteCount + 33) / 16)) }

  /// Whether a log can have come to this: so that nothing that is counted on from here overflows.
  var isPossible: Bool {
    next > 0 && next < 1 << 60 && total < 1 << 60 && live <= total && liveCount < next
  }

  /// How much could be given back.
  var hasSlack: Bool { total > live + live / 2 + Self.slackUnitsMin }

  /// A body is there, and a row names it.
  mutating func count(_ units: UInt8) {
    total += UInt64(units)
    live += UInt64(units)
    liveCount += 1
  }

  mutating func append(_ units: UInt8) -> KnownRecord.Body {
    defer { next += 1 }
    count(units)
    return KnownRecord.Body(place: next, units: units)
  }

  /// No row names it any more; it stays in the log.
  /// - Throws: `damaged` where the sums are none of such a log.
  mutating func supersede(_ body: KnownRecord.Body) throws(StoreError) {
    guard live >= UInt64(body.units), liveCount > 0 else { throw .damaged("bodies") }
    live -= UInt64(body.units)
    liveCount -= 1
  }

  /// It is taken out of the log.
  mutating func remove(_ units: UInt8) throws(StoreError) {
    guard total >= UInt64(units) else { throw .damaged("bodies") }
    total -= UInt64(units)
  }
}

/// One body, as it lies in the log.
struct StoredBody: ~Escapable {
  let version: UInt64
  let epoch: UInt16
  /// The record's ID.
  let id: RawSpan
  let payload: RawSpan

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) throws(StoreError) {
    guard bytes.byteCount >= BodyLog.headByteCount else { throw .damaged("a record") }
    version = bytes.loadBigEndian(at: 0)
    epoch = bytes.loadBigEndian(at: 8)
    let idByteCount = Int(bytes.loadBigEndian(UInt16.self, at: 10))
    let start = BodyLog.headByteCount + idByteCount
    guard start <= bytes.byteCount else { throw .damaged("a record") }
    id = bytes.extracting(BodyLog.headByteCount..<start)
    payload = bytes.extracting(start..<bytes.byteCount)
  }
}

extension AreaTables {
  /// Writes a payload behind all others.
  func appendBody(
    id: RawSpan, payload: RawSpan, version: UInt64, epoch: UInt16, _ log: inout BodyLog,
    _ transaction: inout WriteTransaction
  ) throws -> KnownRecord.Body {
    let byteCount = BodyLog.headByteCount + id.byteCount + payload.byteCount
    let body = log.append(BodyLog.units(byteCount: byteCount))
    try putBody(
      id: id, payload: payload, version: version, epoch: epoch, at: body.place, &transaction)
    return body
  }

  /// Writes a payload at a place that was counted before.
  func putBody(
    id: RawSpan, payload: RawSpan, version: UInt64, epoch: UInt16, at place: UInt64,
    _ transaction: inout WriteTransaction
  ) throws {
    let byteCount = BodyLog.headByteCount + id.byteCount + payload.byteCount
    try transaction.append(byteCount: byteCount, for: place, in: bodies) { room in
      room.withUnsafeMutableBytes { room, filled in
        room.storeBytes(of: version.bigEndian, as: UInt64.self)
        room.storeBytes(of: epoch.bigEndian, toByteOffset: 8, as: UInt16.self)
        room.storeBytes(
          of: UInt16(id.byteCount).bigEndian, toByteOffset: 10, as: UInt16.self)
        id.withUnsafeBytes {
          UnsafeMutableRawBufferPointer(rebasing: room[BodyLog.headByteCount...])
            .copyMemory(from: $0)
        }
        payload.withUnsafeBytes {
          UnsafeMutableRawBufferPointer(rebasing: room[(BodyLog.headByteCount + id.byteCount)...])
            .copyMemory(from: $0)
        }
        filled = byteCount
      }
    }
  }

  /// Gives a body up that is superseded: a large one goes at once, another with the next tidying.
  /// - Parameter isGone: the record was deleted: its payload does not stay either.
  func dropBody(
    _ body: KnownRecord.Body?, isGone: Bool, _ log: inout BodyLog,
    _ transaction: inout WriteTransaction
  ) throws {
    guard let body else { return }
    try log.supersede(body)
    guard isGone || body.units == BodyLog.largeUnits else { return }
    if try transaction.delete(body.place, in: bodies) { try log.remove(body.units) }
  }

  /// Moves what is in use away from the log's beginning and gives its pages back, in proportion to
  /// what was written, so that no call pays for what others left.
  /// - Parameter units: how many may be looked at.
  func tidyBodies(
    units: UInt64, _ log: inout BodyLog, _ transaction: inout WriteTransaction
  ) throws {
    var left = Int64(clamping: units)
    while log.hasSlack, left > 0 {
      guard try tidySome(&left, &log, &transaction) else { return }
    }
  }

  /// - Returns: whether there was anything.
  private func tidySome(
    _ left: inout Int64, _ log: inout BodyLog, _ transaction: inout WriteTransaction
  ) throws -> Bool {
    var held: [[UInt8]] = []
    var places: [UInt64] = []
    try transaction.scan(bodies, limit: 256) { key, value in
      let units = BodyLog.units(byteCount: value.byteCount)
      left -= Int64(units)
      places.append(try UInt64Codec.decode(key))
      held.append(value.copiedBytes())
      return left > 0 ? .next : .stop
    }
    guard let last = places.last else { return false }
    for (place, bytes) in zip(places, held) {
      let units = BodyLog.units(byteCount: bytes.count)
      let body = try StoredBody(bytes.span.bytes)
      try log.remove(units)
      try RecordBytes.withBytes(of: body.id) { id in
        guard var row = try transaction.value(of: id, in: knownInPlace), row.body?.place == place
        else { return }
        try log.supersede(KnownRecord.Body(place: place, units: units))
        row.body = log.append(units)
        try transaction.append(bytes, for: log.next - 1, in: bodies)
        try transaction.put(row, for: id, in: knownInPlace)
      }
    }
    try transaction.deleteAll(in: bodies, .upThrough(last))
    return true
  }
}
