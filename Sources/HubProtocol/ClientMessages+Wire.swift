public import Foundation

extension ClientRegistration: HubMessage {
  /// Reads a body; see ``HubMessage/init(decoding:as:)``.
  public init(decoding body: Data, as format: WireFormat) throws(WireError) {
    try self.init(wire: body, as: format)
  }

  /// The body; see ``HubMessage/encoded(as:)``.
  public func encoded(as format: WireFormat) -> Data { wire(as: format) }
}

extension ClientAnswer: HubMessage {
  /// Reads a body; see ``HubMessage/init(decoding:as:)``.
  public init(decoding body: Data, as format: WireFormat) throws(WireError) {
    try self.init(wire: body, as: format)
  }

  /// The body; see ``HubMessage/encoded(as:)``.
  public func encoded(as format: WireFormat) -> Data { wire(as: format) }
}

private enum RegistrationMember: String, WireMember {
  case name
  static let table = WireMemberTable<RegistrationMember>()
}

extension ClientRegistration: WireCoded {
  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var name: String?
    try reader.readObject(RegistrationMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .name: name = try reader.clientName()
      }
    }
    self.init(name: try required(name, RegistrationMember.name))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in writer.member(RegistrationMember.name, text: name) }
  }
}

private enum ClientMember: String, WireMember {
  case hub, epoch, account, client, name
  static let table = WireMemberTable<ClientMember>()
}

extension ClientAnswer: WireCoded {
  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var hub: UUID?
    var epoch: UUID?
    var account: AccountID?
    var client: UUID?
    var name: String?
    try reader.readObject(ClientMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .hub: hub = try reader.uuid()
      case .epoch: epoch = try reader.uuid()
      case .account: account = try reader.accountID()
      case .client: client = try reader.uuid()
      case .name: name = try reader.clientName()
      }
    }
    self.init(
      hub: try required(hub, ClientMember.hub), epoch: try required(epoch, ClientMember.epoch),
      account: try required(account, ClientMember.account),
      client: try required(client, ClientMember.client),
      name: try required(name, ClientMember.name))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(ClientMember.hub, uuid: hub)
      writer.member(ClientMember.epoch, uuid: epoch)
      writer.member(ClientMember.account, utf8: account.bytes)
      writer.member(ClientMember.client, uuid: client)
      writer.member(ClientMember.name, text: name)
    }
  }
}

extension WireReader {
  fileprivate mutating func clientName() throws(WireError) -> String {
    let bytes = try text("a name as text")
    guard bytes.count <= WireLimits.clientNameByteCountMax else {
      throw WireError(
        .outOfRange, "a name has at most \(WireLimits.clientNameByteCountMax) bytes of UTF-8")
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
