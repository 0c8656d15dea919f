public import Foundation

private enum ProblemMember: String, WireMember {
  case type, title, status, detail, code, epoch, lineage, minimumCursor, index
  static let table = WireMemberTable<ProblemMember>()
}

extension HubProblem: WireCoded {
  /// Reads the JSON of a problem.
  ///
  /// `status` and `code` must be there; `type`, `title` and `detail` may be absent, as RFC 9457
  /// section 3.1 has it, and are then `about:blank` and empty.
  /// - Throws: ``WireError``: this is no problem of a hub, whatever sent it.
  public init(decoding body: Data) throws(WireError) {
    try self.init(wire: body, as: .json)
  }

  /// The problem as JSON.
  public func encoded() -> Data { wire(as: .json) }

  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var type: String?
    var title: String?
    var status: Int?
    var detail: String?
    var code: String?
    var epoch: UUID?
    var lineage: [LineageEntry]?
    var minimumCursor: UInt64?
    var index: Int?
    try reader.readObject(ProblemMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .type: type = try reader.optionalString()
      case .title: title = try reader.optionalString()
      case .status: status = Int(try reader.unsigned(through: 599))
      case .detail: detail = try reader.optionalString()
      case .code: code = try reader.string()
      case .epoch: epoch = try reader.optionalUUID()
      case .lineage: lineage = try reader.takeNull() ? nil : try reader.lineage()
      case .minimumCursor: minimumCursor = try reader.optionalSequence()
      case .index: index = try reader.takeNull() ? nil : try reader.count()
      }
    }
    self.init(
      type: type ?? "about:blank", title: title ?? "",
      status: try required(status, ProblemMember.status), detail: detail ?? "",
      code: try required(code, ProblemMember.code), epoch: epoch, lineage: lineage,
      minimumCursor: minimumCursor, index: index)
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(ProblemMember.type, text: type)
      writer.member(ProblemMember.title, text: title)
      writer.member(ProblemMember.status, count: status)
      writer.member(ProblemMember.detail, text: detail)
      writer.member(ProblemMember.code, text: code)
      if let epoch { writer.member(ProblemMember.epoch, uuid: epoch) }
      if let lineage {
        writer.name(ProblemMember.lineage.rawValue)
        writer.lineage(lineage)
      }
      if let minimumCursor { writer.member(ProblemMember.minimumCursor, unsigned: minimumCursor) }
      if let index { writer.member(ProblemMember.index, count: index) }
    }
  }
}
