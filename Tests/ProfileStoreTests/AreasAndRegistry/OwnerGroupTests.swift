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
    #expect(bytes.count == expected.count * 24)
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
    #expect(group.encoded().isEmpty)
  }

  @Test("a value of another length is damaged", arguments: [1, 23, 25, 47])
  func damaged(_ byteCount: Int) {
    let bytes = [UInt8](repeating: 0, count: byteCount)
    for body in [
      { _ = try area(of: 1, in: bytes) }, { _ = try OwnerGroup(bytes.span.bytes) },
    ] as [() throws -> Void] {
      #expect { try body() } throws: { ($0 as? StoreError)?.code == .damaged }
    }
  }

  @Test("bytes that are no group's are looked through without a trap")
  func random() throws {
    for _ in 0..<200 {
      let bytes = (0..<24 * 9).map { _ in UInt8.random(in: 0...255) }
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
