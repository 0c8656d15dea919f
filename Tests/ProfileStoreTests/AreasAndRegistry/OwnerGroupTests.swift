import Foundation
import Testing

@testable import ProfileStore

@Suite("Groups of owners")
struct OwnerGroupTests {
  /// What a value says of a tag.
  private func area(of tag: UInt64, in bytes: [UInt8]) throws -> UUID? {
    try OwnerGroup.area(of: tag, in: bytes.span.bytes)
  }

  @Test(
    "each tag is found, and none beside them, however they lie",
    arguments: [0, 1, 2, 7, 50, 2_000], [0, 20, 63])
  func lookups(_ count: Int, _ shift: Int) throws {
    var random = SystemRandomNumberGenerator()
    var group = OwnerGroup()
    var expected: [UInt64: UUID] = [:]
    for _ in 0..<count {
      let tag = random.next() >> UInt64(shift)
      (expected[tag], group[tag]) = (UUID(), nil)
      group[tag] = expected[tag]
    }
    let bytes = group.encoded()
    #expect((bytes.count - 8) / 24 >= expected.count + (expected.count + 1) / 2)
    for (tag, area) in expected {
      #expect(try self.area(of: tag, in: bytes) == area)
      for beside in [tag &- 1, tag &+ 1] where expected[beside] == nil {
        #expect(try self.area(of: beside, in: bytes) == nil)
      }
    }
    for tag in [0, UInt64.max, random.next()] {
      #expect(try self.area(of: tag, in: bytes) == expected[tag])
    }
    #expect(try OwnerGroup(bytes.span.bytes) == group)
  }

  @Test("the first and the last tag there can be")
  func edges() throws {
    var group = OwnerGroup()
    let (first, last) = (UUID(), UUID())
    group[.max] = last
    group[0] = first
    #expect(group.entries.map(\.tag) == [0, .max])
    #expect(try area(of: 0, in: group.encoded()) == first)
    #expect(try area(of: .max, in: group.encoded()) == last)
  }

  @Test("a tag has one area: the last that was set, or none")
  func replacing() {
    var group = OwnerGroup()
    let area = UUID()
    group[5] = UUID()
    group[5] = area
    #expect(group[5] == area)
    #expect(group.entries.count == 1)
    group[5] = nil
    #expect(group.entries.isEmpty)
    #expect(group.encoded() == [UInt8](repeating: 0, count: 8))
  }

  @Test("tags lie in their homes in ascending order, those whose home is taken behind it")
  func form() {
    var group = OwnerGroup()
    let tags: [UInt64] = [0, 1, 0x7fff_ffff_ffff_ffff, .max - 1, .max]
    for tag in tags.reversed() { group[tag] = UUID() }
    let bytes = group.encoded()
    // Eight homes for five owners, and one place behind them.
    #expect(bytes.prefix(8) == [8, 0, 0, 0, 0, 0, 0, 0])
    #expect(bytes.count == 8 + 9 * 24)
    let slots = (0..<9).map { slot in
      bytes[(8 + slot * 24)..<(16 + slot * 24)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    #expect(slots == [0, 1, 0, tags[2], 0, 0, 0, tags[3], tags[4]])
  }

  @Test("what a group holds decides its bytes, whatever happened before")
  func canonical() {
    var (once, often) = (OwnerGroup(), OwnerGroup())
    let entries = (0..<200).map { _ in (UInt64.random(in: 0 ... .max), UUID()) }
    for (tag, area) in entries { once[tag] = area }
    for (tag, area) in entries.shuffled() { often[tag] = area }
    for tag in 1...50 as ClosedRange<UInt64> { often[tag] = UUID() }
    for tag in 1...50 as ClosedRange<UInt64> { often[tag] = nil }
    #expect(once.encoded() == often.encoded())
  }

  @Test("a value whose tags lie in another order is not changed, but damaged")
  func disorder() {
    var group = OwnerGroup()
    for tag in 1...9 as ClosedRange<UInt64> { group[tag << 60] = UUID() }
    let bytes = group.encoded()
    let taken = stride(from: 8, to: bytes.count, by: 24)
      .filter { bytes[$0..<$0 + 24].contains { $0 != 0 } }
    #expect(taken.count == 9)
    for (left, right) in zip(taken, taken.dropFirst()) {
      var damaged = bytes
      damaged.replaceSubrange(left..<left + 24, with: bytes[right..<right + 24])
      damaged.replaceSubrange(right..<right + 24, with: bytes[left..<left + 24])
      #expect { _ = try OwnerGroup(damaged.span.bytes) } throws: {
        ($0 as? StoreError)?.code == .damaged
      }
    }
  }

  @Test(
    "a value of another length, or of more homes than it has room for, is damaged",
    arguments: [(1, 0), (7, 0), (9, 0), (31, 1), (33, 1), (32, 2), (32, 0xff)])
  func damaged(_ byteCount: Int, _ homes: UInt8) {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    bytes[0] = homes
    for body in [
      { _ = try area(of: 1, in: bytes) }, { _ = try OwnerGroup(bytes.span.bytes) },
    ] as [() throws -> Void] {
      #expect { try body() } throws: { ($0 as? StoreError)?.code == .damaged }
    }
  }

  @Test("bytes that are no group's are looked through without a trap")
  func random() throws {
    for _ in 0..<200 {
      let homes: [UInt8] = [.random(in: 0...9), 0, 0, 0, 0, 0, 0, 0]
      let bytes = homes + (0..<24 * 9).map { _ in UInt8.random(in: 0...255) }
      _ = try area(of: .random(in: 0 ... .max), in: bytes)
    }
  }

  @Test("an owner's place is the same wherever the store is read")
  func stable() {
    let places = [Data(), Data([0]), Data("owner".utf8), Data((0..<40).map { UInt8($0) })].map {
      OwnerGroup.Place($0)
    }
    #expect(places == Self.stored)
  }

  @Test("owners that differ in a byte, in their length or in zeros only have places of their own")
  func distinct() {
    var owners: [Data] = (0..<300).map { Data(repeating: 0, count: $0) }
    for index in 0..<64 {
      for bit in 0..<8 {
        var owner = Data(repeating: 0x41, count: 64)
        owner[index] ^= 1 << bit
        owners.append(owner)
      }
    }
    #expect(Set(owners.map { OwnerGroup.Place($0).tag }).count == owners.count)
  }

  @Test("owners are spread over all groups, and their tags over all numbers")
  func spread() {
    let hub = UUID()
    let places = (0..<12_800).map { number in
      OwnerGroup.Place(
        withUnsafeBytes(of: hub.uuid) { Data($0) } + Data("known-\(number)".utf8))
    }
    let counts = Dictionary(grouping: places, by: \.group).mapValues(\.count)
    #expect(counts.count == 128)
    #expect(counts.values.allSatisfy { 50...170 ~= $0 }, "\(counts.values.sorted())")
    let high = Dictionary(grouping: places) { $0.tag >> 57 }.mapValues(\.count)
    #expect(high.count == 128)
    #expect(high.values.allSatisfy { 50...170 ~= $0 }, "\(high.values.sorted())")
  }

  /// By another program, in another language.
  private static let stored: [OwnerGroup.Place] = [
    .init(group: 127, tag: 0x0000_0000_0000_0000),
    .init(group: 127, tag: 0x0850_f979_4d51_08b4),
    .init(group: 47, tag: 0xf030_896a_fd64_9e15),
    .init(group: 126, tag: 0xd491_766a_fcd9_3b47),
  ]
}
