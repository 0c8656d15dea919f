public import Foundation

extension SessionAnswer: HubMessage {
  /// Reads a body; see ``HubMessage/init(decoding:as:)``.
  public init(decoding body: Data, as format: WireFormat) throws(WireError) {
    try self.init(wire: body, as: format)
  }

  /// The body; see ``HubMessage/encoded(as:)``.
  public func encoded(as format: WireFormat) -> Data { wire(as: format) }
}

private enum SessionMember: String, WireMember {
  case nonce, hub, epoch, lineage, account, highWater, minimumCursor, idempotencyFloor, empty
  case expiresAt, limits
  static let table = WireMemberTable<SessionMember>()
}

extension SessionAnswer: WireCoded {
  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var nonce: UUID?
    var hub: UUID?
    var epoch: UUID?
    var lineage: [LineageEntry]?
    var account: AccountID?
    var highWater: UInt64?
    var minimumCursor: UInt64?
    var idempotencyFloor: UInt64?
    var empty: Bool?
    var expiresAt: UInt64?
    var limits: HubLimits?
    try reader.readObject(SessionMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .nonce: nonce = try reader.uuid()
      case .hub: hub = try reader.uuid()
      case .epoch: epoch = try reader.uuid()
      case .lineage: lineage = try reader.lineage()
      case .account: account = try reader.accountID()
      case .highWater: highWater = try reader.sequence()
      case .minimumCursor: minimumCursor = try reader.sequence()
      case .idempotencyFloor: idempotencyFloor = try reader.sequence()
      case .empty: empty = try reader.bool()
      case .expiresAt: expiresAt = try reader.sequence()
      case .limits: limits = try HubLimits(from: &reader)
      }
    }
    self.init(
      nonce: try required(nonce, SessionMember.nonce),
      hub: try required(hub, SessionMember.hub),
      epoch: try required(epoch, SessionMember.epoch),
      lineage: try required(lineage, SessionMember.lineage),
      account: try required(account, SessionMember.account),
      highWater: try required(highWater, SessionMember.highWater),
      minimumCursor: try required(minimumCursor, SessionMember.minimumCursor),
      idempotencyFloor: try required(idempotencyFloor, SessionMember.idempotencyFloor),
      empty: try required(empty, SessionMember.empty),
      expiresAt: Int64(try required(expiresAt, SessionMember.expiresAt)),
      limits: try required(limits, SessionMember.limits))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(SessionMember.nonce, uuid: nonce)
      writer.member(SessionMember.hub, uuid: hub)
      writer.member(SessionMember.epoch, uuid: epoch)
      writer.name(SessionMember.lineage.rawValue)
      writer.lineage(lineage)
      writer.member(SessionMember.account, utf8: account.bytes)
      writer.member(SessionMember.highWater, unsigned: highWater)
      writer.member(SessionMember.minimumCursor, unsigned: minimumCursor)
      writer.member(SessionMember.idempotencyFloor, unsigned: idempotencyFloor)
      writer.member(SessionMember.empty, bool: empty)
      writer.member(SessionMember.expiresAt, count: Int(expiresAt))
      writer.name(SessionMember.limits.rawValue)
      limits.write(to: &writer)
    }
  }
}

private enum LimitsMember: String, WireMember {
  case pullRecords, pullBytes, pushMutations, pushBytes, payloadBytes, waitSeconds
  static let table = WireMemberTable<LimitsMember>()
}

extension HubLimits: WireCoded {
  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var pullRecords: Int?
    var pullBytes: Int?
    var pushMutations: Int?
    var pushBytes: Int?
    var payloadBytes: Int?
    var waitSeconds: Int?
    try reader.readObject(LimitsMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .pullRecords: pullRecords = try reader.count(from: 1)
      case .pullBytes: pullBytes = try reader.count(from: 1)
      case .pushMutations: pushMutations = try reader.count(from: 1)
      case .pushBytes: pushBytes = try reader.count(from: 1)
      case .payloadBytes: payloadBytes = try reader.count()
      case .waitSeconds: waitSeconds = try reader.count()
      }
    }
    self.init(
      pullRecords: try required(pullRecords, LimitsMember.pullRecords),
      pullBytes: try required(pullBytes, LimitsMember.pullBytes),
      pushMutations: try required(pushMutations, LimitsMember.pushMutations),
      pushBytes: try required(pushBytes, LimitsMember.pushBytes),
      payloadBytes: try required(payloadBytes, LimitsMember.payloadBytes),
      waitSeconds: try required(waitSeconds, LimitsMember.waitSeconds))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(LimitsMember.pullRecords, count: pullRecords)
      writer.member(LimitsMember.pullBytes, count: pullBytes)
      writer.member(LimitsMember.pushMutations, count: pushMutations)
      writer.member(LimitsMember.pushBytes, count: pushBytes)
      writer.member(LimitsMember.payloadBytes, count: payloadBytes)
      writer.member(LimitsMember.waitSeconds, count: waitSeconds)
    }
  }
}
