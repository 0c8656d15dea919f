import Foundation

extension WireReader {
  /// A sequence, version, cursor or high water: an integer from 0 to 2^53 - 1.
  @inline(__always)
  mutating func sequence() throws(WireError) -> UInt64 {
    try unsigned(through: WireLimits.sequenceMax)
  }

  /// A count or a number of bytes or seconds, not below `min`.
  mutating func count(from min: Int = 0) throws(WireError) -> Int {
    let value = Int(try unsigned(through: WireLimits.sequenceMax))
    guard value >= min else { throw WireError(.outOfRange, "an integer of \(min) or more") }
    return value
  }

  /// A UUID as text, in lower case and with hyphens: no other spelling.
  @inline(__always)
  mutating func uuid() throws(WireError) -> UUID {
    let expectation = "a UUID as text in lower case, with hyphens"
    guard let uuid = UUID(wireText: try text(expectation)) else {
      throw WireError(.illTyped, expectation)
    }
    return uuid
  }

  /// A UUID, or nil for null.
  mutating func optionalUUID() throws(WireError) -> UUID? {
    try takeNull() ? nil : try uuid()
  }

  /// A sequence, or nil for null.
  mutating func optionalSequence() throws(WireError) -> UInt64? {
    try takeNull() ? nil : try sequence()
  }

  /// A text for a person, or one that is compared in ASCII only.
  mutating func string() throws(WireError) -> String {
    String(decoding: try text("a text"), as: UTF8.self)
  }

  /// A text, or nil for null.
  mutating func optionalString() throws(WireError) -> String? {
    try takeNull() ? nil : try string()
  }

  /// One of an enumeration's texts.
  mutating func choice<Choice: RawRepresentable<String>>(
    _ type: Choice.Type, _ expectation: String
  ) throws(WireError) -> Choice {
    let text = try text(expectation)
    guard let choice = Choice(rawValue: String(decoding: text, as: UTF8.self)) else {
      throw WireError(.illTyped, expectation)
    }
    return choice
  }

  /// A record ID: its very bytes, 1 to 400 of them.
  @inline(__always)
  mutating func recordID() throws(WireError) -> RecordID {
    let bytes = try text("a record ID as text")
    guard bytes.count >= 1, bytes.count <= RecordID.byteCountMax else {
      throw WireError(
        .outOfRange, "a record ID has 1 to \(RecordID.byteCountMax) bytes of UTF-8")
    }
    return RecordID(uncheckedBytes: Array(bytes))
  }

  /// An account ID: its very bytes, 1 to 256 of them.
  mutating func accountID() throws(WireError) -> AccountID {
    let bytes = try text("an account ID as text")
    do throws(IdentifierError) {
      return try AccountID(bytes: bytes)
    } catch {
      throw WireError(.outOfRange, error.description)
    }
  }

  /// The epochs that an account has left.
  mutating func lineage() throws(WireError) -> [LineageEntry] {
    try readList { (reader) throws(WireError) in
      var epoch: UUID?
      var forkedAt: UInt64?
      try reader.readObject(LineageMember.self) { (member, reader) throws(WireError) in
        switch member {
        case .epoch: epoch = try reader.uuid()
        case .forkedAt: forkedAt = try reader.sequence()
        }
      }
      return LineageEntry(
        epoch: try required(epoch, LineageMember.epoch),
        forkedAt: try required(forkedAt, LineageMember.forkedAt))
    }
  }
}

/// The members of a ``LineageEntry``.
enum LineageMember: String, WireMember {
  case epoch, forkedAt
  static let table = WireMemberTable<LineageMember>()
}

/// A member's value once its object was read.
/// - Throws: ``WireError/Code/missing``, with the member's name.
@inline(__always)
func required<Value, Member: WireMember>(
  _ value: Value?, _ member: Member
) throws(WireError) -> Value {
  guard let value else { throw missing(member) }
  return value
}

/// The error of a member that is not there.
func missing<Member: WireMember>(_ member: Member) -> WireError {
  WireError(.missing, "this member is required").inside(.member(member.rawValue))
}
