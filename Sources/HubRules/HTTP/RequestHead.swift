import HubProtocol

/// The head of a request as it came over the wire: nothing decoded, nothing normalized.
package struct RequestHead: Hashable, Sendable {
  /// One header field, white space around the value removed.
  package struct Field: Hashable, Sendable {
    package var name: String
    package var value: [UInt8]

    package init(_ name: String, _ value: [UInt8]) {
      self.name = name
      self.value = value
    }
  }

  package var method: String
  /// Path and query.
  package var target: [UInt8]
  /// `HTTP/1.1` or `HTTP/1.0`.
  package var version: String
  package var fields: [Field]
  /// Bytes of the whole head.
  package var byteCount: Int
  /// False if the bytes between the parts are not those of a well-formed head: NUL, a folded
  /// header, a bare line feed.
  package var isWellFormed: Bool

  package init(
    method: String, target: [UInt8], version: String = "HTTP/1.1", fields: [Field],
    byteCount: Int = 0, isWellFormed: Bool = true
  ) {
    self.method = method
    self.target = target
    self.version = version
    self.fields = fields
    self.byteCount = byteCount
    self.isWellFormed = isWellFormed
  }

  /// The values of all fields of that name, compared without ASCII case.
  package func values(of name: String) -> [[UInt8]] {
    fields.filter { asciiEqual($0.name, name) }.map(\.value)
  }

  /// The value of the only field of that name, as text; nil if there is none.
  package func text(of name: String) -> String? {
    values(of: name).first.map { String(decoding: $0, as: UTF8.self) }
  }

  /// The path, as written.
  package var path: String {
    String(decoding: target.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
  }

  /// The query, as written, without its `?`; nil if there is none.
  package var query: ArraySlice<UInt8>? {
    target.firstIndex(of: UInt8(ascii: "?")).map { target[($0 + 1)...] }
  }

  /// Whether a body follows.
  package var announcesBody: Bool {
    !values(of: "Transfer-Encoding").isEmpty || (declaredBodyByteCount ?? 0) > 0
  }

  /// What `Content-Length` says; nil if it is not there or no number that fits.
  package var declaredBodyByteCount: Int? {
    text(of: HubHeader.contentLength).flatMap { Int($0) }
  }
}

/// Whether two texts are the same but for ASCII case, byte for byte.
package func asciiEqual(_ left: String, _ right: String) -> Bool {
  left.utf8.count == right.utf8.count
    && zip(left.utf8, right.utf8).allSatisfy { asciiLowercased($0) == asciiLowercased($1) }
}

private func asciiLowercased(_ byte: UInt8) -> UInt8 {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
