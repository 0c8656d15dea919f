import Foundation
import HubProtocol
import ProfileStore
import Testing

extension Profile {
  /// Takes up a new epoch as a replay does, which brings nothing.
  func takeUp(
    _ epoch: UUID, forkedAt fork: UInt64, of account: VerifiedAccount
  ) async throws {
    let scan = ScanState(id: UUID(), kind: .newEpoch, epoch: epoch, until: fork)
    try await area.begin(
      scan,
      standing: SessionAnswer(
        nonce: UUID(), hub: Hub.first, epoch: epoch,
        lineage: [LineageEntry(epoch: Hub.epoch, forkedAt: fork)],
        account: account.id, highWater: fork, minimumCursor: 0, idempotencyFloor: 0, empty: false,
        expiresAt: 0, limits: HubLimits()))
    try await area.finishLegs(scan)
    try await area.finishScan(scan)
  }
}

extension Outbox {
  @Suite("sending again what the hub acknowledged and then lost")
  struct SendingAgain {
    let store: TemporaryStore
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
      try await profile.pull("other", version: 100, "other")
    }

    private func put(_ payload: String, base: Mutation.Base? = nil) async throws -> UUID {
      try await profile.enqueue(.put("a", Data(payload.utf8), base: base), account: ada).mutation
    }

    private func acknowledged(
      _ payload: String, base: Mutation.Base? = nil, version: UInt64
    ) async throws -> UUID {
      let mutation = try await put(payload, base: base)
      try await profile.acknowledge(mutation, version: version)
      return mutation
    }

    @Test("an older edit never wins over a newer one that waits: it is parked, and not shown")
    func newerWaits() async throws {
      let old = try await acknowledged("old", version: 101)
      let older = try await acknowledged("older", base: .version(101), version: 102)
      let new = try await put("new")
      try await profile.takeUp(UUID(), forkedAt: 100, of: ada)
      try await profile.sendAgain(acknowledged: [old, older], account: ada)
      #expect(try profile.sendable().map(\.mutation) == [new])
      #expect(try profile.parked().map(\.mutation) == [old, older])
      #expect(try profile.parked().allSatisfy { $0.parked?.reason == .conflict })
      #expect(try profile.text("a") == "new")
    }

    @Test("they go in the order of their acknowledgement, whatever the order of asking")
    func order() async throws {
      let first = try await acknowledged("first", version: 101)
      let second = try await acknowledged("second", base: .version(101), version: 102)
      try await profile.takeUp(UUID(), forkedAt: 100, of: ada)
      try await profile.sendAgain(acknowledged: [second, first, second], account: ada)
      let sent = try profile.sendable()
      #expect(sent.map(\.mutation) == [first, second])
      #expect(sent.map(\.base) == [nil, .mutation(first)])
      #expect(try profile.text("a") == "second")
    }

    @Test("a version of the lost history is never sent as a base: the edit is a conflict")
    func lostBase() async throws {
      _ = try await acknowledged("first", version: 101)
      let second = try await acknowledged("second", base: .version(101), version: 102)
      try await profile.takeUp(UUID(), forkedAt: 100, of: ada)
      try await profile.sendAgain(acknowledged: [second], account: ada)
      #expect(try profile.sendable().isEmpty)
      let parked = try #require(try profile.parked().first)
      #expect(parked.parked?.reason == .conflict && parked.parked?.code == "epoch_changed")
      #expect(parked.base == .mustNotExist)
    }

    @Test("a version that both histories have stays the base")
    func commonBase() async throws {
      let edit = try await acknowledged("edit", base: .version(99), version: 101)
      try await profile.takeUp(UUID(), forkedAt: 100, of: ada)
      try await profile.sendAgain(acknowledged: [edit], account: ada)
      #expect(try profile.sendable().map(\.base) == [.version(99)])
    }

    @Test("one that is not kept any more: none is sent")
    func unknown() async throws {
      let edit = try await acknowledged("edit", version: 101)
      #expect(
        await code { try await profile.sendAgain(acknowledged: [edit, UUID()], account: ada) }
          == .unknownMutation)
      #expect(try profile.waiting().isEmpty)
    }
  }
}
