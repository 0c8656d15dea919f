import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("F11: a history longer than one leg")
struct LongReplayTests {
  /// 1,001 records at a hub whose pages have 10: one more than a leg brings.
  private func reader(_ hub: TestHub) async throws -> (alice: Person, desk: Person) {
    let alice = try await Device(hub, keeping: .app).signIn()
    try await alice.pass()
    let desk = try await Person.withRecords(hub, names)
    try await alice.pass()
    alice.app.forgetBatches()
    alice.device.wire.clear()
    return (alice, desk)
  }

  private let names = (1...1_001).map { RecordID("r\($0)") }

  private static let limits = HubLimits(pullRecords: 10)

  @Test(
    "F11: the first call says where to go on, the second ends it, and the cursor is never lower")
  func twoCalls() async throws {
    try await TestHub.run(Self.limits) { hub in
      let (alice, _) = try await reader(hub)
      let first = try await alice.pass(replayFromStart: true)
      #expect(!first.isComplete)
      #expect(try alice.profile.cursor()?.sequence == 1_001)
      #expect(alice.app.changes.count == 1_000)
      let second = try await alice.leg(try #require(first.continuation))
      #expect(second.isComplete)
      #expect(second.continuation == nil)
      #expect(try alice.profile.cursor()?.sequence == 1_001)
      #expect(Set(alice.app.changes.map(\.record)) == Set(names))
      #expect(alice.app.changes.count == 1_001)
    }
  }

  @Test("F11: cancelled at page 40, the cursor and what is applied stay as they were")
  func cancelled() async throws {
    try await TestHub.run(Self.limits) { hub in
      let (alice, _) = try await reader(hub)
      let before = try alice.standing()
      let (reached, pages) = (Gate(), Log<Void>())
      alice.device.wire.before { _, request throws(TransportError) in
        if request.call == .changes, pages.add(()) == 40 {
          reached.open()
          request.headers.append(HeaderField(HubHeader.fault, "delay=600000"))
        }
        return nil
      }
      let pass = Task { try await alice.pass(replayFromStart: true) }
      await reached.wait()
      pass.cancel()
      await #expect(throws: CancellationError.self) { try await pass.value }
      let after = try alice.standing()
      #expect(after.cursor == before.cursor)
      #expect(after.records == before.records)
      #expect(after.outbox == before.outbox)
      alice.device.wire.clear()
      let report = try await alice.pass(replayFromStart: true)
      _ = try await alice.leg(try #require(report.continuation))
      #expect(Set(alice.app.changes.map(\.record)) == Set(names))
    }
  }

  @Test("F11: what others write meanwhile does not make it longer")
  func fixedEnd() async throws {
    try await TestHub.run(Self.limits) { hub in
      let (alice, desk) = try await reader(hub)
      let first = try await alice.pass(replayFromStart: true)
      let continuation = try #require(first.continuation)
      #expect(continuation.until == 1_001)
      for number in 1...30 { try await desk.write([RecordID("live \(number)")], "news") }
      try await desk.sync()
      alice.device.wire.clear()
      let second = try await alice.leg(continuation)
      #expect(second.isComplete)
      let scanned = alice.device.wire.requests.filter { $0.query("until") != nil }
      #expect(scanned.compactMap { $0.query("until") } == ["1001"])
      // What came after the end is an ordinary pull's.
      #expect(alice.app.texts.count == 1_031)
      #expect(try alice.profile.cursor()?.sequence == 1_031)
    }
  }
}
