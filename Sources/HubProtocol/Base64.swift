import Foundation

/// RFC 4648 section 4 base64: padded, without line breaks, each value in exactly one spelling.
enum Base64 {
  /// Appends the text of `bytes`.
  static func append(_ bytes: Data, to output: inout [UInt8]) {
    output.append(contentsOf: bytes.base64EncodedData())
  }

  /// The bytes that a text stands for.
  /// - Throws: ``WireError/Code/notCanonical`` for white space, missing padding, another alphabet,
  ///   or bits behind the last byte that are not zero.
  static func decode(_ text: ArraySlice<UInt8>) throws(WireError) -> Data {
    let refusal = WireError(.notCanonical, "base64 of RFC 4648 section 4, padded and canonical")
    guard text.count.isMultiple(of: 4) else { throw refusal }
    guard let last = text.last else { return Data() }
    let padding = last == pad ? (text[text.endIndex - 2] == pad ? 2 : 1) : 0
    var output: [UInt8] = []
    output.reserveCapacity(text.count / 4 * 3)
    let digits = text.dropLast(padding)
    var bits: UInt32 = 0
    var bitCount = 0
    for byte in digits {
      let value = values[Int(byte)]
      guard value < 64 else { throw refusal }
      bits = bits << 6 | UInt32(value)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        output.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
      }
    }
    // A byte has one spelling only if the bits that are left over say nothing.
    guard bits & ((1 << UInt32(bitCount)) - 1) == 0 else { throw refusal }
    return Data(output)
  }

  private static let pad = UInt8(ascii: "=")

  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for (value, byte) in alphabet.utf8.enumerated() { values[Int(byte)] = UInt8(value) }
    return values
  }()
}
