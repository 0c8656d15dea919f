public import Foundation

extension PushAnswer: HubMessage {
  /// Reads an answer; see ``HubMessage/init(decoding:as:)``.
  public init(decoding body: Data, as format: WireFormat) throws(WireError) {
    try self.init(wire: body, as: format)
  }

  /// The body; see ``HubMessage/encoded(as:)``.
  public func encoded(as format: WireFormat) -> Data { wire(as: format) }
}

private enum PushAnswerMember: String, WireMember {
  case hub, epoch, account, highWater, results
  static let table = WireMemberTable<PushAnswerMember>()
}

extension PushAnswer: WireCoded {
  var byteCountHint: Int {
    results.reduce(1024) { sum, result in
      guard let current = result.current else { return sum + 128 }
      return sum + 256 + WireRecord.overheadByteCountHint + current.id.bytes.count
        + (current.payload?.count ?? 0)
    }
  }

  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var hub: UUID?
    var epoch: UUID?
    var account: AccountID?
    var highWater: UInt64?
    var results: [MutationResult]?
    try reader.readObject(PushAnswerMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .hub: hub = try reader.uuid()
      case .epoch: epoch = try reader.uuid()
      case .account: account = try reader.accountID()
      case .highWater: highWater = try reader.sequence()
      case .results:
        results = try reader.readList { (reader) throws(WireError) in
          try MutationResult(from: &reader)
        }
      }
    }
    self.init(
      hub: try required(hub, PushAnswerMember.hub),
      epoch: try required(epoch, PushAnswerMember.epoch),
      account: try required(account, PushAnswerMember.account),
      highWater: try required(highWater, PushAnswerMember.highWater),
      results: try required(results, PushAnswerMember.results))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(PushAnswerMember.hub, uuid: hub)
      writer.member(PushAnswerMember.epoch, uuid: epoch)
      writer.member(PushAnswerMember.account, utf8: account.bytes)
      writer.member(PushAnswerMember.highWater, unsigned: highWater)
      writer.name(PushAnswerMember.results.rawValue)
      writer.list(results) { result, writer in result.write(to: &writer) }
    }
  }
}

private enum ResultMember: String, WireMember {
  case mutation, status, version, code, detail, current
  static let table = WireMemberTable<ResultMember>()
}

extension MutationResult {
  @inline(__always)
  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var mutation: UUID?
    var status: MutationStatus?
    var version: UInt64?
    var code: String?
    var detail: String?
    var current: WireRecord?
    try reader.readObject(ResultMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .mutation: mutation = try reader.uuid()
      case .status: status = try reader.choice(MutationStatus.self, "a verdict of the protocol")
      case .version: version = try reader.optionalSequence()
      case .code: code = try reader.optionalString()
      case .detail: detail = try reader.optionalString()
      case .current:
        current =
          try reader.takeNull() ? nil : try WireRecord(from: &reader, mayOmitPayload: true)
      }
    }
    // What a verdict says must be there, or settling by it would lose what it was about.
    switch try required(status, ResultMember.status) {
    case .applied, .duplicate: _ = try required(version, ResultMember.version)
    case .rejected, .deferred: _ = try required(code, ResultMember.code)
    case .conflict: break
    }
    self.init(
      mutation: try required(mutation, ResultMember.mutation),
      status: try required(status, ResultMember.status), version: version, code: code,
      detail: detail, current: current)
  }

  @inline(__always)
  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(ResultMember.mutation, uuid: mutation)
      writer.name(ResultMember.status.rawValue)
      writer.text(Array(status.rawValue.utf8))
      if let version { writer.member(ResultMember.version, unsigned: version) }
      if let code { writer.member(ResultMember.code, text: code) }
      if let detail { writer.member(ResultMember.detail, text: detail) }
      if let current {
        writer.name(ResultMember.current.rawValue)
        current.write(to: &writer)
      } else if status == .conflict || status == .rejected {
        writer.name(ResultMember.current.rawValue)
        writer.null()
      }
    }
  }
}
