// The tokens of RFC 8259 that are longer than a byte: numbers (section 6) and strings (section 7).

extension UInt8 {
  var isDecimalDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }
}

extension JSONReader {
  /// A number as it is written.
  struct Number {
    let text: ArraySlice<UInt8>
    /// Neither fraction nor exponent: `1.0` and `1e0` are other spellings, and refused.
    let isInteger: Bool
  }

  /// Takes a number, and the white space behind it.
  mutating func number() throws(WireError) -> Number {
    let start = position
    if try peek() == UInt8(ascii: "-") { position += 1 }
    // No zero before other digits.
    if try peek() == UInt8(ascii: "0") { position += 1 } else { try takeDigits() }
    var isInteger = true
    if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
      isInteger = false
      position += 1
      try takeDigits()
    }
    if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
      isInteger = false
      position += 1
      let sign = try peek()
      if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { position += 1 }
      try takeDigits()
    }
    let text = bytes[start..<position]
    if position < bytes.count, bytes[position].isDecimalDigit { throw malformed }
    skipWhiteSpace()
    return Number(text: text, isInteger: isInteger)
  }

  private mutating func takeDigits() throws(WireError) {
    guard try peek().isDecimalDigit else { throw malformed }
    while position < bytes.count, bytes[position].isDecimalDigit { position += 1 }
  }

  /// Takes a string with its quotes, and the white space behind it. A string without escapes is
  /// given as the part of the body that it is.
  mutating func quoted() throws(WireError) -> ArraySlice<UInt8> {
    position += 1
    let start = position
    while true {
      let byte = try peek()
      if byte == UInt8(ascii: "\"") {
        let text = bytes[start..<position]
        position += 1
        skipWhiteSpace()
        return text
      }
      if byte == UInt8(ascii: "\\") { return try unescaped(from: start) }
      guard byte >= 0x20 else { throw malformed }
      position += 1
    }
  }

  private mutating func unescaped(from start: Int) throws(WireError) -> ArraySlice<UInt8> {
    var text = Array(bytes[start..<position])
    while true {
      let byte = try peek()
      position += 1
      switch byte {
      case UInt8(ascii: "\""):
        skipWhiteSpace()
        return text[...]
      case UInt8(ascii: "\\"):
        text.append(contentsOf: try escapedScalar().utf8)
      case 0..<0x20:
        throw malformed
      default:
        text.append(byte)
      }
    }
  }

  /// The scalar of an escape whose backslash was taken.
  private mutating func escapedScalar() throws(WireError) -> Unicode.Scalar {
    let byte = try peek()
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return try unicodeEscape()
    default: throw malformed
    }
  }

  /// The scalar of `\uXXXX`, or of two of them that are a surrogate pair. Half a pair stands for no
  /// character and has no UTF-8.
  private mutating func unicodeEscape() throws(WireError) -> Unicode.Scalar {
    let first = try hexQuad()
    if let scalar = Unicode.Scalar(first) { return scalar }
    let backslash = try peek()
    position += 1
    let letter = try peek()
    position += 1
    guard first < 0xdc00, backslash == UInt8(ascii: "\\"), letter == UInt8(ascii: "u") else {
      throw WireError(.notUTF8, "surrogates in pairs only")
    }
    let second = try hexQuad()
    guard second >= 0xdc00, second <= 0xdfff,
      let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw WireError(.notUTF8, "surrogates in pairs only") }
    return scalar
  }

  private mutating func hexQuad() throws(WireError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = hexValue(try peek()) else { throw malformed }
      position += 1
      value = value << 4 | UInt32(digit)
    }
    return value
  }
}

/// The value of a hexadecimal digit, in either case.
func hexValue(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}
