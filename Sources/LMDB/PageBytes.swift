/// The bytes of one page, or of a sub-page, owned by whoever reads it; reused from page to page.
struct PageBytes: ~Copyable {
  var bytes: [UInt8]
  /// Where the page begins in `bytes`: not 0 for a sub-page only.
  var base = 0
  var count: Int

  init(count: Int) {
    bytes = [UInt8](repeating: 0, count: count)
    self.count = count
  }

  /// A little-endian integer; 0 where the page ends before it.
  func integer<T: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: T.Type = T.self)
    -> T
  {
    guard offset >= 0, offset + MemoryLayout<T>.size <= count else { return 0 }
    // SAFETY: any bit pattern is an integer; the span's own check holds the bounds.
    let value = unsafe bytes.span.bytes.unsafeLoadUnaligned(
      fromByteOffset: base + offset, as: T.self)
    return T(littleEndian: value)
  }

  /// - Precondition: it lies inside the page.
  mutating func store<T: FixedWidthInteger & BitwiseCopyable>(_ value: T, at offset: Int) {
    precondition(
      offset >= 0 && offset + MemoryLayout<T>.size <= count, "LMDB: a number outside its page")
    let start = base + offset
    // SAFETY: checked above; `base` and `count` lie within the array.
    unsafe bytes.withUnsafeMutableBytes {
      unsafe $0.storeBytes(of: value.littleEndian, toByteOffset: start, as: T.self)
    }
  }

  func slice(_ range: Range<Int>) -> ArraySlice<UInt8> {
    bytes[(base + range.lowerBound)..<(base + range.upperBound)]
  }

  var pageNumber: UInt64 { integer(at: 0) }
  var fixedByteCount: Int { Int(integer(at: 8, as: UInt16.self)) }
  var flags: PageLayout.PageFlags { PageLayout.PageFlags(rawValue: integer(at: 10)) }
  var lower: Int { Int(integer(at: 12, as: UInt16.self)) }
  var upper: Int { Int(integer(at: 14, as: UInt16.self)) }
  /// How many pages an overflow run has; only its first page says so.
  var overflowPageCount: UInt64 { UInt64(integer(at: 12, as: UInt32.self)) }

  /// How many nodes the header promises.
  var nodeCount: Int { max(0, lower - PageLayout.headerByteCount) / 2 }

  /// Whether the free space that the header promises lies inside the page.
  var hasGoodBounds: Bool {
    lower >= PageLayout.headerByteCount && lower & 1 == 0 && lower <= upper && upper <= count
  }

  /// A node, or nil when it does not lie inside the used part of the page.
  func node(_ index: Int, isBranch: Bool) -> PageNode? {
    let offset = Int(integer(at: PageLayout.headerByteCount + 2 * index, as: UInt16.self))
    guard offset >= upper, offset & 1 == 0, offset + PageLayout.nodeHeaderByteCount <= count
    else { return nil }
    let low: UInt16 = integer(at: offset)
    let high: UInt16 = integer(at: offset + 2)
    let third: UInt16 = integer(at: offset + 4)
    let keyStart = offset + PageLayout.nodeHeaderByteCount
    let keyEnd = keyStart + Int(integer(at: offset + 6, as: UInt16.self))
    guard keyEnd <= count else { return nil }
    let size = UInt64(low) | UInt64(high) << 16
    if isBranch {
      return PageNode(
        flags: [], key: keyStart..<keyEnd, data: keyEnd..<keyEnd, valueByteCount: 0,
        child: size | UInt64(third) << 32, offset: offset)
    }
    let flags = PageLayout.NodeFlags(rawValue: third)
    let dataEnd = keyEnd + (flags.contains(.overflow) ? 8 : Int(size))
    guard dataEnd <= count else { return nil }
    return PageNode(
      flags: flags, key: keyStart..<keyEnd, data: keyEnd..<dataEnd, valueByteCount: Int(size),
      child: 0, offset: offset)
  }

  /// The key of a page of fixed-size keys (LMDB's LEAF2), or nil when it does not fit.
  func fixedKey(_ index: Int, byteCount: Int) -> Range<Int>? {
    let start = PageLayout.headerByteCount + index * byteCount
    guard byteCount > 0, start + byteCount <= count else { return nil }
    return start..<(start + byteCount)
  }
}
