import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("A: which account an area belongs to")
struct AccountBoundaryTests {
  @Test("A12: names that look alike to a file system or a person have areas of their own")
  func lookalikes() async throws {
    try await TestHub.run { hub in
      let names = [
        "a/b", "a_b", "A_b", "a.b", "..", ".", "Alice", "alice", "alice ", "ga", "gafea", "a\\b",
        "caf\u{E9}", "cafe\u{301}", "a%2Fb", String(repeating: "x", count: 256),
      ]
      let device = try Device(hub)
      var areas: [AreaID] = []
      for (number, name) in names.enumerated() {
        let person = try await device.signIn(name)
        try await person.send(["mine"], "of \(number)")
        #expect(try person.texts() == ["mine": "of \(number)"])
        areas.append(person.profile.id)
      }
      #expect(Set(areas).count == names.count)
      for (number, name) in names.enumerated() {
        let person = try await device.signIn(name)
        #expect(person.profile.id == areas[number])
        #expect(try person.texts() == ["mine": "of \(number)"])
        #expect(try await hub.records(of: name).count == 1)
      }
      let places = try FileManager.default.subpathsOfDirectory(atPath: device.directory.url.path)
      #expect(!places.contains { $0.lowercased().contains("alice") })
    }
  }

  @Test("A12: a name of 0 or 10,000 bytes is no account", arguments: ["", "long"])
  func tooLong(_ kind: String) async throws {
    let name = kind.isEmpty ? "" : String(repeating: "x", count: 10_000)
    #expect(throws: IdentifierError.self) { try AccountID(name) }
    try await TestHub.run { hub in
      let device = try Device(hub)
      let now = Int(Date().timeIntervalSince1970)
      let claims =
        #"{"iss":"holdfast","aud":"holdfast","sub":"\#(name)","iat":\#(now),"exp":\#(now + 60)}"#
      let token = try sign(claims)
      await expect(.needsAuthentication) { _ = try await device.registry.verify(token: token) }
      #expect(try await device.registry.profiles().isEmpty)
    }
  }

  @Test(
    "A15: a pass for an account that is not the active one works in its area, and switches nothing")
  func backgroundPass() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      try await alice.sync()
      _ = try await Person.withRecords(hub, ["a"], "news")
      let bob = try await device.signIn("bob")
      let state = device.session.state
      let background = AppSession()
      background.signIn(alice.account, token: try hub.token(for: "alice"))
      let profile = try await device.registry.profile(for: alice.account, session: background)
      try await profile.synchronize(account: alice.account)
      #expect(try profile.records().map(\.id) == ["a"])
      #expect(device.session.state == state)
      #expect(try await device.registry.currentProfile().id == bob.profile.id)
      #expect(try bob.texts().isEmpty)
      // The handle that goes by the device's own session still shows nothing of hers.
      await expect(.anotherAccountSignedIn) { _ = try alice.profile.records() }
    }
  }

  @Test("A17: a page that comes after the switch is committed nowhere", arguments: [true, false])
  func latePage(isManaged: Bool) async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let device = try Device(hub, keeping: isManaged ? .area : .app)
      let bob = try await device.signIn("bob")
      let alice = try await device.signIn("alice")
      func pass() async throws {
        if isManaged { try await alice.sync() } else { try await alice.pass() }
      }
      try await pass()
      _ = try await Person.withRecords(hub, ids(1...6))
      let pages = Log<Void>()
      device.wire.after { _, request, _ throws(TransportError) in
        guard request.call == .changes, pages.add(()) == 2 else { return }
        device.session.signIn(bob.account, token: "of bob")
      }
      await expect(.sessionChanged) { try await pass() }
      #expect(try alice.profile.cursor()?.sequence == 2)
      #expect(alice.app.rows.count == (isManaged ? 0 : 2))
      #expect(try bob.texts().isEmpty)
      #expect(try bob.profile.cursor() == nil)
      device.wire.clear()
      try device.switchTo(alice)
      try await pass()
      #expect(try alice.profile.cursor()?.sequence == 6)
      #expect(try await hub.highWater(of: "bob") == 0)
    }
  }

  @Test("A19: a data file in another account's place is refused by the identity and owner in it")
  func anothersFile() async throws {
    try await TestHub.run { hub in
      let directory = try TemporaryDirectory()
      let areas = try await makeAreas(of: ["alice", "bob"], at: directory.url, hub)
      let (hers, his) = (areas[0].path + "/data.mdb", areas[1].path + "/data.mdb")
      try FileManager.default.removeItem(atPath: his)
      try FileManager.default.copyItem(atPath: hers, toPath: his)
      let device = try Device(hub, in: directory)
      let token = try hub.token(for: "bob")
      let bob = try await device.registry.verify(token: token)
      device.session.signIn(bob, token: token)
      await expect(.damaged) { _ = try await device.registry.profile(for: bob) }
      let alice = try await device.signIn("alice")
      #expect(try alice.texts() == ["mine": "of alice"])
      // A registry that gives her area to another is believed just as little.
      try device.registry.index.write { writing in
        writing.set(
          alice.profile.id, AreaRow(state: .owned, owner: bob.bytes, createdAt: Date()))
      }
      device.session.signIn(bob, token: token)
      await expect(.registryDisagrees) { _ = try await device.registry.profile(for: bob) }
      #expect(try alice.profile.owner == alice.account)
    }
  }
}
