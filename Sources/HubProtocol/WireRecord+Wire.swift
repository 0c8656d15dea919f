import Foundation

enum RecordMember: String, WireMember {
  case id, version, deleted, payload, client, mutation
  static let table = WireMemberTable<RecordMember>()
}

extension WireRecord {
  /// About how many bytes it takes beside its payload: names, two UUIDs, integers.
  static let overheadByteCountHint = 160

  /// - Parameter mayOmitPayload: The record is a verdict's `current`, whose payload may be left
  ///   out; in a page a missing payload is an error.
  @inline(__always)
  init<Reader: WireReader>(
    from reader: inout Reader, mayOmitPayload: Bool
  ) throws(WireError) {
    var id: RecordID?
    var version: UInt64?
    var deleted: Bool?
    var payload: Data?
    var hasPayloadMember = false
    var client: UUID?
    var mutation: UUID?
    try reader.readObject(RecordMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .id: id = try reader.recordID()
      case .version: version = try reader.sequence()
      case .deleted: deleted = try reader.bool()
      case .payload:
        hasPayloadMember = true
        payload = try reader.takeNull() ? nil : try reader.payload()
      case .client: client = try reader.optionalUUID()
      case .mutation: mutation = try reader.optionalUUID()
      }
    }
    let isTombstone = try required(deleted, RecordMember.deleted)
    guard hasPayloadMember || mayOmitPayload else { throw missing(RecordMember.payload) }
    if hasPayloadMember, isTombstone != (payload == nil) {
      let expectation = "null exactly if the record is deleted"
      throw WireError(isTombstone ? .unexpected : .illTyped, expectation)
        .inside(.member(RecordMember.payload.rawValue))
    }
    self.init(
      id: try required(id, RecordMember.id),
      version: try required(version, RecordMember.version),
      deleted: isTombstone, payload: payload, client: client, mutation: mutation,
      isPayloadOmitted: !hasPayloadMember && !isTombstone)
  }

  @inline(__always)
  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(RecordMember.id, utf8: id.bytes)
      writer.member(RecordMember.version, unsigned: version)
      writer.member(RecordMember.deleted, bool: deleted)
      if !isPayloadOmitted {
        writer.name(RecordMember.payload.rawValue)
        if let payload { writer.payload(payload) } else { writer.null() }
      }
      if let client { writer.member(RecordMember.client, uuid: client) }
      if let mutation { writer.member(RecordMember.mutation, uuid: mutation) }
    }
  }
}
