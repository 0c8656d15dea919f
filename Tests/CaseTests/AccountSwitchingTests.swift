import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("A: two accounts take turns on one device")
struct AccountSwitchingTests {
  @Test("A1: what one account has waiting is not sent with another's, and goes in order later")
  func queuePerAccount() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      for id in ids(1...3) { try await alice.write([id], "hers") }
      let bob = try await device.signIn("bob")
      for id in ids(1...2, "b") { try await bob.write([id], "his") }
      try await bob.sync()
      #expect(try await hub.records(of: "bob").map(\.id) == ids(1...2, "b"))
      #expect(try await hub.records(of: "alice").isEmpty)
      try device.switchTo(alice)
      try await alice.sync()
      let hers = try await hub.records(of: "alice")
      #expect(hers.map(\.id) == ids(1...3))
      #expect(hers.map(\.version) == [1, 2, 3])
      #expect(try await hub.highWater(of: "bob") == 2)
    }
  }

  @Test("A2: nothing is read through the handle of somebody who signed out, nor by who came after")
  func signedOutReads() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      try await alice.send(["a"], "hers")
      try await alice.write(["b"], "waits")
      #expect(try alice.texts() == ["a": "hers", "b": "waits"])
      device.session.signOut()
      await expectNothingIsRead(of: alice.profile, .notSignedIn)
      let guest = try await device.registry.unownedProfile()
      #expect(try guest.records().isEmpty)
      let bob = try await device.signIn("bob")
      await expectNothingIsRead(of: alice.profile, .anotherAccountSignedIn)
      #expect(try bob.texts().isEmpty)
      #expect(try bob.profile.record("a") == nil)
      #expect(try bob.profile.outbox().isEmpty)
      #expect(bob.profile.id != alice.profile.id)
    }
  }

  private func expectNothingIsRead(of profile: Profile, _ code: StoreError.Code) async {
    await expect(code) { _ = try profile.record("a") }
    await expect(code) { _ = try profile.records() }
    await expect(code) { _ = try profile.outbox() }
    await expect(code) { _ = try profile.parked() }
    await expect(code) { _ = try profile.acknowledged() }
    await expect(code) { _ = try profile.acknowledgedButLost() }
    await expect(code) { _ = try profile.lostAtHub() }
    await expect(code) { try profile.read { _ in } }
  }

  @Test("A4: another's token in a session: a mismatch, nothing applied, the outbox as it was")
  func anothersToken() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      _ = try await device.signIn("bob")
      let alice = try await device.signIn("alice")
      try await alice.send(["a"], "first")
      try await alice.write(ids(1...3), "waits")
      let before = try alice.standing()
      device.session.replaceToken(try hub.token(for: "bob"))
      await expect(.accountMismatch) { try await alice.sync() }
      #expect(try alice.standing() == before)
      #expect(try await hub.highWater(of: "alice") == 1)
      #expect(try await hub.highWater(of: "bob") == 0)
    }
  }

  @Test("A5: enqueues that race with switches land in the named account's area, or throw")
  func racing() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let bob = try await device.signIn("bob")
      let alice = try await device.signIn("alice")
      let stored = Log<RecordID>()
      await withTaskGroup { group in
        for id in ids(1...500) {
          group.addTask { await store(RecordID("a\(id.text)"), of: alice, next: bob, stored) }
          group.addTask { await store(RecordID("b\(id.text)"), of: bob, next: alice, stored) }
          group.addTask {
            // An account that the area does not belong to is refused whoever is signed in.
            await expect(.ownedByAnotherAccount) {
              try await alice.profile.enqueue(.put(id, Data()), account: bob.account)
            }
          }
        }
      }
      #expect(stored.entries.count >= 100)
      for (person, prefix) in [(alice, "a"), (bob, "b")] {
        try device.switchTo(person)
        let waiting = try person.profile.outbox().map(\.record)
        #expect(waiting.allSatisfy { $0.text.hasPrefix(prefix) })
        #expect(waiting.sorted() == stored.entries.filter { $0.text.hasPrefix(prefix) }.sorted())
      }
    }
  }

  /// Enqueues for somebody; at each hundredth that was stored the other one signs in.
  private func store(
    _ id: RecordID, of person: Person, next other: Person, _ stored: Log<RecordID>
  ) async {
    do {
      try await person.profile.enqueue(.put(id, Data("racing".utf8)), account: person.account)
      if stored.add(id) % 100 == 0 { try person.device.switchTo(other) }
    } catch let error as StoreError {
      #expect(error.code == .anotherAccountSignedIn)
    } catch { Issue.record(error) }
  }

  @Test(
    "A7: what was enqueued for one account goes to it, whoever is selected when there is a network")
  func selectedLater() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      try await alice.sync()
      try await alice.write(ids(1...3), "hers")
      device.wire.before { _, _ throws(TransportError) in
        throw TransportError(code: .unreachable, description: "no network")
      }
      await expect(.hubUnreachable) { try await alice.sync() }
      device.wire.clear()
      let bob = try await device.signIn("bob")
      // What a scheduler does: each account's pass with that account's own session.
      let background = AppSession()
      background.signIn(alice.account, token: try hub.token(for: "alice"))
      for (person, session) in [(alice, background), (bob, device.session)] {
        try await person.profile.synchronize(account: person.account, session: session)
      }
      #expect(try await hub.records(of: "alice").map(\.id) == ids(1...3))
      #expect(try await hub.records(of: "bob").isEmpty)
      #expect(try await device.registry.currentProfile().id == bob.profile.id)
    }
  }
}
