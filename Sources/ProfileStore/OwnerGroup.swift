import Foundation
import LMDB

/// The owners whose hashes put them together, and the area of each, packed into one value that is looked
/// into where it lies.
///
/// A tree of one row for each owner is looked through at a dozen places, which among very many are in no
/// cache: each costs as much as all the rest of a lookup. Here the group is found in a tree that stays
/// small, and the owner in it by its tag, which says where to look: one place that is in no cache.
///
/// The owner's own bytes are not here, but in the area, which is asked whenever it is opened: two owners
/// of one tag, of which there is one chance in 2^64 for each pair in a group, are an owner and an
/// area that disagree, not a mistaken one.
///
/// A value is the number of homes (8, little-endian), then slots of a tag (8, little-endian) and its area
/// (16); 24 zeros are a slot that nobody has. A tag's home is that many homes by its part of all
/// numbers; tags lie in ascending order, each in its home or, where that is taken, as soon behind it as
/// can be, so that what a group holds decides its bytes. There are half as many homes again as owners.
struct OwnerGroup: Equatable {
  /// How many groups there are: at 100,000 owners about 28 KB each, found in one page.
  static let count: UInt16 = 128
  private static let headByteCount = 8
  private static let slotByteCount = 24

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
  /// - Throws: `damaged` when it is not one.
  static func area(of tag: UInt64, in bytes: RawSpan) throws(StoreError) -> UUID? {
    let shape = try Shape(of: bytes)
    return bytes.withUnsafeBytes { bytes in
      var place = offset(of: tag, homes: shape.homes)
      while place < bytes.count {
        let found = Self.tag(at: place, in: bytes)
        if found >= tag {
          guard found == tag else { return nil }
          return area(at: place, in: bytes)
        }
        if found == 0, area(at: place, in: bytes) == nil { return nil }
        place += slotByteCount
      }
      return nil
    }
  }

  /// Where in a value with so many homes a tag lies, or a few slots behind it.
  static func offset(of tag: UInt64, homes: UInt64) -> Int {
    headByteCount + Int(tag.multipliedFullWidth(by: homes).high) * slotByteCount
  }

  /// How many homes a value has.
  /// - Throws: `damaged`.
  static func homes(in bytes: RawSpan) throws(StoreError) -> UInt64 { try Shape(of: bytes).homes }

  private static func tag(at place: Int, in bytes: UnsafeRawBufferPointer) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
  }

  /// - Returns: nil for a slot that nobody has; no area has the UUID of zeros.
  private static func area(at place: Int, in bytes: UnsafeRawBufferPointer) -> UUID? {
    let first = bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self)
    let second = bytes.loadUnaligned(fromByteOffset: place + 16, as: UInt64.self)
    guard first | second != 0 else { return nil }
    return UUID(uuid: bytes.loadUnaligned(fromByteOffset: place + 8, as: uuid_t.self))
  }

  /// How a value is divided.
  private struct Shape {
    let homes: UInt64

    init(count: Int) { homes = UInt64(count + (count + 1) / 2) }

    init(of bytes: RawSpan) throws(StoreError) {
      guard bytes.byteCount >= headByteCount else { throw .damaged("accounts") }
      let (slots, rest) = (bytes.byteCount - headByteCount)
        .quotientAndRemainder(dividingBy: slotByteCount)
      homes = UInt64(
        littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self))
      guard rest == 0, homes <= slots else { throw .damaged("accounts") }
    }

    /// 0 also where there is no home.
    func home(of tag: UInt64) -> Int { Int(tag.multipliedFullWidth(by: homes).high) }
  }

  // MARK: Changing

  init() {}

  /// - Throws: `damaged`.
  init(_ bytes: RawSpan) throws(StoreError) {
    _ = try Shape(of: bytes)
    let found = bytes.withUnsafeBytes { bytes in
      stride(from: Self.headByteCount, to: bytes.count, by: Self.slotByteCount).compactMap {
        place in
        Self.area(at: place, in: bytes).map { (tag: Self.tag(at: place, in: bytes), area: $0) }
      }
    }
    // What is found in its place only is also to be changed only.
    guard zip(found, found.dropFirst()).allSatisfy({ $0.tag < $1.tag }) else {
      throw .damaged("accounts")
    }
    entries = found
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
    let shape = Shape(count: entries.count)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.headByteCount + (Int(shape.homes) + 8) * Self.slotByteCount)
    withUnsafeBytes(of: shape.homes.littleEndian) { bytes.append(contentsOf: $0) }
    func fill(upTo slot: Int) {
      let missing = Self.headByteCount + slot * Self.slotByteCount - bytes.count
      if missing > 0 { bytes.append(contentsOf: repeatElement(0, count: missing)) }
    }
    for entry in entries {
      fill(upTo: shape.home(of: entry.tag))
      withUnsafeBytes(of: entry.tag.littleEndian) { bytes.append(contentsOf: $0) }
      withUnsafeBytes(of: entry.area.uuid) { bytes.append(contentsOf: $0) }
    }
    fill(upTo: Int(shape.homes))
    return bytes
  }
}
