import Foundation

/// Writes one body in one of the two forms; the counterpart of ``WireReader``.
protocol WireWriter {
  /// - Parameter byteCountHint: About how many bytes the body will have.
  init(byteCountHint: Int)
  /// What was written.
  var bytes: [UInt8] { get }

  mutating func beginObject()
  mutating func endObject()
  mutating func beginList(count: Int)
  mutating func endList()
  /// A member's name, before its value.
  mutating func name(_ name: String)

  mutating func null()
  mutating func bool(_ value: Bool)
  mutating func unsigned(_ value: UInt64)
  mutating func uuid(_ value: UUID)
  /// A text: valid UTF-8.
  mutating func text(_ utf8: [UInt8])
  mutating func payload(_ value: Data)
}

extension WireWriter {
  /// Writes an object whose members `write` writes.
  @inline(__always)
  mutating func object(_ write: (inout Self) -> Void) {
    beginObject()
    write(&self)
    endObject()
  }

  /// Writes a list, each element by `write`.
  @inline(__always)
  mutating func list<Element>(_ elements: [Element], _ write: (Element, inout Self) -> Void) {
    beginList(count: elements.count)
    for element in elements { write(element, &self) }
    endList()
  }

  @inline(__always)
  mutating func member<Member: WireMember>(_ member: Member, uuid value: UUID) {
    name(member.rawValue)
    uuid(value)
  }

  @inline(__always)
  mutating func member<Member: WireMember>(_ member: Member, unsigned value: UInt64) {
    name(member.rawValue)
    unsigned(value)
  }

  mutating func member<Member: WireMember>(_ member: Member, count value: Int) {
    precondition(value >= 0, "the wire has no negative \(member.rawValue)")
    self.member(member, unsigned: UInt64(value))
  }

  @inline(__always)
  mutating func member<Member: WireMember>(_ member: Member, bool value: Bool) {
    name(member.rawValue)
    bool(value)
  }

  @inline(__always)
  mutating func member<Member: WireMember>(_ member: Member, utf8 value: [UInt8]) {
    name(member.rawValue)
    text(value)
  }

  mutating func member<Member: WireMember>(_ member: Member, text value: String) {
    name(member.rawValue)
    text(Array(value.utf8))
  }

  /// The epochs that an account has left.
  mutating func lineage(_ lineage: [LineageEntry]) {
    list(lineage) { entry, writer in
      writer.object { writer in
        writer.member(LineageMember.epoch, uuid: entry.epoch)
        writer.member(LineageMember.forkedAt, unsigned: entry.forkedAt)
      }
    }
  }
}
