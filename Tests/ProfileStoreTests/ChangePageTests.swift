import Foundation
import HubProtocol
import ProfileStore
import Testing

@Suite("A packed page of changes")
struct ChangePageTests {
  private static let changes = [
    IncomingChange(record: "a", version: 1, payload: Data("one".utf8), isDeleted: false),
    IncomingChange(record: "empty", version: 2, payload: Data(), isDeleted: false),
    IncomingChange(record: "gone", version: 3, payload: nil, isDeleted: true),
    IncomingChange(record: "é", version: 1 << 52, payload: nil, isDeleted: true, isInferred: true),
    IncomingChange(
      record: RecordID(String(repeating: "x", count: 400)), version: (1 << 53) - 1,
      payload: Data(repeating: 9, count: 70_000), isDeleted: false),
  ]

  @Test("gives back what was packed")
  func roundTrip() throws {
    let page = ChangePage(Self.changes)
    #expect(try page.changes() == Self.changes)
    #expect(ChangePage([]).count == 0)
  }

  @Test("is the same when it is read where its bytes lie")
  func inPlace() throws {
    let page = ChangePage(Self.changes)
    page.mark(0, as: .isOutdated)
    // Wherever a map puts them: also at an odd address.
    for offset in 0...3 {
      let memory = UnsafeMutableRawBufferPointer.allocate(
        byteCount: page.byteCount + offset, alignment: 16)
      defer { memory.deallocate() }
      let place = UnsafeMutableRawBufferPointer(rebasing: memory[offset...])
      page.bytes.withUnsafeBytes { place.copyMemory(from: $0) }
      let keeper = Keeper()
      let taken = try ChangePage(UnsafeRawBufferPointer(place), keptBy: keeper)
      #expect(try taken.changes() == Self.changes)
      #expect(taken.versions(.isOutdated) == [1])
      let copy = try ChangePage(copying: UnsafeRawBufferPointer(place))
      copy.mark(1, as: .isSkipped)
      #expect(copy.versions(.isSkipped) == [2] && taken.versions(.isSkipped) == [])
    }
  }

  private final class Keeper {}

  @Test("that is cut off anywhere is damaged, and no crash")
  func cut() throws {
    let page = ChangePage(Array(Self.changes.prefix(4)))
    let bytes = page.bytes.withUnsafeBytes { Array($0) }
    for count in 0..<bytes.count {
      bytes.withUnsafeBytes { whole in
        let cut = UnsafeRawBufferPointer(rebasing: whole[..<count])
        #expect(throws: StoreError.self) { try ChangePage(copying: cut) }
      }
    }
  }

  @Test("with any byte of its heads changed is damaged, or lends only what is its own")
  func changed() throws {
    let page = ChangePage(Array(Self.changes.prefix(4)))
    let bytes = page.bytes.withUnsafeBytes { Array($0) }
    var refused = 0
    for place in 0..<8 + 32 * 4 {
      for value in [0, 1, 0x7f, 0x80, 0xff] as [UInt8] {
        var changed = bytes
        changed[place] = value
        do {
          let page = try changed.withUnsafeBytes { try ChangePage(copying: $0) }
          // Every place lies within: reading all of it is no trap.
          for index in 0..<page.count { _ = try page.change(at: index) }
        } catch let error as StoreError {
          #expect(error.code == .damaged)
          refused += 1
        }
      }
    }
    #expect(refused > 50)
  }

  @Test("IDs are told apart by their bytes, whatever number a table makes of them")
  func table() {
    var table = IDTable(capacity: 1)
    let ids = (0..<5_000).map { "record \($0 % 4_000)" }
    var before: [UInt64?] = []
    for (place, id) in ids.enumerated() {
      before.append(
        table.put(id.utf8Span.span.bytes, at: UInt64(place)) { ids[Int($0)] == id })
    }
    #expect(before.prefix(4_000).allSatisfy { $0 == nil })
    #expect(before.suffix(1_000) == (0..<1_000).map { UInt64($0) }[...])
    // One that the caller says is another is another.
    let again = table.put("record 1".utf8Span.span.bytes, at: 9_999) { _ in false }
    #expect(again == nil)
  }
}
