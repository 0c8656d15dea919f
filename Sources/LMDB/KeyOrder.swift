#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// How LMDB orders the keys of a tree. Corresponds to `mdb_cmp_memn`, `mdb_cmp_memnr`, `mdb_cmp_cint`.
enum KeyOrder {
  /// By the bytes, the shorter first where one begins the other.
  case bytes
  /// The same, from the last byte to the first.
  case reversedBytes
  /// As unsigned integers of the machine, of equal length.
  case integers

  static func ofKeys(_ flags: PageLayout.TableFlags) -> KeyOrder {
    if flags.contains(.integerKey) { return .integers }
    return flags.contains(.reverseKey) ? .reversedBytes : .bytes
  }

  static func ofDuplicates(_ flags: PageLayout.TableFlags) -> KeyOrder {
    if flags.contains(.integerDuplicates) { return .integers }
    return flags.contains(.reverseDuplicates) ? .reversedBytes : .bytes
  }

  /// Whether the first key stands before the second, and is not the same.
  func isBefore(_ first: RawSpan, _ second: RawSpan) -> Bool {
    let common = min(first.byteCount, second.byteCount)
    switch self {
    case .bytes:
      let result = unsafe first.withUnsafeBytes { one in
        unsafe second.withUnsafeBytes { other in
          guard let one = one.baseAddress, let other = other.baseAddress else {
            return Int32(0)
          }
          return unsafe memcmp(one, other, common)
        }
      }
      return result != 0 ? result < 0 : first.byteCount < second.byteCount
    case .reversedBytes:
      for index in 0..<common {
        let one = Self.byte(first, first.byteCount - 1 - index)
        let other = Self.byte(second, second.byteCount - 1 - index)
        if one != other { return one < other }
      }
      return first.byteCount < second.byteCount
    case .integers:
      guard first.byteCount == second.byteCount else { return first.byteCount < second.byteCount }
      for index in stride(from: common - 1, through: 0, by: -1) {
        let one = Self.byte(first, index)
        let other = Self.byte(second, index)
        if one != other { return one < other }
      }
      return false
    }
  }

  private static func byte(_ span: RawSpan, _ index: Int) -> UInt8 {
    // SAFETY: any bit pattern is a byte; the span's own check holds the bounds.
    unsafe span.unsafeLoad(fromByteOffset: index, as: UInt8.self)
  }
}
