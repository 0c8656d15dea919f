/// The members of one object of the protocol, each named as it is on the wire.
protocol WireMember: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
  /// The names as bytes, made once.
  static var table: WireMemberTable<Self> { get }
}

/// Finds a member by the bytes of its name, first where it stands in most bodies: behind the
/// member that was found last.
struct WireMemberTable<Member: WireMember>: Sendable {
  let members: [Member]
  private let names: [[UInt8]]

  init() {
    members = Array(Member.allCases)
    names = members.map { Array($0.rawValue.utf8) }
    precondition(members.count <= UInt32.bitWidth, "one bit each marks the members seen")
  }

  /// The position of the member with that name; nil for a name that the protocol does not know.
  func position(of name: ArraySlice<UInt8>, expected: Int) -> Int? {
    if expected < names.count, matches(names[expected], name) { return expected }
    for position in names.indices where matches(names[position], name) { return position }
    return nil
  }

  @inline(__always)
  private func matches(_ known: [UInt8], _ name: ArraySlice<UInt8>) -> Bool {
    guard known.count == name.count else { return false }
    var index = name.startIndex
    for byte in known {
      guard name[index] == byte else { return false }
      index += 1
    }
    return true
  }
}
