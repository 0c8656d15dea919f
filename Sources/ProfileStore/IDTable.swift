/// Finds record IDs that came before, by their bytes: nothing is kept of an ID but a number made from
/// it, and where the ID itself lies.
package struct IDTable: Sendable {
  /// A number made from the ID, 0 where nothing is kept; where the ID lies.
  private var entries: [(hash: UInt64, place: UInt64)]
  private var count = 0
  /// Chosen anew for each table: nobody outside can make many IDs with one number.
  private let seed = UInt64.random(in: .min ... .max)

  /// - Parameter capacity: how many IDs are expected; it grows beyond.
  package init(capacity: Int) {
    var size = 16
    while size < capacity * 2 { size *= 2 }
    entries = Array(repeating: (0, 0), count: size)
  }

  /// Keeps where an ID lies, in place of where it lay before.
  /// - Parameters:
  ///   - isThere: whether the ID that lies at a place is this one; asked only where the numbers are the
  ///     same, which two different IDs hardly ever have.
  /// - Returns: where it lay before; nil for a new one.
  @discardableResult
  package mutating func put(
    _ id: RawSpan, at place: UInt64, isThere: (UInt64) throws -> Bool
  ) rethrows -> UInt64? {
    if count * 2 >= entries.count { grow() }
    let hash = hash(of: id)
    var index = Int(truncatingIfNeeded: hash) & (entries.count - 1)
    while entries[index].hash != 0 {
      let entry = entries[index]
      if entry.hash == hash, try isThere(entry.place) {
        entries[index].place = place
        return entry.place
      }
      index = (index + 1) & (entries.count - 1)
    }
    entries[index] = (hash, place)
    count += 1
    return nil
  }

  private mutating func grow() {
    let old = entries
    entries = Array(repeating: (0, 0), count: old.count * 2)
    for entry in old where entry.hash != 0 {
      var index = Int(truncatingIfNeeded: entry.hash) & (entries.count - 1)
      while entries[index].hash != 0 { index = (index + 1) & (entries.count - 1) }
      entries[index] = entry
    }
  }

  /// Eight bytes at a time, each mixed in by the two halves of a product.
  private func hash(of id: RawSpan) -> UInt64 {
    id.withUnsafeBytes { bytes in
      var hash = seed ^ UInt64(truncatingIfNeeded: bytes.count)
      var index = 0
      while index + 8 <= bytes.count {
        hash = Self.mixed(
          hash ^ bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self), 0x9e37_79b9_7f4a_7c15)
        index += 8
      }
      var rest: UInt64 = 0
      while index < bytes.count {
        rest = rest << 8 | UInt64(bytes[index])
        index += 1
      }
      return max(Self.mixed(hash ^ rest, 0xd6e8_feb8_6659_fd93), 1)
    }
  }

  private static func mixed(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }
}

extension RawSpan {
  /// Whether two spans hold the same bytes.
  package func isEqual(to other: RawSpan) -> Bool {
    withUnsafeBytes { left in
      other.withUnsafeBytes { right in left.elementsEqual(right) }
    }
  }
}
