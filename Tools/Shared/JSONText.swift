import Foundation

/// JSON as the tools print it with `--json`.
public enum JSONText {
  /// The value as indented JSON whose members are sorted by name, so that two runs can be compared
  /// line by line. Slashes stay unescaped, dates are ISO 8601 in UTC, data is base64.
  ///
  /// Throws `EncodingError` for what JSON can't hold, such as a number that is not finite.
  public static func encoded(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}

extension Console {
  /// Prints a value as ``JSONText/encoded(_:)``.
  ///
  /// Text in it may hold control characters; JSON writes those out as escapes.
  public func printJSON(_ value: some Encodable) throws {
    try print(JSONText.encoded(value))
  }
}
