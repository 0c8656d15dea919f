import Foundation

/// Writes JSON (RFC 8259) without white space, members in the order of the protocol.
struct JSONWriter: WireWriter {
  private(set) var bytes: [UInt8] = []
  /// Something stands before on this level, so that a comma comes first.
  private var needsComma = false

  init(byteCountHint: Int) {
    bytes.reserveCapacity(byteCountHint)
  }

  mutating func beginObject() { begin(UInt8(ascii: "{")) }
  mutating func endObject() { end(UInt8(ascii: "}")) }
  mutating func beginList(count: Int) { begin(UInt8(ascii: "[")) }
  mutating func endList() { end(UInt8(ascii: "]")) }

  mutating func name(_ name: String) {
    value { bytes in
      JSONWriter.appendQuoted(name.utf8, to: &bytes)
      bytes.append(UInt8(ascii: ":"))
    }
    needsComma = false
  }

  mutating func null() { literal("null") }

  mutating func bool(_ value: Bool) { literal(value ? "true" : "false") }

  mutating func unsigned(_ value: UInt64) { literal(String(value)) }

  mutating func uuid(_ value: UUID) {
    self.value { bytes in
      bytes.append(UInt8(ascii: "\""))
      value.appendWireText(to: &bytes)
      bytes.append(UInt8(ascii: "\""))
    }
  }

  mutating func text(_ utf8: [UInt8]) {
    value { bytes in JSONWriter.appendQuoted(utf8, to: &bytes) }
  }

  mutating func payload(_ value: Data) {
    self.value { bytes in
      bytes.append(UInt8(ascii: "\""))
      Base64.append(value, to: &bytes)
      bytes.append(UInt8(ascii: "\""))
    }
  }

  private mutating func literal(_ text: String) {
    value { bytes in bytes.append(contentsOf: text.utf8) }
  }

  private mutating func value(_ write: (inout [UInt8]) -> Void) {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    write(&bytes)
    needsComma = true
  }

  private mutating func begin(_ bracket: UInt8) {
    value { bytes in bytes.append(bracket) }
    needsComma = false
  }

  private mutating func end(_ bracket: UInt8) {
    bytes.append(bracket)
    needsComma = true
  }

  /// Escapes what RFC 8259 section 7 says must be, and nothing else.
  private static func appendQuoted(_ utf8: some Sequence<UInt8>, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for byte in utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(byte)
      case 0..<0x20:
        bytes.append(contentsOf: "\\u00".utf8)
        bytes.append(UInt8(ascii: "0") + byte >> 4)
        let low = byte & 15
        bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
      default:
        bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
