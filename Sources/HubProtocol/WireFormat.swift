/// The two forms of a body.
public enum WireFormat: String, CaseIterable, Sendable {
  /// The form that a person reads and tries with curl; payloads are base64.
  case json = "application/json"
  /// RFC 8949, the form that the Swift client uses; payloads are byte strings.
  case cbor = "application/cbor"

  /// The media type, as `Accept` and `Content-Type` carry it.
  public var contentType: String { rawValue }

  /// Reads a `Content-Type`: ASCII case does not count, nor do parameters (`; charset=utf-8`).
  /// - Returns: Nil for any other type.
  public init?(contentType: String) {
    let type = contentType.utf8.prefix { $0 != UInt8(ascii: ";") }
    let blank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    let name = type.drop(while: blank).reversed().drop(while: blank).reversed()
    self.init(rawValue: String(decoding: name.map(asciiLowercased), as: UTF8.self))
  }
}
