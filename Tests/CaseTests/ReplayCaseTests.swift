import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("F: scans from zero and replays")
struct ReplayCaseTests {
  @Test("F3: an expired cursor leads to one bounded scan within the pass, and then goes on live")
  func expired() async throws {
    try await TestHub.run(HubLimits(pullRecords: 10)) { hub in
      let alice = try await Device(hub, keeping: .app).signIn()
      try await alice.pass()
      let desk = try await Person.withRecords(hub, ids(1...30))
      try await alice.pass()
      try await desk.delete(["r0001"])
      try await desk.sync()
      alice.device.wire.clear()
      alice.device.wire.ask(for: "purged-tombstones", at: .changes)
      try await alice.pass()
      #expect(alice.app.texts == (try await hub.texts(of: "alice")))
      #expect(alice.app.rows.count == 29)
      #expect(alice.device.wire.calls.filter { $0 == .changes }.count <= 8)
      alice.device.wire.clear()
      try await desk.send(["live"], "news")
      try await alice.pass()
      #expect(alice.app.texts["live"] == "news")
      #expect(alice.device.wire.calls.filter { $0 == .changes }.count == 1)
    }
  }

  @Test("F4: a token that ends at page 7 is refreshed, and page 7 asked for again, not page 1")
  func refreshedAtPageSeven() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let refreshes = Log<Void>()
      let session = AppSession { session in
        refreshes.add(())
        session.replaceToken(try freshToken(for: "alice"))
      }
      let alice = try await Device(hub, keeping: .app, session: session).signIn()
      try await alice.pass()
      _ = try await Person.withRecords(hub, ids(1...20))
      alice.device.wire.clear()
      alice.device.wire.ask(for: "unauthorized-at-page=7", at: .changes)
      try await alice.pass()
      let after = alice.device.wire.requests.compactMap { $0.query("after").flatMap { Int($0) } }
      #expect(after == [0, 2, 4, 6, 8, 10, 12, 12, 14, 16, 18])
      #expect(refreshes.entries.count == 1)
      #expect(alice.app.changes.map(\.record) == ids(1...20))
    }
  }

  @Test("F4: a hub that calls the cursor expired again after a scan stops the pass, with no loop")
  func expiredForEver() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub, keeping: .app).signIn()
      try await alice.pass()
      _ = try await Person.withRecords(hub, ids(1...3))
      alice.device.wire.clear()
      alice.device.wire.before { _, request throws(TransportError) in
        guard request.call == .changes else { return nil }
        return HubResponse.made(410, hub: hub.id, account: "alice", code: .cursorExpired)
      }
      await expect(.cursorExpired) { try await alice.pass() }
      #expect(alice.device.wire.calls.count <= 8)
      alice.device.wire.clear()
      try await alice.pass()
      #expect(alice.app.rows.count == 3)
    }
  }

  @Test("F7: a version older than this device has applied never reaches the app")
  func olderVersion() async throws {
    try await TestHub.run { hub in
      let desk = try await Person.withRecords(hub, ["r"], "1")
      for number in 2...5 { try await desk.send(["r"], "\(number)") }
      let alice = try await Device(hub, keeping: .app).signIn()
      try await alice.pass()
      #expect(alice.app.rows["r"] == AppStore.Row(version: 5, text: "5"))
      alice.app.forgetBatches()
      alice.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .changes else { return }
        response.change(ChangesPage.self) { page in
          for index in page.records.indices { page.records[index].version = 3 }
        }
      }
      try await alice.pass(replayFromStart: true)
      #expect(alice.app.changes.isEmpty)
      #expect(alice.app.rows["r"] == AppStore.Row(version: 5, text: "5"))
      #expect(try alice.profile.cursor()?.sequence == 5)
    }
  }

  @Test("F8: starting over keeps what waits, also when there is no network, and shows the edits")
  func startingOver() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.send(ids(1...30), "hub's")
      try await alice.write(ids(1...20), "edited")
      let before = try alice.standing()
      alice.device.wire.before { _, _ throws(TransportError) in
        throw TransportError(code: .unreachable, description: "no network")
      }
      await expect(.hubUnreachable) {
        try await alice.profile.synchronize(account: alice.account, replayFromStart: true)
      }
      #expect(try alice.standing() == before)
      #expect(try alice.profile.pendingSummary().count == 20)
      // With a network, but a hub that takes nothing: the edits are still what is shown.
      alice.device.wire.clear()
      let deferred = Array(repeating: "deferred", count: 20).joined(separator: ",")
      alice.device.wire.ask(for: "verdicts=\(deferred)", at: .mutations)
      try await alice.profile.synchronize(account: alice.account, replayFromStart: true)
      #expect(try alice.profile.pendingSummary().count == 20)
      let texts = try alice.texts()
      #expect(ids(1...20).allSatisfy { texts[$0] == "edited" })
      #expect(ids(21...30).allSatisfy { texts[$0] == "hub's" })
      alice.device.wire.clear()
      try await alice.sync()
      #expect(try await hub.texts(of: "alice") == texts)
    }
  }
}
