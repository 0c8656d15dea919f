import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("K: from one person's account to another")
struct CopyingTests {
  @Test(
    "K4: a copy makes records of the other account, leaves the first as it is, and gives a receipt")
  func copying() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      try await alice.send(ids(1...3), "hers")
      try await alice.write(ids(4...4), "hers, waiting")
      let before = try contents(of: alice.profile.area.directory)
      let sent = try await hub.highWater(of: "alice")
      _ = try await Person.withRecords(hub, ids(1...1), "his own", name: "bob")
      let bob = try await device.signIn("bob")
      try await bob.sync()
      let hers = AppSession()
      hers.signIn(alice.account, token: try hub.token(for: "alice"))
      let source = try await device.registry.profile(for: alice.account, session: hers)
      let receipt = try await bob.profile.copyRecords(
        from: source, sourceAccount: alice.account, account: bob.account)
      #expect(receipt.records == 4)
      #expect(receipt.sourceAccount == alice.account)
      let kept = try bob.profile.copyReceipts()
      #expect(kept.map(\.id) == [receipt.id])
      #expect(kept.map(\.records) == [4])
      #expect(kept.map(\.sourceAccount) == [alice.account])
      #expect(try contents(of: alice.profile.area.directory) == before)
      // They are changes of his own, and overwrite nothing unseen.
      try await bob.sync()
      #expect(
        try await hub.texts(of: "bob") == [
          "r0001": "his own", "r0002": "hers", "r0003": "hers", "r0004": "hers, waiting",
        ])
      #expect(try bob.profile.parked().map(\.record) == ids(1...1))
      #expect(try bob.profile.parked().first?.parked?.reason == .conflict)
      #expect(try await hub.highWater(of: "alice") == sent)
      #expect(try source.outbox().map(\.record) == ids(4...4))
      #expect(try source.owner == alice.account)
    }
  }

  @Test("K4: who is not signed in to both copies nothing")
  func notSignedIn() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      try await alice.write(["a"], "hers")
      let bob = try await device.signIn("bob")
      await expect(.anotherAccountSignedIn) {
        _ = try await bob.profile.copyRecords(
          from: alice.profile, sourceAccount: alice.account, account: bob.account)
      }
      await expect(.ownedByAnotherAccount) {
        _ = try await bob.profile.copyRecords(
          from: alice.profile, sourceAccount: bob.account, account: bob.account)
      }
      #expect(try bob.profile.outbox().isEmpty)
      #expect(try bob.profile.copyReceipts().isEmpty)
    }
  }

  @Test("K4: an export is taken in as new changes of the account that imports it, or not at all")
  func exporting() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      try await alice.send(ids(1...3), "hers")
      let lines = Log<Data>()
      #expect(try alice.profile.exportRecords(account: alice.account) { lines.add($0) } == 3)
      let before = try contents(of: alice.profile.area.directory)
      let bob = try await device.signIn("bob")
      // Under a wrong name it is refused.
      await expect(.undecodable) {
        try await bob.profile.importRecords(
          from: Self.stream(lines.entries), sourceAccount: bob.account, account: bob.account)
      }
      #expect(try bob.profile.outbox().isEmpty)
      let receipt = try await bob.profile.importRecords(
        from: Self.stream(lines.entries), sourceAccount: alice.account, account: bob.account)
      #expect(receipt.records == 3)
      try await bob.sync()
      #expect(try await hub.records(of: "bob").map(\.id) == ids(1...3))
      #expect(try await hub.highWater(of: "alice") == 3)
      #expect(try contents(of: alice.profile.area.directory) == before)
      #expect(try bob.profile.copyReceipts().count == 1)
    }
  }

  private static func stream(_ chunks: [Data]) -> AsyncStream<Data> {
    AsyncStream { continuation in
      for chunk in chunks { continuation.yield(chunk) }
      continuation.finish()
    }
  }
}
