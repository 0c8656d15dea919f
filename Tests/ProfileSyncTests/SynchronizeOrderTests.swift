import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract section 5.3: what a pass sends and asks, and in which order.
@Suite("Synchronize: the order of a pass")
struct SynchronizeOrderTests {
  @Test("the outbox is sent first, then pages are pulled from the cursor")
  func pushThenPull() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.profile.synchronize(account: person.account)
      let other = try await Person.withRecords(hub, ["theirs"])
      try await person.write(["mine"], "mine")
      person.device.wire.clear()
      let report = try await person.profile.synchronize(account: person.account)
      #expect(person.device.wire.calls == [.session, .mutations, .changes])
      #expect(report.sent == 1 && report.acknowledged == 1 && report.delivered == 2)
      #expect(try person.texts() == ["mine": "mine", "theirs": "first"])
      let cursor = try #require(try person.profile.cursor())
      #expect(person.device.wire.requests.last?.query("after") == "0")
      #expect(cursor.sequence == 2)
      _ = other
    }
  }

  @Test("an area that has never finished a scan pulls first and sends after")
  func pullFirst() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["theirs"])
      let person = try await Device(hub).signIn()
      try await person.write(["mine"], "mine")
      try await person.profile.synchronize(account: person.account)
      // The scan to its end, the pull from there, the push, and what it gave back.
      #expect(
        person.device.wire.calls == [.session, .changes, .changes, .mutations, .changes])
      #expect(person.device.wire.requests[1].query("until") == "1")
      #expect(person.device.wire.requests[2].query("until") == nil)
      #expect(try person.texts() == ["mine": "mine", "theirs": "first"])
    }
  }

  @Test("an area whose cursor is below the hub's minimumCursor pulls first and sends after")
  func belowMinimum() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      try await other.send(["b"], "theirs")
      try await other.delete(["a"])
      try await other.profile.synchronize(account: other.account)
      try await hub.server.purgeTombstones(of: person.account.id)
      try await person.write(["mine"], "mine")
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(
        person.device.wire.calls == [.session, .changes, .changes, .mutations, .changes])
      #expect(try person.texts() == ["mine": "mine", "b": "theirs"])
    }
  }

  @Test("mutations are sent in order, in batches of the hub's limit")
  func batches() async throws {
    try await TestHub.run(HubLimits(pushMutations: 3)) { hub in
      let person = try await Device(hub).signIn()
      try await person.profile.synchronize(account: person.account)
      try await person.write(ids(1...7), "first")
      person.device.wire.clear()
      let report = try await person.profile.synchronize(account: person.account)
      let pushes = try person.device.wire.requests.compactMap { try $0.push }
      #expect(pushes.map(\.mutations.count) == [3, 3, 1])
      #expect(pushes.flatMap(\.mutations).map(\.id) == ids(1...7))
      #expect(report.acknowledged == 7)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("what is enqueued while a pass runs waits for the next one")
  func enqueuedMeanwhile() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      person.device.wire.after { _, request, _ throws(TransportError) in
        guard request.call == .mutations else { return }
        do { try await person.write(["late"], "late") } catch {
          Issue.record("the enqueue failed: \(error)")
        }
      }
      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.sent == 1)
      #expect(try person.profile.pendingSummary().count == 1)
      person.device.wire.clear()
      #expect(try await person.profile.synchronize(account: person.account).sent == 1)
    }
  }

  @Test("pages have at most the hub's pullRecords, and each is committed by itself")
  func pages() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      try await person.pass()
      _ = try await Person.withRecords(hub, ids(1...5))
      let report = try await person.pass()
      #expect(report.pages == 3)
      #expect(person.app.batches.map(\.changes.count) == [2, 2, 1])
      #expect(try person.profile.cursor()?.sequence == 5)
    }
  }

  @Test("each request names the owner as read from the area, never the session's account")
  func assertion() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn("al ice/é")
      try await person.send(["a"], "first")
      let requests = person.device.wire.requests
      #expect(requests.count >= 4)
      for request in requests where request.call != .session {
        let values = request.headers.filter { $0.name == HubHeader.account }.map(\.value)
        #expect(values == [PercentEncoding.encode(bytes: person.account.id.bytes)])
      }
    }
  }

  @Test("a change that this device made itself is delivered like any other")
  func ownChanges() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      try await person.write(["a", "b"], "mine")
      try await person.pass()
      #expect(person.app.texts == ["a": "mine", "b": "mine"])
      #expect(person.app.changes.allSatisfy { $0.localEdit == .none })
    }
  }

  @Test("the client is registered once when the hub does not know it, and the push sent again")
  func clientUnknown() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      let refused = Log<Bool>()
      let account = person.account
      person.device.wire.clear()
      person.device.wire.before { _, request throws(TransportError) in
        guard request.call == .mutations, refused.add(true) == 1 else {
          return nil
        }
        return .made(404, hub: account.hub, account: "alice", code: .clientUnknown)
      }
      try await person.profile.synchronize(account: person.account)
      #expect(
        person.device.wire.calls == [.session, .mutations, .clients, .mutations, .changes])
      #expect(try person.profile.pendingSummary().isEmpty)
      // Unknown again after that: it stops.
      try await person.write(["c"], "third")
      person.device.wire.clear()
      person.device.wire.before { _, request throws(TransportError) in
        request.call == .mutations
          ? .made(404, hub: account.hub, account: "alice", code: .clientUnknown) : nil
      }
      let error = await expect(.refused) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(error?.hubCode == "client_unknown")
      #expect(person.device.wire.calls == [.session, .mutations, .clients, .mutations])
      #expect(try person.profile.pendingSummary().count == 1)
    }
  }

  @Test("a client that was never registered is, before anything is sent")
  func unregistered() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let first = try await device.signIn()
      try await device.registry.erase(first.account)
      // The ticket of the verification is used up: the new area has a client that nobody knows.
      device.session.signOut()
      let profile = try await device.registry.profile(for: first.account)
      device.session.signIn(first.account, token: try hub.token(for: "alice"))
      try await profile.enqueue(.put("a", Data()), account: first.account)
      try await profile.synchronize(account: first.account)
      #expect(device.wire.calls.prefix(2) == [.session, .clients])
      device.wire.clear()
      try await profile.synchronize(account: first.account)
      #expect(device.wire.calls == [.session, .changes])
    }
  }
}
