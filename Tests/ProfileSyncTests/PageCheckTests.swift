import Foundation
import HubProtocol
import ProfileSync
import Testing

@Suite("A page")
struct PageCheckTests {
  private static let epoch = UUID()

  private static func page(
    after: UInt64 = 10, next: UInt64, more: Bool = false, highWater: UInt64 = 50,
    _ records: [(RecordID, UInt64)]
  ) throws -> ChangesPage {
    ChangesPage(
      hub: UUID(), epoch: epoch, account: try AccountID("alice"), after: after, next: next,
      more: more, highWater: highWater,
      records: records.map { WireRecord(id: $0.0, version: $0.1, deleted: false, payload: Data()) })
  }

  private static func query(limit: Int = 3, until: UInt64? = nil) -> ChangesQuery {
    ChangesQuery(after: 10, epoch: epoch, limit: limit, until: until)
  }

  @Test("that is what was asked for may be used")
  func right() throws {
    let whole = try Self.page(next: 50, [("a", 11), ("b", 20)])
    #expect(PageCheck.fault(in: ChangesOutline(whole), asked: Self.query()) == nil)
    let part = try Self.page(next: 20, more: true, [("a", 11), ("b", 20)])
    #expect(PageCheck.fault(in: ChangesOutline(part), asked: Self.query()) == nil)
    let none = try Self.page(next: 50, [])
    #expect(PageCheck.fault(in: ChangesOutline(none), asked: Self.query()) == nil)
    let pinned = try Self.page(next: 30, [("a", 11), ("b", 30)])
    #expect(PageCheck.fault(in: ChangesOutline(pinned), asked: Self.query(until: 30)) == nil)
    // `until` above the high water is legal.
    let beyond = try Self.page(next: 50, [("a", 50)])
    #expect(PageCheck.fault(in: ChangesOutline(beyond), asked: Self.query(until: 99)) == nil)
    // Nothing new, and a cursor that is the high water.
    let nothing = try Self.page(next: 10, highWater: 10, [])
    #expect(PageCheck.fault(in: ChangesOutline(nothing), asked: Self.query()) == nil)
  }

  @Test("that begins elsewhere is not used")
  func after() throws {
    let page = try Self.page(after: 9, next: 50, [("a", 11)])
    #expect(PageCheck.fault(in: ChangesOutline(page), asked: Self.query()) != nil)
  }

  @Test("with more records than were asked for is not used")
  func tooMany() throws {
    let page = try Self.page(next: 50, [("a", 11), ("b", 12), ("c", 13), ("d", 14)])
    #expect(PageCheck.fault(in: ChangesOutline(page), asked: Self.query()) != nil)
  }

  @Test("out of order, or with two records of one version, is not used")
  func order() throws {
    for versions in [(20, 11), (20, 20), (10, 20), (9, 20)] as [(UInt64, UInt64)] {
      let page = try Self.page(next: 50, [("a", versions.0), ("b", versions.1)])
      #expect(PageCheck.fault(in: ChangesOutline(page), asked: Self.query()) != nil)
    }
  }

  @Test("with one ID twice is an error")
  func twice() throws {
    let page = try Self.page(next: 50, [("a", 11), ("b", 12), ("a", 13)])
    #expect(PageCheck.fault(in: ChangesOutline(page), asked: Self.query()) != nil)
  }

  @Test("with a record beyond its end or the high water is not used")
  func beyond() throws {
    let pinned = try Self.page(next: 30, [("a", 31)])
    #expect(PageCheck.fault(in: ChangesOutline(pinned), asked: Self.query(until: 30)) != nil)
    let above = try Self.page(next: 50, [("a", 51)])
    #expect(PageCheck.fault(in: ChangesOutline(above), asked: Self.query()) != nil)
  }

  @Test(
    "whose next is not where it ends is not used",
    arguments: [
      (10, true), (9, true), (19, true), (21, true), (50, true), (20, false), (49, false),
      (51, false), (10, false), (0, false),
    ] as [(UInt64, Bool)])
  func next(next: UInt64, more: Bool) throws {
    let page = try Self.page(next: next, more: more, [("a", 11), ("b", 20)])
    #expect(PageCheck.fault(in: ChangesOutline(page), asked: Self.query()) != nil)
  }

  @Test("that says there is more and has nothing, or is at its end, is not used")
  func endless() throws {
    let empty = try Self.page(next: 10, more: true, [])
    #expect(PageCheck.fault(in: ChangesOutline(empty), asked: Self.query()) != nil)
    let atItsEnd = try Self.page(next: 50, more: true, [("a", 50)])
    #expect(PageCheck.fault(in: ChangesOutline(atItsEnd), asked: Self.query()) != nil)
    let pinned = try Self.page(next: 30, more: true, [("a", 30)])
    #expect(PageCheck.fault(in: ChangesOutline(pinned), asked: Self.query(until: 30)) != nil)
  }
}
