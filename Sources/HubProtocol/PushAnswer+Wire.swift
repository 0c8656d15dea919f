public import Foundation

extension PushAnswer: HubMessage {
  /// Reads an answer; see ``HubMessage/init(decoding:as:)``.
  public init(decoding body: Data, as format: WireFormat) throws(WireError) {
    if format == .cbor, let own = PushAnswer(ownForm: Array(body)) {
      self = own
    } else {
      try self.init(wire: body, as: format)
    }
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
      writeHead(to: &writer)
      writer.list(results) { result, writer in result.write(to: &writer) }
    }
  }

  /// Everything but the results, whose name comes last.
  fileprivate func writeHead<Writer: WireWriter>(to writer: inout Writer) {
    writer.member(PushAnswerMember.hub, uuid: hub)
    writer.member(PushAnswerMember.epoch, uuid: epoch)
    writer.member(PushAnswerMember.account, utf8: account.bytes)
    writer.member(PushAnswerMember.highWater, unsigned: highWater)
    writer.name(PushAnswerMember.results.rawValue)
  }
}

extension PushAnswer {
  /// Reads an answer in which all was applied, as this module writes it; nil: it is another one.
  package init?(ownForm body: [UInt8]) {
    let read = OwnForm.read(body) { form -> PushAnswer? in
      guard form.object() == 5, let hub = form.uuid("chubx$"), let epoch = form.uuid("eepochx$"),
        let name = form.text("gaccount", byteCountMax: AccountID.byteCountMax),
        let account = try? AccountID(bytes: body[name]),
        let highWater = form.sequence("ihighWater"), form.takes("gresults"),
        let count = form.list()
      else { return nil }
      var results: [MutationResult] = []
      results.reserveCapacity(min(count, WireLimits.batchCountMax))
      for _ in 0..<count {
        guard form.object() == 3, let mutation = form.uuid("hmutationx$"), form.takes("fstatus")
        else { return nil }
        let isApplied = form.takes("gapplied")
        guard isApplied || form.takes("iduplicate"), let version = form.sequence("gversion") else {
          return nil
        }
        results.append(
          MutationResult(
            mutation: mutation, status: isApplied ? .applied : .duplicate, version: version))
      }
      return PushAnswer(
        hub: hub, epoch: epoch, account: account, highWater: highWater, results: results)
    }
    guard let read else { return nil }
    self = read
  }

  /// The answer in CBOR, with results that are encoded already in place of its own.
  /// - Precondition: it has none of its own.
  package func encoded(with encoded: EncodedResults) -> Data {
    precondition(results.isEmpty, "an answer has its results in one form")
    return CBORWriter.message(byteCountHint: 512, list: encoded.bytes, count: encoded.count) {
      writeHead(to: &$0)
    }
  }
}

/// The results of a push in CBOR, written one by one.
///
/// The same bytes as a ``PushAnswer`` of such results would have, without a value for each that was
/// applied.
package struct EncodedResults: Sendable {
  private var writer: CBORWriter
  /// How many results there are.
  package private(set) var count = 0

  /// - Parameter countHint: how many there will be.
  package init(countHint: Int) { writer = CBORWriter(byteCountHint: 96 * countHint) }

  /// Adds the result of a mutation that has this version now, or had been given it before.
  package mutating func append(mutation: UUID, isDuplicate: Bool, version: UInt64) {
    writer.copy(EncodedResults.beginning)
    writer.uuid(mutation)
    writer.copy(isDuplicate ? EncodedResults.duplicate : EncodedResults.applied)
    writer.unsigned(version)
    count += 1
  }

  /// Adds any other result.
  package mutating func append(_ result: MutationResult) {
    result.write(to: &writer)
    count += 1
  }

  /// Their bytes, as they stand in a list.
  var bytes: [UInt8] { writer.bytes }

  // What stands before each value: the head of an object with three members, and the names.
  private static let beginning =
    [CBOR.MajorType.map.rawValue << 5 | 3] + CBORWriter.text(ResultMember.mutation.rawValue)
  private static let applied = status(.applied)
  private static let duplicate = status(.duplicate)

  private static func status(_ status: MutationStatus) -> [UInt8] {
    [ResultMember.status.rawValue, status.rawValue, ResultMember.version.rawValue]
      .flatMap(CBORWriter.text)
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
