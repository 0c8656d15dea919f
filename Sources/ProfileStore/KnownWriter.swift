import Foundation
import HubProtocol
import LMDB

/// Takes in what the hub says of records, within one write transaction: rows of `known`, and payloads
/// where the area keeps them. ``end(_:)`` writes what belongs to all of them.
struct KnownWriter {
  private let tables: AreaTables
  private let keepsRecords: Bool
  private let epoch: UInt16
  private let comparison: VersionComparison
  /// The number of the scan from zero that is running; nil: none is.
  private let scan: UInt32?
  private let hasLost: Bool
  private var log: BodyLog
  /// Units that were written, which pay for as much tidying.
  private var written: UInt64 = 0

  init(
    _ area: Area, epoch: UUID, lineage: [LineageEntry], keepsRecords: Bool,
    _ transaction: inout WriteTransaction
  ) throws {
    tables = area.tables
    self.keepsRecords = keepsRecords
    var epochs = try tables.epochs(transaction)
    self.epoch = try tables.number(of: epoch, in: &epochs, &transaction)
    comparison = epochs.comparison(in: epoch, lineage: lineage)
    scan =
      try tables.scan(transaction) == nil
      ? nil : UInt32(truncatingIfNeeded: tables.number(.scanCount, transaction))
    hasLost = try transaction.count(of: tables.lost) > 0
    log = try tables.bodyLog(transaction)
  }

  /// Writes what belongs to all of it, and tidies as much as was written.
  mutating func end(_ transaction: inout WriteTransaction) throws {
    guard keepsRecords else { return }
    try tables.tidyBodies(units: 2 * written + 1_024, &log, &transaction)
    try tables.setBodyLog(log, &transaction)
  }

  // MARK: Pages

  /// A change by its ID, for taking rows in their order: what lies close together is found together.
  private struct Slot {
    /// The ID's first 8 bytes, big-endian.
    var prefix: UInt64
    var page: Int
    var index: Int
    /// Its number among all.
    var number: Int
  }

  /// Takes in pages of changes. Rows are written in the order of their IDs, payloads in that in which
  /// they came; of several versions of a record only the newest counts.
  /// - Parameter isKnownAlready: only the running scan learns that it has brought them.
  mutating func take(
    _ pages: [ChangePage], isKnownAlready: Bool, _ transaction: inout WriteTransaction
  ) throws {
    let slots = try Self.slots(pages)
    let isEmpty = try transaction.count(of: tables.known) == 0
    let first = log.next
    var isWanted = [Bool](repeating: false, count: slots.count)
    for (place, slot) in slots.enumerated() {
      let page = pages[slot.page]
      let head = try page.head(at: slot.index)
      if place + 1 < slots.count, try Self.isSameRecord(slot, slots[place + 1], pages) { continue }
      if head.flags.contains(.isSkipped) { continue }
      try RecordBytes.withBytes(of: page.id(head)) { id in
        let row = isEmpty ? nil : try transaction.value(of: id, in: tables.knownInPlace)
        if isKnownAlready || head.flags.contains(.isOutdated) {
          return try mark(id, row, &transaction)
        }
        if hasLost {
          let record = RecordID(uncheckedBytes: page.id(head).copiedBytes())
          if !head.flags.contains(.isInferred) { try transaction.delete(record, in: tables.lost) }
        }
        isWanted[slot.number] = try take(
          head, of: page, id, row, at: first + UInt64(slot.number), &transaction)
      }
    }
    guard keepsRecords else { return }
    try putBodies(pages, isWanted, first, &transaction)
    log.next = first + UInt64(slots.count)
  }

  private func putBodies(
    _ pages: [ChangePage], _ isWanted: [Bool], _ first: UInt64,
    _ transaction: inout WriteTransaction
  ) throws {
    var number = 0
    for page in pages {
      for index in 0..<page.count {
        defer { number += 1 }
        guard isWanted[number] else { continue }
        let head = try page.head(at: index)
        try tables.putBody(
          id: page.id(head), payload: page.payload(head), version: head.version, epoch: epoch,
          at: first + UInt64(number), &transaction)
      }
    }
  }

  private static func slots(_ pages: [ChangePage]) throws -> [Slot] {
    var slots: [Slot] = []
    slots.reserveCapacity(pages.reduce(0) { $0 + $1.count })
    for (page, contents) in pages.enumerated() {
      for index in 0..<contents.count {
        let id = contents.id(try contents.head(at: index))
        slots.append(Slot(prefix: prefix(id), page: page, index: index, number: slots.count))
      }
    }
    try slots.sort { left, right in
      if left.prefix != right.prefix { return left.prefix < right.prefix }
      let order = try compare(left, right, pages)
      return order == 0 ? left.number < right.number : order < 0
    }
    return slots
  }

  private static func prefix(_ id: RawSpan) -> UInt64 {
    if id.byteCount >= 8 { return id.loadBigEndian(UInt64.self) }
    var prefix: UInt64 = 0
    for offset in 0..<id.byteCount {
      prefix |= UInt64(id.loadBigEndian(UInt8.self, at: offset)) << UInt64(56 - 8 * offset)
    }
    return prefix
  }

  private static func compare(_ left: Slot, _ right: Slot, _ pages: [ChangePage]) throws -> Int {
    let one = pages[left.page]
    let other = pages[right.page]
    let first = one.id(try one.head(at: left.index))
    let second = other.id(try other.head(at: right.index))
    return byteOrder(first, second)
  }

  private static func isSameRecord(
    _ left: Slot, _ right: Slot, _ pages: [ChangePage]
  ) throws -> Bool {
    guard left.prefix == right.prefix else { return false }
    return try compare(left, right, pages) == 0
  }

  // MARK: One record

  private func mark(
    _ id: RecordBytes, _ row: KnownRecord?, _ transaction: inout WriteTransaction
  ) throws {
    guard let scan, var row, row.scan != scan else { return }
    row.scan = scan
    try transaction.put(row, for: id, in: tables.knownInPlace)
  }

  /// - Returns: whether its payload is to be written at the place.
  private mutating func take(
    _ head: ChangePage.Head, of page: ChangePage, _ id: RecordBytes, _ before: KnownRecord?,
    at place: UInt64, _ transaction: inout WriteTransaction
  ) throws -> Bool {
    var row = before ?? KnownRecord()
    if head.flags.contains(.isInferred) {
      guard before != nil else { return false }
      if keepsRecords { try tables.dropBody(row.body, isGone: true, &log, &transaction) }
      try transaction.delete(id, in: tables.knownInPlace)
      return false
    }
    if let scan { row.scan = scan }
    let mark = KnownRecord.Mark(
      epoch: epoch, version: head.version, isDeleted: head.flags.contains(.isDeleted))
    if let applied = row.applied, let known = try comparison.version(applied), known > mark.version
    {
      // Older than known.
      if row != before { try transaction.put(row, for: id, in: tables.knownInPlace) }
      return false
    }
    row.applied = mark
    var isBehind = false
    if let ahead = row.ahead, let known = try comparison.version(ahead.mark), known > mark.version {
      isBehind = true
    } else {
      row.ahead = nil
    }
    var isWanted = false
    if keepsRecords, !isBehind {
      if mark.isDeleted {
        try tables.dropBody(row.body, isGone: true, &log, &transaction)
        row.body = nil
      } else if try before?.newest != mark || !isThere(row.body, head, of: page, transaction) {
        try tables.dropBody(row.body, isGone: false, &log, &transaction)
        row.body = count(head, at: place)
        isWanted = true
      }
    }
    if row != before { try transaction.put(row, for: id, in: tables.knownInPlace) }
    return isWanted
  }

  /// A replay brings most records in the version that is here: what is whole is not written again.
  private func isThere(
    _ body: KnownRecord.Body?, _ head: ChangePage.Head, of page: ChangePage,
    _ transaction: borrowing WriteTransaction
  ) throws -> Bool {
    guard let body, let bytes = try transaction.bytes(of: body.place, in: tables.bodies) else {
      return false
    }
    let stored = try StoredBody(bytes)
    guard stored.version == head.version, stored.epoch == epoch,
      stored.payload.byteCount == head.payloadByteCount
    else { return false }
    return byteOrder(stored.payload, page.payload(head)) == 0
  }

  private mutating func count(_ head: ChangePage.Head, at place: UInt64) -> KnownRecord.Body {
    let units = BodyLog.units(
      byteCount: BodyLog.headByteCount + head.idByteCount + head.payloadByteCount)
    written += UInt64(units)
    log.count(units)
    return KnownRecord.Body(place: place, units: units)
  }

  // MARK: Versions that no pull has brought

  /// Takes in a version that a verdict names, or that the hub gave a mutation of this device.
  /// - Parameter payload: nil: deleted.
  mutating func take(
    _ record: RecordID, version: UInt64, payload: Data?, isOwn: Bool,
    _ transaction: inout WriteTransaction
  ) throws {
    let id = record.bytes.span.bytes
    guard let payload else {
      return try take(id, version: version, payload: nil, isOwn: isOwn, &transaction)
    }
    try take(id, version: version, payload: payload.span.bytes, isOwn: isOwn, &transaction)
  }

  /// The same, of a record whose ID and payload lie in memory that is no page of the area.
  mutating func take(
    _ record: RawSpan, version: UInt64, payload: RawSpan?, isOwn: Bool,
    _ transaction: inout WriteTransaction
  ) throws {
    let isDeleted = payload == nil
    try RecordBytes.withBytes(of: record) { id in
      var row = try transaction.value(of: id, in: tables.knownInPlace) ?? KnownRecord()
      if let newest = row.newest, let known = try comparison.version(newest), known >= version {
        return
      }
      // The hub has the record, or its deletion, in this epoch: it is lost no more, and an edit is
      // based on that.
      if hasLost { try transaction.delete(RecordID(copying: record), in: tables.lost) }
      let mark = KnownRecord.Mark(epoch: epoch, version: version, isDeleted: isDeleted)
      row.ahead = KnownRecord.Ahead(mark: mark, isOwn: isOwn)
      if keepsRecords {
        try tables.dropBody(row.body, isGone: isDeleted, &log, &transaction)
        row.body = nil
        if let payload {
          let body = try tables.appendBody(
            id: record, payload: payload, version: version, epoch: epoch, &log, &transaction)
          written += UInt64(body.units)
          row.body = body
        }
      }
      try transaction.put(row, for: id, in: tables.knownInPlace)
    }
  }
}
