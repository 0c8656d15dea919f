import Foundation
import Holdfast
import ToolSupport

/// Real records: the languages of ISO 639-3 and the subdivisions of ISO 3166-2, as Debian ships
/// them. One JSON document each, its ID from its code.
struct IsoCodes {
  /// A document and its ID.
  struct Document: Sendable {
    let id: RecordID
    let json: Data
  }

  let documents: [Document]

  /// Reads the lists.
  /// - Throws: `ToolFailure` when they are not there or are not what they should be.
  init(directory: String) throws {
    documents =
      try Self.read("\(directory)/iso_639-3.json", list: "639-3", code: "alpha_3", as: "language")
      + Self.read("\(directory)/iso_3166-2.json", list: "3166-2", code: "code", as: "subdivision")
  }

  private static func read(
    _ path: String, list: String, code: String, as kind: String
  ) throws -> [Document] {
    guard let bytes = FileManager.default.contents(atPath: path) else {
      throw ToolFailure(.noInput, "\(path) is not there; install Debian's iso-codes")
    }
    guard let lists = try JSONSerialization.jsonObject(with: bytes) as? [String: Any],
      let entries = lists[list] as? [[String: Any]]
    else { throw ToolFailure(.noInput, "\(path) has no list \(list)") }
    return try entries.map { entry in
      guard let value = entry[code] as? String else {
        throw ToolFailure(.noInput, "an entry of \(path) has no \(code)")
      }
      let json = try JSONSerialization.data(withJSONObject: entry, options: .sortedKeys)
      return Document(id: RecordID("\(kind)/\(value)"), json: json)
    }
  }
}
