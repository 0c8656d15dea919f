import Foundation

extension UUID {
  /// The bytes of the one spelling of the wire: 36 characters, lower case, hyphens.
  ///
  /// Foundation writes upper case and reads any; here another spelling is no UUID.
  init?(wireText text: ArraySlice<UInt8>) {
    guard text.count == 36 else { return nil }
    var bytes = InlineArray<16, UInt8>(repeating: 0)
    var index = text.startIndex
    for position in 0..<16 {
      if position == 4 || position == 6 || position == 8 || position == 10 {
        guard text[index] == UInt8(ascii: "-") else { return nil }
        index += 1
      }
      guard let high = lowerCaseHexValue(text[index]), let low = lowerCaseHexValue(text[index + 1])
      else { return nil }
      bytes[position] = high << 4 | low
      index += 2
    }
    self.init(
      uuid: (
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
        bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
      ))
  }

  /// Appends the 36 bytes of that spelling.
  func appendWireText(to output: inout [UInt8]) {
    let tuple = uuid
    let bytes: InlineArray<16, UInt8> = [
      tuple.0, tuple.1, tuple.2, tuple.3, tuple.4, tuple.5, tuple.6, tuple.7,
      tuple.8, tuple.9, tuple.10, tuple.11, tuple.12, tuple.13, tuple.14, tuple.15,
    ]
    for position in 0..<16 {
      if position == 4 || position == 6 || position == 8 || position == 10 {
        output.append(UInt8(ascii: "-"))
      }
      output.append(lowerCaseHexDigit(bytes[position] >> 4))
      output.append(lowerCaseHexDigit(bytes[position] & 15))
    }
  }

  /// That spelling, for paths and queries.
  package var wireText: String {
    var bytes: [UInt8] = []
    appendWireText(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads that spelling and no other.
  /// - Returns: Nil for upper case, braces, missing hyphens or anything else.
  package init?(wireText text: String) {
    self.init(wireText: Array(text.utf8)[...])
  }
}

private func lowerCaseHexValue(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  default: nil
  }
}

private func lowerCaseHexDigit(_ value: UInt8) -> UInt8 {
  value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
}
