import Foundation

/// Reads CBOR (RFC 8949) as this protocol uses it: definite lengths, shortest integers, text keys.
///
/// A length is believed only as far as there are bytes, before anything is allocated for it.
struct CBORReader: WireReader {
  /// The body.
  let bytes: [UInt8]
  private var position = 0
  private var depth = 0

  init(body: Data) {
    bytes = Array(body)
  }

  mutating func enterObject() throws(WireError) -> WireScope {
    let count = try length(of: .map, elementByteCountMin: 2, "an object")
    try descend()
    return WireScope(isObject: true, remainingCount: count)
  }

  mutating func enterList() throws(WireError) -> WireScope {
    let count = try length(of: .array, elementByteCountMin: 1, "a list")
    try descend()
    return WireScope(isObject: false, remainingCount: count)
  }

  mutating func next(in scope: inout WireScope) throws(WireError) -> Bool {
    guard let remaining = scope.remainingCount, remaining > 0 else {
      depth -= 1
      return false
    }
    scope.remainingCount = remaining - 1
    return true
  }

  mutating func name() throws(WireError) -> ArraySlice<UInt8> {
    try text("the names of members are texts")
  }

  mutating func takeNull() throws(WireError) -> Bool {
    guard try peek() == CBOR.null else { return false }
    position += 1
    return true
  }

  func isAtText() -> Bool {
    position < bytes.count && bytes[position] >> 5 == CBOR.MajorType.text.rawValue
  }

  mutating func text(_ expectation: String) throws(WireError) -> ArraySlice<UInt8> {
    bytes[try textPlace(expectation)]
  }

  /// Where a text lies in ``bytes``.
  @inline(__always)
  mutating func textPlace(_ expectation: String) throws(WireError) -> Range<Int> {
    let count = try length(of: .text, elementByteCountMin: 1, expectation)
    let place = position..<position + count
    try validateUTF8(place)
    position += count
    return place
  }

  mutating func unsigned(through max: UInt64) throws(WireError) -> UInt64 {
    let header = try header()
    guard header.type == .unsigned, header.argument <= max else {
      // Made only where it is thrown: a text costs more than the number.
      let isInteger = header.type == .unsigned || header.type == .negative
      throw WireError(isInteger ? .outOfRange : .illTyped, "an integer from 0 to \(max)")
    }
    return header.argument
  }

  mutating func bool() throws(WireError) -> Bool {
    let byte = try peek()
    guard byte == CBOR.true || byte == CBOR.false else {
      throw WireError(.illTyped, "true or false")
    }
    position += 1
    return byte == CBOR.true
  }

  mutating func payload() throws(WireError) -> Data {
    Data(bytes[try payloadPlace()])
  }

  /// Where a payload lies in ``bytes``.
  @inline(__always)
  mutating func payloadPlace() throws(WireError) -> Range<Int> {
    let count = try length(of: .bytes, elementByteCountMin: 1, "a payload as a byte string")
    defer { position += count }
    return position..<position + count
  }

  mutating func skipValue() throws(WireError) {
    let header = try header()
    switch header.type {
    case .unsigned, .negative, .simple:
      break
    case .bytes, .text:
      let count = try checkedCount(header.argument, elementByteCountMin: 1)
      if header.type == .text { try validateUTF8(position..<position + count) }
      position += count
    case .array:
      let count = try checkedCount(header.argument, elementByteCountMin: 1)
      try descend()
      for _ in 0..<count { try skipValue() }
      depth -= 1
    case .map:
      let count = try checkedCount(header.argument, elementByteCountMin: 2)
      try descend()
      var keys = UnknownNames()
      for _ in 0..<count {
        let start = position
        try skipValue()
        // Shortest forms only, so equal keys are equal bytes.
        try keys.insert(bytes[start..<position])
        try skipValue()
      }
      depth -= 1
    case .tag:
      try descend()
      try skipValue()
      depth -= 1
    }
  }

  mutating func finish() throws(WireError) {
    guard position == bytes.count else {
      throw WireError(.trailingBytes, "nothing follows the message")
    }
  }
}

extension CBORReader {
  private struct Header {
    let type: CBOR.MajorType
    let argument: UInt64
  }

  /// The first byte of the next value.
  @inline(__always)
  private func peek() throws(WireError) -> UInt8 {
    guard position < bytes.count else { throw endOfBody }
    return bytes[position]
  }

  private var endOfBody: WireError { WireError(.truncated, "the body ends too early") }

  /// The head of the next value: RFC 8949 section 3.
  private mutating func header() throws(WireError) -> Header {
    let first = try peek()
    position += 1
    let type = CBOR.MajorType(first)
    let information = first & 31
    if information < 24 { return Header(type: type, argument: UInt64(information)) }
    guard information < 28 else {
      throw information == 31 && type.mayBeIndefinite
        ? WireError(.notCanonical, "a definite length") : WireError(.malformed, "a CBOR value")
    }
    let count = 1 << Int(information - 24)
    guard bytes.count - position >= count else { throw endOfBody }
    var argument: UInt64 = 0
    for offset in 0..<count { argument = argument << 8 | UInt64(bytes[position + offset]) }
    position += count
    if type == .simple {
      // A float's bits are all in use; the simple values below 32 are written in one byte.
      guard count > 1 || argument >= 32 else { throw WireError(.malformed, "a CBOR value") }
    } else {
      guard argument >= CBOR.leastArgument(byteCount: count) else {
        throw WireError(.notCanonical, "integers and lengths in their shortest form")
      }
    }
    return Header(type: type, argument: argument)
  }

  /// The head of a value of one type; its argument is a count that the body has room for.
  private mutating func length(
    of type: CBOR.MajorType, elementByteCountMin: Int, _ expectation: String
  ) throws(WireError) -> Int {
    let header = try header()
    guard header.type == type else { throw WireError(.illTyped, expectation) }
    return try checkedCount(header.argument, elementByteCountMin: elementByteCountMin)
  }

  private func checkedCount(
    _ argument: UInt64, elementByteCountMin: Int
  ) throws(WireError) -> Int {
    guard argument <= UInt64((bytes.count - position) / elementByteCountMin) else {
      throw WireError(.truncated, "a length says more than the body has")
    }
    return Int(argument)
  }

  private mutating func descend() throws(WireError) {
    depth += 1
    guard depth <= WireLimits.depthMax else {
      throw WireError(.tooDeep, "at most \(WireLimits.depthMax) levels")
    }
  }

  private func validateUTF8(_ range: Range<Int>) throws(WireError) {
    do {
      _ = try UTF8Span(validating: bytes.span.extracting(range))
    } catch {
      throw WireError(.notUTF8, "texts are valid UTF-8")
    }
  }
}
