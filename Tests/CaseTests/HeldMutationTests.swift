import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("C: one mutation on which the whole hub fails")
struct HeldMutationTests {
  @Test("C6: 500 whenever it is in a push: found by halving, held, and the others go on")
  func poison() async throws {
    try await TestHub.run { hub in
      let time = TestTime()
      let alice = try await Device(hub, now: { time.now }).signIn()
      try await alice.sync()
      try await alice.write(ids(1...64), "new")
      let poison = ids(37...37)[0]
      alice.device.wire.clear()
      alice.device.wire.before { _, request throws(TransportError) in
        guard request.call == .mutations, Self.holds(poison, request) else { return nil }
        return HubResponse.made(500, hub: hub.id, account: "alice", code: .internal)
      }
      for _ in 1...2 { await expect(.hubUnavailable) { try await alice.sync() } }
      #expect(try alice.profile.outbox().count == 64)
      let before = try alice.pushes().count
      // The third pass looks for it.
      let report = try await alice.sync()
      #expect(report.acknowledged == 63)
      #expect(report.held == 1)
      // Halving 64 takes 6 steps, each with a push that fails and some that go.
      #expect(try alice.pushes().count - before <= 6 * 3)
      #expect(try await hub.records(of: "alice").count == 63)
      let waiting = try alice.profile.outbox()
      #expect(waiting.map(\.record) == [poison])
      #expect(waiting[0].held != nil)
      #expect(waiting[0].parked == nil)
      #expect(try alice.profile.pendingSummary().count == 1)
      #expect(try alice.profile.record(poison)?.payload == Data("new".utf8))
      // It keeps nobody else from being sent.
      try await alice.send(["later"], "new")
      #expect(try await hub.texts(of: "alice")["later"] == "new")
      // Mended, it goes by itself once its time has come.
      alice.device.wire.clear()
      time.advance(by: 3_600)
      try await alice.sync()
      #expect(try await hub.texts(of: "alice")[poison] == "new")
      #expect(try alice.profile.outbox().isEmpty)
    }
  }

  private static func holds(_ record: RecordID, _ request: HubRequest) -> Bool {
    do { return try request.push?.mutations.contains { $0.id == record } ?? false } catch {
      Issue.record(error)
      return false
    }
  }
}
