import ProfileStore
import ToolSupport

/// How a person names a profile: by its area's ID, or by digits with which only that one begins.
enum ProfileID {
  static let format = ValueFormat<String>(
    "profile", expectation: "4 to 32 hexadecimal digits, as 'list' shows them",
    write: { $0 },
    read: { text in
      let digits = text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
          UInt8(ascii: "A")...UInt8(ascii: "F"):
          true
        default: false
        }
      }
      return digits && (4...32).contains(text.utf8.count) ? text.lowercased() : nil
    })

  /// The one profile that begins with these digits.
  static func area(_ digits: String, among areas: [AreaID]) throws -> AreaID {
    let found = areas.filter { $0.description.hasPrefix(digits) }
    guard let area = found.first else {
      throw ToolFailure(
        .checkFailed, "no profile of this store begins with '\(digits)': 'list' shows them all")
    }
    guard found.count == 1 else {
      throw UsageError(
        "'\(digits)' fits \(found.count) profiles, \(area) and \(found[1]) among them: give more "
          + "digits")
    }
    return area
  }

  /// How many digits tell these profiles apart; 8 at least, so that later ones rarely need more.
  static func digitCount(toTellApart areas: [AreaID]) -> Int {
    let texts = areas.map(\.description)
    return (8...32).first { count in
      Set(texts.map { $0.prefix(count) }).count == texts.count
    } ?? 32
  }
}
