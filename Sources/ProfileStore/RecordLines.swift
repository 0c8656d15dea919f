import Foundation
import HubProtocol

/// The lines of an export: newline-delimited JSON, UTF-8. The first says whose records they are, then
/// comes one for each record, and the last says how many there were, so that a part is no whole.
///
/// | line | members |
/// |---|---|
/// | first | `holdfast: "records"`, `version: 1`, `hub` (UUID), `account` (its ID), `profile`, `exportedAt` (seconds since 1970) |
/// | record | `record` (its ID), `payload` (Base64), `hubVersion` if the hub has it, `pending` |
/// | last | `end: true`, `records` (count) |
enum RecordLines {
  static let version = 1
  /// The longest line: the longest payload in Base64, and its ID with every byte escaped.
  static let lineByteCountMax = (StoreLimits.payloadByteCountCeiling / 3 + 1) * 4 + 8_192

  struct Head: Codable {
    var holdfast = "records"
    var version = RecordLines.version
    var hub: UUID
    var account: String
    var profile: String
    var exportedAt: Double
  }

  struct Line: Codable {
    var record: String
    var payload: Data
    var hubVersion: UInt64?
    var pending: Bool
  }

  struct End: Codable {
    var end = true
    var records: Int
  }

  static func encode(_ line: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(line) + [UInt8(ascii: "\n")]
  }

  static func decode<Line: Decodable>(_ type: Line.Type, _ line: Data) throws(StoreError) -> Line {
    do {
      return try JSONDecoder().decode(type, from: line)
    } catch {
      throw unreadable("a line is not of its form")
    }
  }

  static func unreadable(_ why: String) -> StoreError {
    StoreError(.undecodable, "this is not a whole export of records: \(why)")
  }
}

/// Cuts chunks into lines. A value.
struct LineCutter {
  private var rest = Data()

  /// - Returns: the lines that are whole now, without their ends.
  /// - Throws: `undecodable` when a line is longer than any can be.
  mutating func add(_ chunk: Data) throws(StoreError) -> [Data] {
    var lines: [Data] = []
    var chunk = chunk[...]
    while let end = chunk.firstIndex(of: UInt8(ascii: "\n")) {
      lines.append(rest + chunk[..<end])
      rest = Data()
      chunk = chunk[(end + 1)...]
    }
    rest.append(contentsOf: chunk)
    guard rest.count <= RecordLines.lineByteCountMax else {
      throw RecordLines.unreadable("a line is longer than any record")
    }
    return lines
  }

  /// Whether everything was cut into lines.
  var isEmpty: Bool { rest.isEmpty }
}
