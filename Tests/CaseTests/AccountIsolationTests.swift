import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("A: one account's data and another's never meet")
struct AccountIsolationTests {
  @Test("A3: unowned data is nobody's until it is claimed once, and then the claimer's alone")
  func claimedOnce() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let guest = try await device.registry.unownedProfile()
      for id in ids(1...3) { try await guest.enqueue(.put(id, Data("draft".utf8)), account: nil) }
      for name in ["alice", "bob"] {
        let person = try await device.signIn(name)
        #expect(try person.texts().isEmpty)
        try await person.sync()
        #expect(try await hub.records(of: name).isEmpty)
        await expect(.adoptionUndecided) {
          try await guest.enqueue(.put("r", Data()), account: nil)
        }
      }
      let alice = try await device.signIn("alice")
      _ = try await device.registry.adopt(guest.id, by: alice.account)
      #expect(try alice.texts().count == 3)
      try await alice.sync()
      let bob = try await device.signIn("bob")
      await expect(.alreadyAdopted) {
        _ = try await device.registry.adopt(guest.id, by: bob.account)
      }
      try await bob.sync()
      #expect(try bob.texts().isEmpty)
      #expect(try await hub.records(of: "alice").map(\.id) == ids(1...3))
      #expect(try await hub.records(of: "bob").isEmpty)
    }
  }

  @Test("A6: no byte of one account's records, IDs or cursors is in another's area")
  func canaries() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub, keeping: .app)
      for (name, other) in [("alice", "bob"), ("bob", "alice")] {
        let person = try await device.signIn(name)
        for number in 1...40 {
          try await person.write([RecordID("id-of-\(name)-\(number)")], "canary-of-\(name)")
        }
        try await person.pass()
        try await person.write(["one-of-\(name)-waits"], "canary-of-\(name)")
        try await person.replay()
        try await person.write(["another-of-\(name)-waits"], "canary-of-\(name)")
        let area = person.profile.area.directory
        for word in ["id-of-", "canary-of-"] {
          #expect(try files(under: area, with: word + name) > 0)
          #expect(try files(under: area, with: word + other) == 0)
        }
      }
      let index = device.directory.url.appending(path: "registry").path
      #expect(try files(under: index, with: "canary-of-") == 0)
    }
  }

  @Test(
    "A9: a page that names another account is not committed, and the cursor stays behind page 1",
    arguments: ["other-account-body", "other-account-header"])
  func anothersPage(_ fault: String) async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let alice = try await Self.withSixChanges(hub)
      let pages = Log<Void>()
      alice.device.wire.before { _, request throws(TransportError) in
        if request.call == .changes, pages.add(()) == 2 {
          request.headers.append(HeaderField(HubHeader.fault, fault))
        }
        return nil
      }
      await expect(.accountMismatch) { try await alice.pass() }
      #expect(alice.app.rows.keys.sorted() == ids(1...2))
      #expect(try alice.profile.cursor()?.sequence == 2)
      alice.device.wire.clear()
      try await alice.pass()
      #expect(alice.app.changes.map(\.record) == ids(1...6))
    }
  }

  @Test("A9: a token refreshed to another account's stops the pass behind page 1")
  func anothersRefresh() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let session = AppSession { session in session.replaceToken(try hub.token(for: "bob")) }
      let alice = try await Self.withSixChanges(hub, session)
      alice.device.wire.ask(for: "unauthorized-at-page=2", at: .changes)
      await expect(.accountMismatch) { try await alice.pass() }
      #expect(alice.app.rows.keys.sorted() == ids(1...2))
      #expect(try alice.profile.cursor()?.sequence == 2)
      #expect(try await hub.highWater(of: "bob") == 0)
    }
  }

  /// A device that has pulled once, before another one sent six records.
  private static func withSixChanges(
    _ hub: TestHub, _ session: AppSession = AppSession()
  ) async throws -> Person {
    let alice = try await Device(hub, keeping: .app, session: session).signIn()
    try await alice.pass()
    _ = try await Person.withRecords(hub, ids(1...6))
    alice.device.wire.clear()
    return alice
  }

  @Test("A10, A13: who else signs in gets an area at once, and the first one's stays byte for byte")
  func freshArea() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      // Bound, and never synchronized.
      let alice = try await device.signIn("alice")
      try await alice.write(ids(1...3), "hers")
      let row = try device.registry.index.row(alice.profile.id)
      let area = try contents(of: alice.profile.area.directory)
      let bob = try await device.signIn("bob")
      try await bob.send(["b"], "his")
      #expect(bob.profile.id != alice.profile.id)
      #expect(try bob.texts() == ["b": "his"])
      #expect(try contents(of: alice.profile.area.directory) == area)
      #expect(try device.registry.index.row(alice.profile.id) == row)
      #expect(row?.owner == alice.account.bytes)
      try device.switchTo(alice)
      try await alice.sync()
      #expect(try await hub.records(of: "alice").map(\.id) == ids(1...3))
    }
  }

  @Test("A11: a token, an address and a name that change leave the profile what it is")
  func rotating() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      try await alice.send(["a"], "first")
      for number in 1...5 {
        let now = Int(Date().timeIntervalSince1970)
        let claims =
          #"{"iss":"holdfast","aud":"holdfast","sub":"alice","iat":\#(now),"exp":\#(now + 60),"#
          + #""jti":"\#(number)","email":"a\#(number)@example.org","name":"Alice \#(number)"}"#
        let token = try sign(claims)
        let account = try await device.registry.verify(token: token, clientName: "tablet \(number)")
        #expect(account == alice.account)
        device.session.signIn(account, token: token)
        let profile = try await device.registry.profile(for: account)
        #expect(profile.id == alice.profile.id)
        try await profile.synchronize(account: account)
        #expect(try profile.records().map(\.id) == ["a"])
      }
      #expect(try await device.registry.profiles().count == 1)
    }
  }
}
