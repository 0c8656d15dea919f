import Foundation
import LMDB

/// The owners whose hashes put them together, and the area of each, packed into one value that is looked
/// into where it lies.
///
/// A tree of one row for each owner is looked through at a dozen places, which among very many are in no
/// cache: each costs as much as all the rest of a lookup. Here the group is found in a tree that stays
/// small, and the owner in it by its tag: two places, and 24 bytes for each owner altogether.
///
/// The owner's own bytes are not here, but in the area, which is asked whenever it is opened: two owners
/// of one tag, of which there is one chance in 2^64 for each pair in a group, are an owner and an
/// area that disagree, not a mistaken one.
///
/// A value is the tags (8 each, little-endian, ascending), then their areas (16 each).
struct OwnerGroup: Equatable {
  /// How many groups there are: at 100,000 owners about 19 KB each, found in one page.
  static let count: UInt16 = 128
  private static let entryByteCount = 24

  private(set) var entries: [(tag: UInt64, area: UUID)] = []

  static func == (left: Self, right: Self) -> Bool {
    left.entries.elementsEqual(right.entries, by: ==)
  }

  /// Where an owner is looked for: the same on every machine, since it is stored.
  struct Place: Hashable {
    let group: UInt16
    let tag: UInt64

    init(group: UInt16, tag: UInt64) { (self.group, self.tag) = (group, tag) }

    init(_ owner: Data) {
      self = owner.withUnsafeBytes { bytes in
        var (first, second) = (UInt64(truncatingIfNeeded: bytes.count), ~UInt64(0))
        func mix(_ word: UInt64) {
          first = Self.mixed(first ^ word, 0x9e37_79b9_7f4a_7c15)
          second = Self.mixed(second ^ word, 0xd6e8_feb8_6659_fd93)
        }
        var index = 0
        while index + 8 <= bytes.count {
          mix(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
          index += 8
        }
        var rest: UInt64 = 0
        while index < bytes.count {
          rest = rest << 8 | UInt64(bytes[index])
          index += 1
        }
        mix(rest)
        return Place(
          group: UInt16(truncatingIfNeeded: Self.mixed(second, 0xa076_1d64_78bd_642f)) % count,
          tag: Self.mixed(first, 0xe703_7ed1_a0b4_28db))
      }
    }

    private static func mixed(_ left: UInt64, _ right: UInt64) -> UInt64 {
      let product = left.multipliedFullWidth(by: right)
      return product.high ^ product.low
    }
  }

  // MARK: Looking

  /// The area of an owner's tag, looked up in place.
  /// - Parameter bytes: of the group's value.
  /// - Throws: `damaged` when it has not the length of one.
  static func area(of tag: UInt64, in bytes: RawSpan) throws(StoreError) -> UUID? {
    let count = try count(in: bytes)
    return bytes.withUnsafeBytes { bytes in
      func at(_ index: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
      }
      // Tags are as good as random: where one lies is known but for a few places.
      var index = Int(truncatingIfNeeded: tag.multipliedFullWidth(by: UInt64(count)).high)
      while index > 0, at(index - 1) >= tag { index -= 1 }
      while index < count, at(index) < tag { index += 1 }
      guard index < count, at(index) == tag else { return nil }
      let place = count * 8 + index * 16
      return UUID(uuid: bytes.loadUnaligned(fromByteOffset: place, as: uuid_t.self))
    }
  }

  private static func count(in bytes: RawSpan) throws(StoreError) -> Int {
    let (count, rest) = bytes.byteCount.quotientAndRemainder(dividingBy: entryByteCount)
    guard rest == 0 else { throw .damaged("accounts") }
    return count
  }

  // MARK: Changing

  init() {}

  /// - Throws: `damaged`.
  init(_ bytes: RawSpan) throws(StoreError) {
    let count = try Self.count(in: bytes)
    entries = bytes.withUnsafeBytes { bytes in
      (0..<count).map { index in
        (
          UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self)),
          UUID(
            uuid: bytes.loadUnaligned(fromByteOffset: count * 8 + index * 16, as: uuid_t.self))
        )
      }
    }
  }

  subscript(tag: UInt64) -> UUID? {
    get { entries.first { $0.tag == tag }?.area }
    set {
      entries.removeAll { $0.tag == tag }
      guard let newValue else { return }
      entries.insert((tag, newValue), at: entries.firstIndex { $0.tag > tag } ?? entries.count)
    }
  }

  /// The value's bytes.
  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(entries.count * Self.entryByteCount)
    for entry in entries {
      withUnsafeBytes(of: entry.tag.littleEndian) { bytes.append(contentsOf: $0) }
    }
    for entry in entries {
      withUnsafeBytes(of: entry.area.uuid) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }
}
