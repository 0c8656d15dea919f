import Foundation
import HubProtocol
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("signing out")
  struct SigningOut {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let adas: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      (ada, adas) = try await store.signedInProfile("ada", in: registry)
    }

    @Test("tells what is pending, parked and never sent; offline, and without a session")
    func tells() async throws {
      #expect(try await registry.signOutSummary(of: ada).isSafe)
      let mutations = ["a", "b", "c"].map { Mutation.put(RecordID($0), Data([1, 2])) }
      try await adas.enqueue(mutations, account: ada)
      try await adas.area.markFirstSent([1, 2], highWater: 3)
      try await adas.park(mutations[0].id)
      store.session.signOut()
      let before = try adas.dump()
      let summary = try await registry.signOutSummary(of: ada.remembered)
      #expect(try adas.dump() == before)
      #expect(summary.pending.count == 3)
      #expect(summary.pending.parked == 1)
      #expect(summary.pending.payloadByteCount == 6)
      #expect(summary.pending.oldest == store.clock.now)
      #expect(summary.neverSent == 1)
      #expect(!summary.isSafe)
      store.signIn(ada)
      for (number, mutation) in mutations.enumerated() {
        try await adas.acknowledge(mutation.id, version: UInt64(number + 1))
      }
      #expect(try await registry.signOutSummary(of: ada).isSafe)
    }

    @Test("counts what another process has enqueued since, and copied from another account")
    func otherProcess() async throws {
      await #expect(processExitsWith: .success) { [path = store.path as String] in
        let (ada, bob) = (try verified("ada"), try verified("bob"))
        let (adasSession, bobsSession) = (AppSession(), AppSession())
        adasSession.signIn(ada, token: "token")
        bobsSession.signIn(bob, token: "token")
        let registry = try ProfileRegistry(
          directory: URL(fileURLWithPath: path), session: adasSession)
        let adas = try await registry.profile(for: ada)
        let bobs = try await registry.profile(for: bob, session: bobsSession)
        try await adas.enqueue(.put("theirs", Data()), account: ada)
        try await bobs.enqueue(.put("bobs", Data()), account: bob)
        _ = try await adas.copyRecords(from: bobs, sourceAccount: bob, account: ada)
      }
      #expect(try await registry.signOutSummary(of: ada).pending.count == 2)
      #expect(try await registry.signOutSummary(of: verified("bob")).neverSent == 1)
      #expect(try adas.copyReceipts().map(\.sourceAccount) == [try verified("bob")])
    }

    @Test("of an account that the store does not know says so")
    func unknown() async throws {
      #expect(
        await code { _ = try await registry.signOutSummary(of: verified("bob")) }
          == .unknownAccount)
      try await registry.erase(ada)
      #expect(await code { _ = try await registry.signOutSummary(of: ada) } == .unknownAccount)
    }

    @Test("keeps what waits, through a restart, until the same account comes again")
    func keeps() async throws {
      try await adas.enqueue(.put("a", Data()), account: ada)
      store.session.signOut()
      let restarted = try store.registry()
      #expect(try await restarted.signOutSummary(of: ada).pending.count == 1)
      store.signIn(ada)
      #expect(try await restarted.profile(for: ada.remembered).sendable().map(\.record) == ["a"])
    }
  }
}
