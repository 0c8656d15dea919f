public import Foundation

extension HubEvent {
  /// Reads an event.
  /// - Parameters:
  ///   - name: The event's name as it came.
  ///   - data: Its data as it came.
  /// - Returns: Nil for an event that this version does not know; pass it over.
  /// - Throws: ``WireError`` naming the member, or the position, and what is wrong with it.
  public init?(name: String, data: Data) throws(WireError) {
    switch name {
    case "hello": self = .hello(try HubGreeting(wire: data, as: .json))
    case "change": self = .change(highWater: try ChangeHint(wire: data, as: .json).highWater)
    case "bye": self = .bye(code: try Farewell(wire: data, as: .json).code)
    default: return nil
    }
  }

  /// The event's data: JSON without a line break.
  public func encoded() -> Data {
    switch self {
    case .hello(let greeting): greeting.wire(as: .json)
    case .change(let highWater): ChangeHint(highWater: highWater).wire(as: .json)
    case .bye(let code): Farewell(code: code).wire(as: .json)
    }
  }
}

private enum GreetingMember: String, WireMember {
  case hub, epoch, account, highWater
  static let table = WireMemberTable<GreetingMember>()
}

extension HubGreeting: WireCoded {
  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var hub: UUID?
    var epoch: UUID?
    var account: AccountID?
    var highWater: UInt64?
    try reader.readObject(GreetingMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .hub: hub = try reader.uuid()
      case .epoch: epoch = try reader.uuid()
      case .account: account = try reader.accountID()
      case .highWater: highWater = try reader.sequence()
      }
    }
    self.init(
      hub: try required(hub, GreetingMember.hub),
      epoch: try required(epoch, GreetingMember.epoch),
      account: try required(account, GreetingMember.account),
      highWater: try required(highWater, GreetingMember.highWater))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(GreetingMember.hub, uuid: hub)
      writer.member(GreetingMember.epoch, uuid: epoch)
      writer.member(GreetingMember.account, utf8: account.bytes)
      writer.member(GreetingMember.highWater, unsigned: highWater)
    }
  }
}

private enum ChangeHintMember: String, WireMember {
  case highWater
  static let table = WireMemberTable<ChangeHintMember>()
}

private struct ChangeHint: WireCoded {
  let highWater: UInt64
  var byteCountHint: Int { 64 }

  init(highWater: UInt64) { self.highWater = highWater }

  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var highWater: UInt64?
    try reader.readObject(ChangeHintMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .highWater: highWater = try reader.sequence()
      }
    }
    self.init(highWater: try required(highWater, ChangeHintMember.highWater))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { $0.member(ChangeHintMember.highWater, unsigned: highWater) }
  }
}

private enum FarewellMember: String, WireMember {
  case code
  static let table = WireMemberTable<FarewellMember>()
}

private struct Farewell: WireCoded {
  let code: String
  var byteCountHint: Int { 64 }

  init(code: String) { self.code = code }

  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var code: String?
    try reader.readObject(FarewellMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .code: code = try reader.string()
      }
    }
    self.init(code: try required(code, FarewellMember.code))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { $0.member(FarewellMember.code, text: code) }
  }
}
