public import Foundation

extension ChangesPage: HubMessage {
  /// Reads a page; see ``HubMessage/init(decoding:as:)``. Cost: in CBOR about a copy of the body.
  public init(decoding body: Data, as format: WireFormat) throws(WireError) {
    try self.init(wire: body, as: format)
  }

  /// The page; see ``HubMessage/encoded(as:)``.
  public func encoded(as format: WireFormat) -> Data { wire(as: format) }
}

extension RecordAnswer: HubMessage {
  /// Reads a body; see ``HubMessage/init(decoding:as:)``.
  public init(decoding body: Data, as format: WireFormat) throws(WireError) {
    try self.init(wire: body, as: format)
  }

  /// The body; see ``HubMessage/encoded(as:)``.
  public func encoded(as format: WireFormat) -> Data { wire(as: format) }
}

enum PageMember: String, WireMember {
  case hub, epoch, account, after, next, more, highWater, records
  static let table = WireMemberTable<PageMember>()
}

extension ChangesPage: WireCoded {
  var byteCountHint: Int {
    records.reduce(1024) { sum, record in
      sum + WireRecord.overheadByteCountHint + record.id.bytes.count + (record.payload?.count ?? 0)
    }
  }

  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var hub: UUID?
    var epoch: UUID?
    var account: AccountID?
    var after: UInt64?
    var next: UInt64?
    var more: Bool?
    var highWater: UInt64?
    var records: [WireRecord]?
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
        records = try reader.readList { (reader) throws(WireError) in
          try WireRecord(from: &reader, mayOmitPayload: false)
        }
      }
    }
    self.init(
      hub: try required(hub, PageMember.hub), epoch: try required(epoch, PageMember.epoch),
      account: try required(account, PageMember.account),
      after: try required(after, PageMember.after), next: try required(next, PageMember.next),
      more: try required(more, PageMember.more),
      highWater: try required(highWater, PageMember.highWater),
      records: try required(records, PageMember.records))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writeHead(to: &writer)
      writer.list(records) { record, writer in record.write(to: &writer) }
    }
  }

  /// Every member but the records, and the name before those.
  func writeHead<Writer: WireWriter>(to writer: inout Writer) {
    writer.member(PageMember.hub, uuid: hub)
    writer.member(PageMember.epoch, uuid: epoch)
    writer.member(PageMember.account, utf8: account.bytes)
    writer.member(PageMember.after, unsigned: after)
    writer.member(PageMember.next, unsigned: next)
    writer.member(PageMember.more, bool: more)
    writer.member(PageMember.highWater, unsigned: highWater)
    writer.name(PageMember.records.rawValue)
  }
}

private enum RecordAnswerMember: String, WireMember {
  case hub, epoch, account, record
  static let table = WireMemberTable<RecordAnswerMember>()
}

extension RecordAnswer: WireCoded {
  var byteCountHint: Int { 1024 + (record?.payload?.count ?? 0) }

  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var hub: UUID?
    var epoch: UUID?
    var account: AccountID?
    var record: WireRecord?
    var hasRecordMember = false
    try reader.readObject(RecordAnswerMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .hub: hub = try reader.uuid()
      case .epoch: epoch = try reader.uuid()
      case .account: account = try reader.accountID()
      case .record:
        hasRecordMember = true
        record =
          try reader.takeNull() ? nil : try WireRecord(from: &reader, mayOmitPayload: false)
      }
    }
    // "There is no such record" is an answer, silence is none.
    guard hasRecordMember else { throw missing(RecordAnswerMember.record) }
    self.init(
      hub: try required(hub, RecordAnswerMember.hub),
      epoch: try required(epoch, RecordAnswerMember.epoch),
      account: try required(account, RecordAnswerMember.account), record: record)
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(RecordAnswerMember.hub, uuid: hub)
      writer.member(RecordAnswerMember.epoch, uuid: epoch)
      writer.member(RecordAnswerMember.account, utf8: account.bytes)
      writer.name(RecordAnswerMember.record.rawValue)
      if let record { record.write(to: &writer) } else { writer.null() }
    }
  }
}
