import Foundation
import HubProtocol
import ProfileStore
import Synchronization
import Testing

@Suite("profilectl list")
struct ListTests {
  @Test("names every profile with its owner and its numbers, and changes nothing")
  func numbers() async throws {
    let store = try TestStore()
    let alice = try TestStore.account("alice@example.org")
    let profile = try await store.profile(of: alice)
    let parked = UUID()
    try await profile.enqueue(
      [
        .put("a", Data("12345".utf8)), .put("b", Data("123".utf8), mutation: parked),
        .delete("c"),
      ], account: alice)
    try await store.settle([(parked, .parked(Parked(reason: .conflict)))], of: profile)
    try await profile.area.notePass(
      PassOutcome(endedAt: TestStore.now, isComplete: false, message: "the hub is not there"))
    let copy = try store.copied()
    let before = try FileTree(copy.directory)

    let run = await copy.run(["list", "--json"])
    #expect(run.exitCode == 0)
    #expect(run.errors == "")
    let profiles = try run.profiles()
    #expect(profiles.count == 1)
    let own = try #require(profiles.first)
    #expect(own["profile"] as? String == "\(profile.id)")
    #expect(own["state"] as? String == "owned")
    #expect((own["owner"] as? [String: Any])?["hub"] as? String == TestStore.hub.wireText)
    #expect(own["records"] as? Int == 2)
    let pending = try #require(own["pending"] as? [String: Any])
    #expect(pending["count"] as? Int == 3)
    #expect(pending["parked"] as? Int == 1)
    #expect(pending["payloadBytes"] as? Int == 8)
    #expect(pending["oldest"] as? String == "2026-01-02T02:50:45Z")
    #expect((own["lastPass"] as? [String: Any])?["message"] as? String == "the hub is not there")
    #expect(try FileTree(copy.directory) == before)
  }

  @Test("shows an unowned, a set aside, a moved and an erased profile as such")
  func states() async throws {
    let store = try TestStore()
    let alice = try TestStore.account("alice@example.org")
    let own = try await store.profile(of: alice)

    let moved = try await guestProfile(of: store, "moved")
    _ = try await store.registry.adopt(moved.id, by: alice)

    let declined = try await guestProfile(of: store, "declined")
    _ = try await store.registry.setAsideUnowned(decidedBy: alice)
    let unowned = try await guestProfile(of: store, "unowned")

    let bob = try TestStore.account("bob@example.org")
    let erased = try await store.registry.profile(for: bob)
    // As another process would hold it: its files stay until that lets go.
    let path = store.directory.appending(path: store.path(of: erased.id) + "/holders.lock").path
    let holder = open(path, O_RDWR)
    try #require(holder >= 0 && flock(holder, LOCK_SH) == 0)
    defer { close(holder) }
    try await store.registry.erase(bob)

    let copy = try store.copied()
    let run = await copy.run(["list", "--json"])
    #expect(run.exitCode == 0)
    var states: [String: String] = [:]
    for profile in try run.profiles() {
      states[try #require(profile["profile"] as? String)] = profile["state"] as? String
    }
    #expect(
      states == [
        "\(own.id)": "owned", "\(moved.id)": "moved",
        "\(declined.id)": "setAside", "\(unowned.id)": "unowned", "\(erased.id)": "erased",
      ])

    // Who is erased is not named any more, and nothing of it is shown.
    let shown = await copy.run(["show", "\(erased.id)", "--json", "--reveal"])
    #expect(shown.exitCode == 0)
    #expect(try shown.json()["owner"] is NSNull)
    #expect(try shown.json()["contents"] is NSNull)
    let outbox = await copy.run(["outbox", "\(erased.id)"])
    #expect(outbox.exitCode == 1)
    #expect(outbox.output == "")
    #expect(
      outbox.errors == "profilectl: the profile \(erased.id) was erased: nothing of it is shown\n")

    let adopted = await copy.run(["show", "\(moved.id)", "--json"])
    let contents = try #require(try adopted.json()["contents"] as? [String: Any])
    let adopter = try #require(contents["adopter"] as? [String: Any])
    #expect(adopter["hub"] as? String == TestStore.hub.wireText)
  }

  @Test("shows a profile as frozen whose adoption was cut off")
  func frozen() async throws {
    let taken = Mutex<StoreCopy?>(nil)
    let store = try TestStore { step, directory in
      guard step == .adoptFrozen else { return }
      #expect(throws: Never.self) {
        let copy = try StoreCopy(of: directory)
        taken.withLock { $0 = copy }
      }
    }
    let alice = try TestStore.account("alice@example.org")
    _ = try await store.profile(of: alice)
    let guest = try await guestProfile(of: store, "guest")
    _ = try await store.registry.adopt(guest.id, by: alice)

    let copy = try #require(taken.withLock { $0 })
    let run = await copy.run(["show", "\(guest.id)", "--json"])
    #expect(run.exitCode == 0)
    #expect(try run.json()["state"] as? String == "frozen")
    let contents = try #require(try run.json()["contents"] as? [String: Any])
    let adopter = try #require(contents["adopter"] as? [String: Any])
    #expect(adopter["hub"] as? String == TestStore.hub.wireText)
    let registry = try #require(try run.json()["registry"] as? [String: Any])
    #expect(registry["state"] as? String == "unowned")
    #expect(registry["intent"] as? String == "adopt")
    let outbox = await copy.run(["outbox", "\(guest.id)"])
    #expect(
      outbox.output.hasSuffix(
        "The profile is being adopted: nothing is sent from here.\n"))
  }

  /// A signed-out profile with one change in it; nobody is signed in afterwards.
  private func guestProfile(of store: TestStore, _ record: String) async throws -> Profile {
    store.session.signOut()
    let profile = try await store.registry.unownedProfile()
    try await profile.enqueue(.put(RecordID(record), Data("{}".utf8)), account: nil)
    return profile
  }

  @Test("of a store without profiles says so")
  func empty() async throws {
    let copy = try TestStore().copied()
    let text = await copy.run(["list"])
    #expect(text.exitCode == 0)
    #expect(text.output == "There are no profiles.\n")
    let json = await copy.run(["list", "--json"])
    #expect(json.exitCode == 0)
    #expect(try json.profiles().isEmpty)
  }
}
