import Foundation
import HubProtocol
import ProfileStore
import Testing

extension Outbox {
  /// Contract section 1: versions compare only within one epoch.
  @Suite("versions of an epoch that was left")
  struct VersionsOfALeftEpoch {
    let store: TemporaryStore
    let ada: VerifiedAccount
    let profile: Profile
    let epoch = UUID()

    init() async throws {
      store = try TemporaryStore()
      (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
      try await profile.pull("other", version: 100, "other")
    }

    private func put(_ payload: String, base: Mutation.Base? = nil) async throws -> UUID {
      try await profile.enqueue(.put("a", Data(payload.utf8), base: base), account: ada).mutation
    }

    private func pullInNewEpoch(version: UInt64, _ payload: String) async throws {
      let change = IncomingChange(
        record: "a", version: version, payload: Data(payload.utf8), isDeleted: false)
      try await profile.area.commit(
        [change], epoch: epoch, lineage: try profile.area.facts().lineage, progress: .none,
        position: nil, policy: profile.registry.policy, requiring: {})
    }

    private func conflict(version: UInt64) async throws -> UUID {
      let mutation = try await put("mine", base: .mustNotExist)
      let current = HubVersion(
        version: version, isDeleted: false, payload: Data("left".utf8), isPayloadOmitted: false)
      try await profile.park(mutation, Parked(reason: .conflict, current: current))
      return mutation
    }

    @Test("never keep out what the new epoch's hub has, when the person keeps the hub's")
    func besideIsReplaced() async throws {
      let mutation = try await conflict(version: 120)
      try await profile.takeUp(epoch, forkedAt: 100, of: ada)
      try await pullInNewEpoch(version: 105, "now")
      try await profile.decide(mutation, account: ada, .keepHub)
      #expect(try profile.text("a") == "now")
      #expect(try profile.record("a")?.version == 105)
    }

    @Test("are no base for what the person decides: it is what the new epoch's hub has, or nothing")
    func decidedBase() async throws {
      var mutation = try await conflict(version: 120)
      try await profile.takeUp(epoch, forkedAt: 100, of: ada)
      #expect(
        await code {
          try await profile.resolve(mutation, seen: 120, account: ada, .keepLocal)
        } == .decidedOnAnotherVersion)
      try await profile.decide(mutation, account: ada, .keepLocal)
      #expect(try profile.waiting().map(\.base) == [.mustNotExist])
      mutation = try #require(try profile.waiting().first).mutation
      try await profile.settle(
        mutation, .parked(Parked(reason: .rejected)), epoch: epoch, highWater: 105)
      try await pullInNewEpoch(version: 105, "now")
      try await profile.decide(mutation, account: ada, .keepLocal)
      #expect(try profile.waiting().map(\.base) == [.version(105)])
    }

    @Test("are never sent as a base: not when the edit is retried, nor by the edit that follows")
    func bases() async throws {
      try await profile.pull("a", version: 101, "left")
      let first = try await put("first", base: .version(101))
      let second = try await put("second", base: .version(101))
      try await profile.takeUp(epoch, forkedAt: 100, of: ada)
      #expect(try profile.parked().map(\.mutation) == [first])
      try await profile.retry(first, account: ada)
      let retried = try #require(try profile.sendable().first)
      #expect(retried.base == .mustNotExist)
      try await profile.park(retried.mutation)
      try await profile.discard(retried.mutation, account: ada)
      #expect(try profile.sendable().map(\.mutation) == [second])
      #expect(try profile.sendable().map(\.base) == [.mustNotExist])
    }

    @Test("never outrank the acknowledgement of an edit in the new epoch")
    func acknowledged() async throws {
      try await profile.pull("a", version: 120, "left")
      let mutation = try await put("mine")
      try await profile.takeUp(epoch, forkedAt: 100, of: ada)
      try await profile.settle(
        mutation, .acknowledged(version: 106), epoch: epoch, highWater: 106)
      #expect(try profile.text("a") == "mine")
      #expect(try profile.record("a")?.version == 106)
    }

    @Test("stay where both histories have them")
    func common() async throws {
      let mutation = try await conflict(version: 99)
      try await profile.takeUp(epoch, forkedAt: 100, of: ada)
      #expect(try profile.parked().first?.parked?.current?.version == 99)
      try await profile.decide(mutation, account: ada, .keepHub)
      #expect(try profile.record("a")?.version == 99)
    }
  }
}
