import Foundation

extension UUID {
  /// The bytes of the one spelling of the wire: 36 characters, lower case, hyphens.
  ///
  /// Foundation writes upper case and reads any; here another spelling is no UUID.
  init?(wireText text: ArraySlice<UInt8>) {
    // SAFETY: the buffer is read within the closure only.
    guard let uuid = text.withUnsafeBytes({ UUID(wireText: $0) }) else { return nil }
    self = uuid
  }

  /// The same of bytes that lie elsewhere, which are read within the call only.
  @inline(__always)
  init?(wireText text: UnsafeRawBufferPointer) {
    guard text.count == 36 else { return nil }
    // SAFETY: every offset is within the 36 bytes.
    func half(_ offset: Int) -> UInt64 {
      UInt64(UInt32(bigEndian: text.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }
    func whole(_ offset: Int) -> UInt64 {
      UInt64(bigEndian: text.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    let hyphen = UInt8(ascii: "-")
    guard text[8] == hyphen, text[13] == hyphen, text[18] == hyphen, text[23] == hyphen,
      let first = HexWord.value(of: whole(0)),
      let second = HexWord.value(of: half(9) << 32 | half(14)),
      let third = HexWord.value(of: half(19) << 32 | half(24)),
      let fourth = HexWord.value(of: whole(28))
    else { return nil }
    let halves = (
      (UInt64(first) << 32 | UInt64(second)).bigEndian,
      (UInt64(third) << 32 | UInt64(fourth)).bigEndian
    )
    // SAFETY: any 16 bytes are a UUID.
    self.init(uuid: unsafeBitCast(halves, to: uuid_t.self))
  }

  /// Appends the 36 bytes of that spelling.
  func appendWireText(to output: inout [UInt8]) {
    // SAFETY: both are 16 bytes of any value.
    let halves = unsafeBitCast(uuid, to: (UInt64, UInt64).self)
    let (high, low) = (UInt64(bigEndian: halves.0), UInt64(bigEndian: halves.1))
    let first = HexWord.digits(of: UInt32(truncatingIfNeeded: high >> 32))
    let second = HexWord.digits(of: UInt32(truncatingIfNeeded: high))
    let third = HexWord.digits(of: UInt32(truncatingIfNeeded: low >> 32))
    let fourth = HexWord.digits(of: UInt32(truncatingIfNeeded: low))
    withUnsafeTemporaryAllocation(byteCount: 36, alignment: 8) { text in
      // SAFETY: every offset is within the 36 bytes, which are all written.
      func put(_ digits: UInt64, _ offset: Int) {
        text.storeBytes(of: digits.bigEndian, toByteOffset: offset, as: UInt64.self)
      }
      func put(_ digits: UInt32, _ offset: Int) {
        text.storeBytes(of: digits.bigEndian, toByteOffset: offset, as: UInt32.self)
      }
      put(first, 0)
      put(UInt32(truncatingIfNeeded: second >> 32), 9)
      put(UInt32(truncatingIfNeeded: second), 14)
      put(UInt32(truncatingIfNeeded: third >> 32), 19)
      put(UInt32(truncatingIfNeeded: third), 24)
      put(fourth, 28)
      let hyphen = UInt8(ascii: "-")
      (text[8], text[13], text[18], text[23]) = (hyphen, hyphen, hyphen, hyphen)
      output.append(contentsOf: text)
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
