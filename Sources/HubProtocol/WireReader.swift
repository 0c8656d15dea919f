import Foundation

/// Reads one body from its first byte to its last, in one of the two forms.
///
/// The messages are written against this protocol once; which bytes stand for an object or an
/// integer is the reader's to know. Every call consumes what it returns, or throws; after an error
/// the reader is of no more use.
protocol WireReader {
  /// Begins with the body's first byte.
  init(body: Data) throws(WireError)

  /// Enters an object.
  mutating func enterObject() throws(WireError) -> WireScope
  /// Enters a list.
  mutating func enterList() throws(WireError) -> WireScope
  /// True before each member or element; false once, when the scope was left.
  mutating func next(in scope: inout WireScope) throws(WireError) -> Bool
  /// The name of a member, valid UTF-8.
  mutating func name() throws(WireError) -> ArraySlice<UInt8>

  /// Takes a null if one is next.
  mutating func takeNull() throws(WireError) -> Bool
  /// A text is next; nothing is taken.
  func isAtText() -> Bool
  /// A text as bytes, valid UTF-8 and otherwise as they are.
  mutating func text(_ expectation: String) throws(WireError) -> ArraySlice<UInt8>
  /// An integer from 0 to `max`.
  mutating func unsigned(through max: UInt64) throws(WireError) -> UInt64
  mutating func bool() throws(WireError) -> Bool
  mutating func payload() throws(WireError) -> Data

  /// Passes over one value of any type, checking its form.
  mutating func skipValue() throws(WireError)
  /// Checks that nothing follows.
  mutating func finish() throws(WireError)
}

/// Where a reader is within an object or a list.
struct WireScope {
  /// An object; else a list.
  let isObject: Bool
  /// What is left, where the form says so in advance; at most the bytes that are left.
  var remainingCount: Int?
  /// Nothing was read in it yet.
  var isAtFirst = true
}

extension WireReader {
  /// Reads an object, giving each member that the protocol knows to `read` as it comes.
  ///
  /// Others are checked for their form and passed over. A member twice is an error.
  @inline(__always)
  mutating func readObject<Member: WireMember>(
    _ type: Member.Type,
    _ read: (Member, inout Self) throws(WireError) -> Void
  ) throws(WireError) {
    let table = Member.table
    var scope = try enterObject()
    var seen: UInt32 = 0
    var expected = 0
    var unknown = UnknownNames()
    while try next(in: &scope) {
      let name = try name()
      guard let position = table.position(of: name, expected: expected) else {
        try unknown.insert(name)
        try skipValue()
        continue
      }
      expected = position + 1
      let member = table.members[position]
      do throws(WireError) {
        guard seen & (1 << position) == 0 else {
          throw WireError(.duplicateMember, "each member is there once")
        }
        seen |= 1 << position
        try read(member, &self)
      } catch {
        throw error.inside(.member(member.rawValue))
      }
    }
  }

  /// Reads a list, each element by `read`.
  @inline(__always)
  mutating func readList<Element>(
    _ read: (inout Self) throws(WireError) -> Element
  ) throws(WireError) -> [Element] {
    var scope = try enterList()
    var elements: [Element] = []
    // A count is only a claim: more than a batch is never reserved on its word.
    elements.reserveCapacity(min(scope.remainingCount ?? 0, WireLimits.batchCountMax))
    while try next(in: &scope) {
      do throws(WireError) {
        elements.append(try read(&self))
      } catch {
        throw error.inside(.element(elements.count))
      }
    }
    return elements
  }
}

/// The names of an object's members that the protocol does not know, each of which may come once.
struct UnknownNames {
  private var names: Set<ArraySlice<UInt8>> = []

  mutating func insert(_ name: ArraySlice<UInt8>) throws(WireError) {
    guard names.insert(name).inserted else {
      throw WireError(.duplicateMember, "each member is there once")
    }
    guard names.count <= WireLimits.memberCountMax else {
      throw WireError(
        .tooManyMembers, "an object has at most \(WireLimits.memberCountMax) unknown members")
    }
  }
}
