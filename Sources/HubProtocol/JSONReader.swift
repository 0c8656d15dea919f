import Foundation

/// Reads JSON (RFC 8259) strictly, byte by byte.
///
/// Its own and not Foundation's, since texts must keep their bytes, integers every bit, and a
/// member that comes twice must be seen.
struct JSONReader: WireReader {
  let bytes: [UInt8]
  var position = 0
  private var depth = 0

  init(body: Data) throws(WireError) {
    bytes = Array(body)
    // Once for the whole body: every text in it is a part of it or made of valid escapes.
    do {
      _ = try UTF8Span(validating: bytes.span)
    } catch {
      throw WireError(.notUTF8, "JSON is valid UTF-8")
    }
    skipWhiteSpace()
  }

  mutating func enterObject() throws(WireError) -> WireScope {
    try take(UInt8(ascii: "{"), "an object")
    try descend()
    return WireScope(isObject: true)
  }

  mutating func enterList() throws(WireError) -> WireScope {
    try take(UInt8(ascii: "["), "a list")
    try descend()
    return WireScope(isObject: false)
  }

  mutating func next(in scope: inout WireScope) throws(WireError) -> Bool {
    if try peek() == UInt8(ascii: scope.isObject ? "}" : "]") {
      position += 1
      skipWhiteSpace()
      depth -= 1
      return false
    }
    if !scope.isAtFirst {
      guard try peek() == UInt8(ascii: ",") else { throw malformed }
      position += 1
      skipWhiteSpace()
      let byte = try peek()
      guard byte != UInt8(ascii: "}"), byte != UInt8(ascii: "]") else { throw malformed }
    }
    scope.isAtFirst = false
    return true
  }

  mutating func name() throws(WireError) -> ArraySlice<UInt8> {
    guard try peek() == UInt8(ascii: "\"") else { throw malformed }
    let name = try quoted()
    guard try peek() == UInt8(ascii: ":") else { throw malformed }
    position += 1
    skipWhiteSpace()
    return name
  }

  mutating func takeNull() throws(WireError) -> Bool {
    guard try peek() == UInt8(ascii: "n") else { return false }
    try takeWord("null")
    return true
  }

  func isAtText() -> Bool {
    position < bytes.count && bytes[position] == UInt8(ascii: "\"")
  }

  mutating func text(_ expectation: String) throws(WireError) -> ArraySlice<UInt8> {
    guard try peek() == UInt8(ascii: "\"") else { throw mismatch(expectation) }
    return try quoted()
  }

  mutating func unsigned(through max: UInt64) throws(WireError) -> UInt64 {
    let expectation = "an integer from 0 to \(max)"
    guard isAtNumber else { throw mismatch(expectation) }
    let number = try number()
    guard number.isInteger else { throw WireError(.illTyped, expectation) }
    var value: UInt64 = 0
    for digit in number.text {
      guard let next = value.appendingDecimalDigit(digit), next <= max else {
        // A sign lands here too: "-" is no digit.
        throw WireError(.outOfRange, expectation)
      }
      value = next
    }
    return value
  }

  mutating func bool() throws(WireError) -> Bool {
    switch try peek() {
    case UInt8(ascii: "t"):
      try takeWord("true")
      return true
    case UInt8(ascii: "f"):
      try takeWord("false")
      return false
    default:
      throw mismatch("true or false")
    }
  }

  mutating func payload() throws(WireError) -> Data {
    try Base64.decode(try text("a payload as base64 text"))
  }

  mutating func skipValue() throws(WireError) {
    switch try peek() {
    case UInt8(ascii: "{"):
      var scope = try enterObject()
      var names = UnknownNames()
      while try next(in: &scope) {
        try names.insert(try name())
        try skipValue()
      }
    case UInt8(ascii: "["):
      var scope = try enterList()
      while try next(in: &scope) { try skipValue() }
    case UInt8(ascii: "\""): _ = try quoted()
    case UInt8(ascii: "t"): try takeWord("true")
    case UInt8(ascii: "f"): try takeWord("false")
    case UInt8(ascii: "n"): try takeWord("null")
    default: _ = try number()
    }
  }

  mutating func finish() throws(WireError) {
    guard position == bytes.count else {
      throw WireError(.trailingBytes, "nothing follows the message")
    }
  }
}

extension JSONReader {
  var malformed: WireError { WireError(.malformed, "JSON of RFC 8259") }

  /// The next byte; white space was passed over behind the token before.
  @inline(__always)
  func peek() throws(WireError) -> UInt8 {
    guard position < bytes.count else {
      throw WireError(.truncated, "the body ends too early")
    }
    return bytes[position]
  }

  mutating func skipWhiteSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, 0x0a, 0x0d: position += 1
      default: return
      }
    }
  }

  var isAtNumber: Bool {
    guard position < bytes.count else { return false }
    return bytes[position].isDecimalDigit || bytes[position] == UInt8(ascii: "-")
  }

  /// The error of a value that is of another type, or of something that is no value.
  private func mismatch(_ expectation: String) -> WireError {
    guard position < bytes.count else { return WireError(.truncated, "the body ends too early") }
    switch bytes[position] {
    case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\""), UInt8(ascii: "t"),
      UInt8(ascii: "f"), UInt8(ascii: "n"):
      return WireError(.illTyped, expectation)
    default:
      return isAtNumber ? WireError(.illTyped, expectation) : malformed
    }
  }

  private mutating func take(_ byte: UInt8, _ expectation: String) throws(WireError) {
    guard try peek() == byte else { throw mismatch(expectation) }
    position += 1
    skipWhiteSpace()
  }

  private mutating func takeWord(_ word: String) throws(WireError) {
    for byte in word.utf8 {
      guard try peek() == byte else { throw malformed }
      position += 1
    }
    skipWhiteSpace()
  }

  private mutating func descend() throws(WireError) {
    depth += 1
    guard depth <= WireLimits.depthMax else {
      throw WireError(.tooDeep, "at most \(WireLimits.depthMax) levels")
    }
  }
}

extension UInt64 {
  /// Ten times the value and the digit; nil if the byte is none, or beyond 64 bits.
  fileprivate func appendingDecimalDigit(_ byte: UInt8) -> UInt64? {
    guard byte.isDecimalDigit else { return nil }
    let (tenfold, overflowed) = multipliedReportingOverflow(by: 10)
    let (sum, carried) = tenfold.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
    return overflowed || carried ? nil : sum
  }
}
