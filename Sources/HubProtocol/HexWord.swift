/// Four bytes and their eight lower-case hexadecimal digits, all at once.
///
/// A page has two UUIDs for each record. Digit by digit each of them is a guess of the processor's
/// between figures and letters, which it loses every third time.
enum HexWord {
  private static let ones: UInt64 = 0x0101_0101_0101_0101

  /// The digits as ASCII, the first one in the highest byte.
  @inline(__always)
  static func digits(of value: UInt32) -> UInt64 {
    var nibbles = UInt64(value)
    nibbles = (nibbles << 16 | nibbles) & 0x0000_FFFF_0000_FFFF
    nibbles = (nibbles << 8 | nibbles) & 0x00FF_00FF_00FF_00FF
    nibbles = (nibbles << 4 | nibbles) & 0x0F0F_0F0F_0F0F_0F0F
    return digits(ofNibbles: nibbles)
  }

  /// The value of eight digits, the first one in the highest byte; nil if one is none.
  @inline(__always)
  static func value(of digits: UInt64) -> UInt32? {
    // No byte's sum reaches the next one: 15 and 9 at most.
    let isLetter = digits >> 6 & ones
    var nibbles = (digits & (15 &* ones)) &+ isLetter &* 9
    // Upper case, and whatever is no digit, does not come back as it was.
    guard nibbles & (0xF0 &* ones) == 0, self.digits(ofNibbles: nibbles) == digits else {
      return nil
    }
    nibbles = (nibbles | nibbles >> 4) & 0x00FF_00FF_00FF_00FF
    nibbles = (nibbles | nibbles >> 8) & 0x0000_FFFF_0000_FFFF
    return UInt32(truncatingIfNeeded: nibbles | nibbles >> 16)
  }

  /// - Parameter nibbles: 0 to 15 in each byte.
  @inline(__always)
  private static func digits(ofNibbles nibbles: UInt64) -> UInt64 {
    let isLetter = (nibbles &+ 6 &* ones) >> 4 & ones
    return nibbles &+ UInt64(UInt8(ascii: "0")) &* ones &+ isLetter &* 39
  }
}
