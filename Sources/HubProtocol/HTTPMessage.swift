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
  public var body: Data?
  /// The most bytes of answer body that may be read; a longer one is an error and is not kept.
  public var answerByteCountMax: Int
  /// How long the whole exchange may take.
  public var timeout: Duration

  public init(
    method: String, target: String, headers: [HeaderField] = [], body: Data? = nil,
    answerByteCountMax: Int = 64 << 20, timeout: Duration = .seconds(60)
  ) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
    self.answerByteCountMax = answerByteCountMax
    self.timeout = timeout
  }
}

/// One header field.
public struct HeaderField: Hashable, Sendable {
  public var name: String
  public var value: String

  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// One answer of a hub (or of whatever stood between), as a value.
public struct HubResponse: Hashable, Sendable {
  public var status: Int
  public var headers: [HeaderField]
  public var body: Data

  public init(status: Int, headers: [HeaderField], body: Data) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The values of all fields of that name, compared without ASCII case, in order.
  public func values(of name: String) -> [String] {
    let wanted = Array(name.utf8).map(asciiLowercased)
    return headers.filter { Array($0.name.utf8).map(asciiLowercased) == wanted }.map(\.value)
  }
}

private func asciiLowercased(_ byte: UInt8) -> UInt8 {
  byte >= 65 && byte <= 90 ? byte | 0x20 : byte
}
