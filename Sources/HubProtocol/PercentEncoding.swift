/// Percent-encoding (RFC 3986 section 2.1) of bytes, as headers, paths and queries carry them.
///
/// Nothing else is applied: a `+` is a plus, and what comes out are the bytes that went in.
public enum PercentEncoding {
  /// The text of some bytes: letters, digits and `-._~` as they are, every other byte as `%XX` in
  /// upper case.
  public static func encode(bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.underestimatedCount)
    for byte in bytes {
      if isUnreserved(byte) {
        text.append(byte)
      } else {
        text.append(UInt8(ascii: "%"))
        text.append(upperCaseHexDigit(byte >> 4))
        text.append(upperCaseHexDigit(byte & 15))
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes that a text stands for; they need not be UTF-8.
  /// - Returns: Nil for a `%` without two hexadecimal digits behind it.
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count)
    var rest = text.utf8.makeIterator()
    while let byte = rest.next() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let first = rest.next(), let second = rest.next(), let high = hexValue(first),
        let low = hexValue(second)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  /// RFC 3986 section 2.3.
  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func upperCaseHexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }
}
