import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("D: the cursor")
struct CursorTests {
  /// A device that has pulled once, before another one sent records.
  private static func reader(
    _ hub: TestHub, of records: [RecordID], _ text: String = "first"
  ) async throws -> Person {
    let alice = try await Device(hub, keeping: .app).signIn()
    try await alice.pass()
    _ = try await Person.withRecords(hub, records, text)
    alice.device.wire.clear()
    return alice
  }

  /// A pass whose app cannot save one record.
  private static func pass(_ alice: Person, failingAt record: RecordID) async throws {
    try await alice.profile.synchronize(account: alice.account) { batch in
      for change in try batch.changes(localOwner: alice.account.bytes).copies()
      where change.record == record { throw AppFailure() }
      try alice.app.save(batch)
    }
  }

  @Test(
    "D4: one record that cannot be saved keeps the cursor before its page, which comes again whole")
  func oneRecordFails() async throws {
    try await TestHub.run { hub in
      let alice = try await Self.reader(hub, of: ids(1...500))
      let cursor = try alice.profile.cursor()
      await #expect(throws: AppFailure.self) { try await Self.pass(alice, failingAt: "r0250") }
      #expect(try alice.profile.cursor() == cursor)
      #expect(alice.app.rows.isEmpty)
      try await alice.pass()
      #expect(alice.app.batches.map(\.changes.count) == [500])
      #expect(alice.app.changes.map(\.record) == ids(1...500))
    }
  }

  @Test("D6: a record that can never be saved is never skipped: each pass asks for its page once")
  func neverSkipped() async throws {
    try await TestHub.run(HubLimits(pullRecords: 10)) { hub in
      let alice = try await Self.reader(hub, of: ids(1...30))
      for _ in 1...3 {
        alice.device.wire.clear()
        await #expect(throws: AppFailure.self) { try await Self.pass(alice, failingAt: "r0015") }
        #expect(try alice.profile.cursor()?.sequence == 10)
        #expect(alice.app.rows.count == 10)
        // What is frozen costs two pages at most, not one after the other without end.
        #expect(alice.device.wire.calls.filter { $0 == .changes }.count <= 2)
      }
      try await alice.pass()
      #expect(alice.app.changes.map(\.record) == ids(1...30))
    }
  }

  @Test("D7: 2,000 records of one instant arrive exactly once, in pages of 500")
  func oneInstant() async throws {
    try await TestHub.run { hub in
      let names = (1...2_000).map { RecordID("r\($0)") }
      let alice = try await Self.reader(hub, of: names)
      try await alice.pass()
      #expect(alice.app.batches.map(\.changes.count) == [500, 500, 500, 500])
      #expect(alice.app.changes.map(\.record) == names)
      #expect(Set(alice.app.changes.map(\.version)).count == 2_000)
    }
  }

  @Test("D10: a device that has lost its cursor begins at zero, and misses and loses nothing")
  func lostCursor() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub, keeping: .app)
      let alice = try await device.signIn()
      try await alice.write(["own"], "mine")
      try await alice.pass()
      _ = try await Person.withRecords(hub, ids(1...5))
      try await alice.pass()
      try await device.registry.erase(alice.account)
      let again = try await device.signIn()
      #expect(try again.profile.cursor() == nil)
      try await again.write(["waits"], "mine")
      try await again.pass()
      #expect(again.app.texts == (try await hub.texts(of: "alice")))
      #expect(again.app.rows.count == 7)
    }
  }
}
