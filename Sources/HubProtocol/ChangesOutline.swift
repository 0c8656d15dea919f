package import Foundation

/// A page of changes that stays in its body: each record is a few places within it, so that nothing is
/// made and nothing copied for a record. See ``ChangesPage``, which has the same members.
package struct ChangesOutline: Sendable {
  /// A record: numbers, and where in ``ChangesOutline/body`` its bytes lie.
  package struct Record: Sendable {
    package var version: UInt64
    /// 1 to 400 bytes of UTF-8.
    package var id: Range<Int>
    /// Empty for a tombstone.
    package var payload: Range<Int>
    package var isDeleted: Bool
  }

  package var hub: UUID
  package var epoch: UUID
  package var account: AccountID
  package var after: UInt64
  package var next: UInt64
  package var more: Bool
  package var highWater: UInt64
  package var records: [Record]
  /// What the records' places count from.
  package var body: [UInt8]

  /// Reads a body, checking what ``ChangesPage/init(decoding:as:)`` checks.
  /// - Throws: the same ``WireError``.
  /// - Cost: in CBOR the body is copied once; in JSON as a whole ``ChangesPage``.
  package init(decoding body: Data, as format: WireFormat) throws(WireError) {
    switch format {
    case .json: self.init(try ChangesPage(decoding: body, as: .json))
    case .cbor:
      var reader = CBORReader(body: body)
      try self.init(from: &reader)
      try reader.finish()
    }
  }

  /// Takes a page that has been read already.
  package init(_ page: ChangesPage) {
    hub = page.hub
    epoch = page.epoch
    account = page.account
    after = page.after
    next = page.next
    more = page.more
    highWater = page.highWater
    body = []
    records = []
    records.reserveCapacity(page.records.count)
    for record in page.records {
      let id = body.count..<body.count + record.id.bytes.count
      body += record.id.bytes
      if let payload = record.payload { body += payload }
      records.append(
        Record(
          version: record.version, id: id, payload: id.upperBound..<body.count,
          isDeleted: record.deleted))
    }
  }

  private init(from reader: inout CBORReader) throws(WireError) {
    var hub: UUID?
    var epoch: UUID?
    var account: AccountID?
    var after: UInt64?
    var next: UInt64?
    var more: Bool?
    var highWater: UInt64?
    var records: [Record]?
    try reader.readObject(PageMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .hub: hub = try reader.uuid()
      case .epoch: epoch = try reader.uuid()
      case .account: account = try reader.accountID()
      case .after: after = try reader.sequence()
      case .next: next = try reader.sequence()
      case .more: more = try reader.bool()
      case .highWater: highWater = try reader.sequence()
      case .records:
        records = try reader.readList { (reader) throws(WireError) in try Record(from: &reader) }
      }
    }
    self.hub = try required(hub, PageMember.hub)
    self.epoch = try required(epoch, PageMember.epoch)
    self.account = try required(account, PageMember.account)
    self.after = try required(after, PageMember.after)
    self.next = try required(next, PageMember.next)
    self.more = try required(more, PageMember.more)
    self.highWater = try required(highWater, PageMember.highWater)
    self.records = try required(records, PageMember.records)
    body = reader.bytes
  }
}

extension ChangesOutline.Record {
  @inline(__always)
  fileprivate init(from reader: inout CBORReader) throws(WireError) {
    var id: Range<Int>?
    var version: UInt64?
    var deleted: Bool?
    var payload: Range<Int>?
    var hasPayloadMember = false
    try reader.readObject(RecordMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .id: id = try reader.recordIDPlace()
      case .version: version = try reader.sequence()
      case .deleted: deleted = try reader.bool()
      case .payload:
        hasPayloadMember = true
        payload = try reader.takeNull() ? nil : try reader.payloadPlace()
      // Information that a page's reader makes no use of; their form is checked all the same.
      case .client, .mutation: _ = try reader.optionalUUID()
      }
    }
    let isTombstone = try required(deleted, RecordMember.deleted)
    guard hasPayloadMember else { throw missing(RecordMember.payload) }
    if isTombstone != (payload == nil) {
      let expectation = "null exactly if the record is deleted"
      throw WireError(isTombstone ? .unexpected : .illTyped, expectation)
        .inside(.member(RecordMember.payload.rawValue))
    }
    self.id = try required(id, RecordMember.id)
    self.version = try required(version, RecordMember.version)
    self.payload = payload ?? 0..<0
    isDeleted = isTombstone
  }
}

extension CBORReader {
  /// Where a record ID lies; see ``WireReader/recordID()``.
  @inline(__always)
  fileprivate mutating func recordIDPlace() throws(WireError) -> Range<Int> {
    let place = try textPlace("a record ID as text")
    guard place.count >= 1, place.count <= RecordID.byteCountMax else {
      throw WireError(
        .outOfRange, "a record ID has 1 to \(RecordID.byteCountMax) bytes of UTF-8")
    }
    return place
  }
}
