public import Foundation

/// One request to a hub, as a value; a transport sends it as it is and adds nothing that names an
/// account.
public struct HubRequest: Hashable, Sendable {
  /// `GET`, `PUT`, `POST` or `DELETE`.
  public var method: String
  /// Path and query, percent-encoded, beginning with `/v1/`.
  public var target: String
  /// Header fields in the order in which they are sent.
  public var headers: [HeaderField]
  /// The body; nil for a request without one.
  public var body: Data?
  /// The most bytes of answer body that may be read; a longer one is an error and is not kept.
  public var answerByteCountMax: Int
  /// How long the whole exchange may take.
  public var timeout: Duration
  /// How long no byte may move in either direction, waiting for the answer included.
  public var stallLimit: Duration
  /// The hub may keep it waiting on purpose: a transport lets no other request wait behind it.
  public var mayWait: Bool

  /// Takes a request; nothing is checked.
  /// - Parameters:
  ///   - method: `GET`, `PUT`, `POST` or `DELETE`.
  ///   - target: Path and query, percent-encoded, beginning with `/v1/`.
  ///   - headers: Header fields in the order in which they are sent.
  ///   - body: The body, if there is one.
  ///   - answerByteCountMax: In bytes of answer body, 64 MiB by default.
  ///   - timeout: For the whole exchange, 60 s by default.
  ///   - stallLimit: Without a byte in either direction, 30 s by default.
  ///   - mayWait: Whether the hub may keep it waiting on purpose, false by default.
  public init(
    method: String, target: String, headers: [HeaderField] = [], body: Data? = nil,
    answerByteCountMax: Int = 64 << 20, timeout: Duration = .seconds(60),
    stallLimit: Duration = .seconds(30), mayWait: Bool = false
  ) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
    self.answerByteCountMax = answerByteCountMax
    self.timeout = timeout
    self.stallLimit = stallLimit
    self.mayWait = mayWait
  }
}

/// One header field.
public struct HeaderField: Hashable, Sendable {
  /// Its name, compared without ASCII case.
  public var name: String
  /// Its value, without the white space around it.
  public var value: String

  /// Takes a name and a value; nothing is checked.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// One answer of a hub (or of whatever stood between), as a value.
public struct HubResponse: Hashable, Sendable {
  /// The HTTP status, 100 to 599.
  public var status: Int
  /// Every header field in the order in which it came, repeated ones too.
  public var headers: [HeaderField]
  /// The body as it came: complete, and not decompressed.
  public var body: Data

  /// Takes an answer; nothing is checked.
  public init(status: Int, headers: [HeaderField], body: Data) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The values of all fields of that name, compared without ASCII case, in order.
  public func values(of name: String) -> [String] {
    let wanted = name.utf8.map(asciiLowercased)
    return headers.filter { $0.name.utf8.map(asciiLowercased) == wanted }.map(\.value)
  }
}

/// The lower-case letter of an upper-case one of ASCII; every other byte as it is.
func asciiLowercased(_ byte: UInt8) -> UInt8 {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
