public import Foundation

extension PushRequest: HubMessage {
  /// Reads a push; see ``HubMessage/init(decoding:as:)``. An error within a mutation carries its
  /// ``WireError/index``. How many mutations there may be and how long a payload is the hub's to
  /// check, and so is a base that is the mutation itself.
  public init(decoding body: Data, as format: WireFormat) throws(WireError) {
    try self.init(wire: body, as: format)
  }

  /// The body; see ``HubMessage/encoded(as:)``.
  public func encoded(as format: WireFormat) -> Data { wire(as: format) }
}

private enum PushMember: String, WireMember {
  case client, epoch, cursor, mutations
  static let table = WireMemberTable<PushMember>()
}

extension PushRequest: WireCoded {
  var byteCountHint: Int {
    mutations.reduce(256) { sum, mutation in
      sum + 192 + mutation.id.bytes.count + (mutation.payload?.count ?? 0)
    }
  }

  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var client: UUID?
    var epoch: UUID?
    var cursor: UInt64?
    var mutations: [WireMutation]?
    try reader.readObject(PushMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .client: client = try reader.uuid()
      case .epoch: epoch = try reader.uuid()
      case .cursor: cursor = try reader.sequence()
      case .mutations:
        mutations = try reader.readList { (reader) throws(WireError) in
          try WireMutation(from: &reader)
        }
      }
    }
    self.init(
      client: try required(client, PushMember.client),
      epoch: try required(epoch, PushMember.epoch),
      cursor: try required(cursor, PushMember.cursor),
      mutations: try required(mutations, PushMember.mutations))
  }

  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writeHead(to: &writer)
      writer.list(mutations) { mutation, writer in mutation.write(to: &writer) }
    }
  }

  /// Everything but the mutations, whose name comes last.
  fileprivate func writeHead<Writer: WireWriter>(to writer: inout Writer) {
    writer.member(PushMember.client, uuid: client)
    writer.member(PushMember.epoch, uuid: epoch)
    writer.member(PushMember.cursor, unsigned: cursor)
    writer.name(PushMember.mutations.rawValue)
  }
}

extension PushRequest {
  /// The request in CBOR, with mutations that are encoded already in place of its own.
  /// - Precondition: it has none of its own.
  package func encoded(with encoded: EncodedMutations) -> Data {
    precondition(mutations.isEmpty, "a request has its mutations in one form")
    return CBORWriter.message(byteCountHint: 256, list: encoded.bytes, count: encoded.count) {
      writeHead(to: &$0)
    }
  }
}

/// The mutations of a push in CBOR, written one by one straight from where their bytes lie.
///
/// The same bytes as a ``PushRequest`` of such mutations would have, without a value for each.
package struct EncodedMutations: Sendable {
  private var writer: CBORWriter
  /// How many mutations there are.
  package private(set) var count = 0

  /// - Parameter byteCountHint: about how many bytes they will have.
  package init(byteCountHint: Int) { writer = CBORWriter(byteCountHint: byteCountHint) }

  /// How many bytes they have.
  package var byteCount: Int { writer.bytes.count }

  /// About how many bytes a mutation has beside its ID and its payload.
  package static let overheadByteCountHint = 160

  /// Adds a mutation; see ``WireMutation``.
  /// - Parameters:
  ///   - id: 1 to 400 bytes of UTF-8, as they were stored.
  ///   - payload: nil for a delete.
  package mutating func append(
    mutation: UUID, order: UInt64, id: RawSpan, base: WireBase?, firstSent: UInt64,
    payload: RawSpan?
  ) {
    let memberCount: UInt8 = 5 + (base == nil ? 0 : 1) + (payload == nil ? 0 : 1)
    writer.copy(EncodedMutations.beginnings[Int(memberCount)])
    writer.uuid(mutation)
    writer.copy(EncodedMutations.order)
    writer.unsigned(order)
    writer.copy(payload == nil ? EncodedMutations.delete : EncodedMutations.put)
    writer.text(span: id)
    if let base {
      writer.copy(EncodedMutations.base)
      switch base {
      case .version(let version): writer.unsigned(version)
      case .mutation(let earlier): writer.uuid(earlier)
      }
    }
    writer.copy(EncodedMutations.firstSent)
    writer.unsigned(firstSent)
    if let payload {
      writer.copy(EncodedMutations.payload)
      writer.payload(span: payload)
    }
    count += 1
  }

  /// Their bytes, as they stand in a list.
  var bytes: [UInt8] { writer.bytes }

  // What stands before each value: the head of an object with so many members, and the names.
  private static let beginnings = (UInt8(0)...7).map {
    [CBOR.MajorType.map.rawValue << 5 | $0] + CBORWriter.text(MutationMember.mutation.rawValue)
  }
  private static let order = CBORWriter.text(MutationMember.order.rawValue)
  private static let put = kind(.put)
  private static let delete = kind(.delete)
  private static let base = CBORWriter.text(MutationMember.base.rawValue)
  private static let firstSent = CBORWriter.text(MutationMember.firstSent.rawValue)
  private static let payload = CBORWriter.text(MutationMember.payload.rawValue)

  private static func kind(_ kind: MutationKind) -> [UInt8] {
    [MutationMember.kind.rawValue, kind.rawValue, MutationMember.id.rawValue]
      .flatMap(CBORWriter.text)
  }
}

private enum MutationMember: String, WireMember {
  case mutation, order, kind, id, base, firstSent, payload
  static let table = WireMemberTable<MutationMember>()
}

extension WireMutation {
  @inline(__always)
  init<Reader: WireReader>(from reader: inout Reader) throws(WireError) {
    var mutation: UUID?
    var order: UInt64?
    var kind: MutationKind?
    var id: RecordID?
    var base: WireBase?
    var firstSent: UInt64?
    var payload: Data?
    try reader.readObject(MutationMember.self) { (member, reader) throws(WireError) in
      switch member {
      case .mutation: mutation = try reader.uuid()
      case .order: order = try reader.sequence()
      case .kind: kind = try reader.choice(MutationKind.self, "put or delete")
      case .id: id = try reader.recordID()
      case .base: base = try reader.base()
      case .firstSent: firstSent = try reader.sequence()
      case .payload: payload = try reader.takeNull() ? nil : try reader.payload()
      }
    }
    switch try required(kind, MutationMember.kind) {
    case .put: _ = try required(payload, MutationMember.payload)
    case .delete:
      guard payload == nil else {
        throw WireError(.unexpected, "a delete has no payload")
          .inside(.member(MutationMember.payload.rawValue))
      }
    }
    self.init(
      mutation: try required(mutation, MutationMember.mutation),
      order: try required(order, MutationMember.order),
      kind: try required(kind, MutationMember.kind), id: try required(id, MutationMember.id),
      base: base, firstSent: try required(firstSent, MutationMember.firstSent), payload: payload)
  }

  @inline(__always)
  func write<Writer: WireWriter>(to writer: inout Writer) {
    writer.object { writer in
      writer.member(MutationMember.mutation, uuid: mutation)
      writer.member(MutationMember.order, unsigned: order)
      writer.name(MutationMember.kind.rawValue)
      writer.text(Array(kind.rawValue.utf8))
      writer.member(MutationMember.id, utf8: id.bytes)
      switch base {
      case .version(let version): writer.member(MutationMember.base, unsigned: version)
      case .mutation(let uuid): writer.member(MutationMember.base, uuid: uuid)
      case nil: break
      }
      writer.member(MutationMember.firstSent, unsigned: firstSent)
      if let payload {
        writer.name(MutationMember.payload.rawValue)
        writer.payload(payload)
      }
    }
  }
}

extension WireReader {
  /// A version, the UUID of a mutation, or nil for null.
  fileprivate mutating func base() throws(WireError) -> WireBase? {
    if try takeNull() { return nil }
    return isAtText() ? .mutation(try uuid()) : .version(try sequence())
  }
}
