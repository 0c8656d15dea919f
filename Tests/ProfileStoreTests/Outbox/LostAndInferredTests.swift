import Foundation
import HubProtocol
import ProfileStore
import Testing

extension Outbox {
  /// Contract section 6: what a forced scan did not bring.
  @Suite("what the hub gave a mutation of this device, and no pull has brought")
  struct LostAndInferred {
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

    private func begin(_ kind: ScanState.Kind, in epoch: UUID, forkedAt fork: UInt64) async throws
      -> SessionAnswer
    {
      let lineage =
        epoch == Hub.epoch ? [] : [LineageEntry(epoch: Hub.epoch, forkedAt: fork)]
      let standing = SessionAnswer(
        nonce: UUID(), hub: Hub.first, epoch: epoch, lineage: lineage, account: ada.id,
        highWater: 200, minimumCursor: 0, idempotencyFloor: 0, empty: false, expiresAt: 0,
        limits: HubLimits())
      try await profile.area.begin(
        ScanState(id: UUID(), kind: kind, epoch: epoch, until: 200), standing: standing)
      return standing
    }

    private func commit(_ change: IncomingChange, _ standing: SessionAnswer) async throws {
      try await profile.area.commit(
        [change], epoch: standing.epoch, lineage: standing.lineage, progress: .none, position: nil,
        policy: profile.registry.policy, requiring: {})
    }

    private func notBrought() throws -> [RecordID: UInt64] {
      let found = try profile.area.notBrought(after: nil, areDeleted: false, limit: .max)
      return Dictionary(uniqueKeysWithValues: found.map { ($0.record, $0.metadata.version) })
    }

    @Test("is deleted where a whole scan does not bring it, as everything that is known as live")
    func inferred() async throws {
      try await profile.acknowledge(try await put("mine"), version: 105)
      let standing = try await begin(.expired, in: Hub.epoch, forkedAt: 0)
      #expect(try notBrought() == ["a": 105, "other": 100])
      try await commit(
        IncomingChange(
          record: "a", version: 105, payload: nil, isDeleted: true, isInferred: true), standing)
      #expect(try profile.record("a") == nil)
      #expect(try notBrought() == ["other": 100])
      #expect(try profile.area.violations() == [])
    }

    @Test("is lost with its epoch until the hub has the record again; then edits are based on that")
    func lost() async throws {
      try await profile.acknowledge(try await put("mine"), version: 105)
      _ = try await begin(.newEpoch, in: epoch, forkedAt: 100)
      let found = try profile.area.notBrought(after: nil, areDeleted: false, limit: .max)
      try await profile.area.noteLost(found.filter { $0.record == "a" })
      #expect(try profile.lostAtHub() == ["a"])
      #expect(try profile.text("a") == "mine")
      #expect(try notBrought() == ["other": 100])
      let edit = try await put("edit", base: .mustNotExist)
      try await profile.settle(edit, .acknowledged(version: 106), epoch: epoch, highWater: 106)
      #expect(try profile.lostAtHub() == [])
      _ = try await put("next", base: .version(106))
      #expect(try profile.waiting().map(\.base) == [.version(106)])
    }

    @Test("is not lost where it was deleted with that epoch, too: neither side has it")
    func deletedAndLost() async throws {
      try await profile.pull("a", version: 120, "hub")
      let delete = try await profile.enqueue(.delete("a"), account: ada).mutation
      try await profile.acknowledge(delete, version: 121)
      _ = try await begin(.newEpoch, in: epoch, forkedAt: 100)
      let found = try profile.area.notBrought(after: nil, areDeleted: false, limit: .max)
      #expect(try await profile.area.noteLost(found.filter { $0.record == "a" }) == 0)
      #expect(try profile.lostAtHub() == [])
      #expect(try profile.record("a") == nil)
      #expect(try notBrought() == ["other": 100])
    }

    @Test("an edit that was made while a new epoch is taken up stays when its scan begins again")
    func begunAgain() async throws {
      let standing = try await begin(.newEpoch, in: epoch, forkedAt: 100)
      try await commit(
        IncomingChange(record: "a", version: 150, payload: Data("now".utf8), isDeleted: false),
        standing)
      _ = try await put("mine", base: .version(150))
      _ = try await begin(.newEpoch, in: epoch, forkedAt: 100)
      #expect(try profile.waiting().map(\.base) == [.version(150)])
      #expect(try profile.parked().isEmpty)
      // A further epoch is another matter.
      _ = try await begin(.newEpoch, in: UUID(), forkedAt: 100)
      #expect(try profile.parked().map(\.base) == [.mustNotExist])
    }

    @Test("a base above the fork is a conflict, also where only an acknowledgement named it")
    func baseOfAcknowledged() async throws {
      try await profile.acknowledge(try await put("mine"), version: 120)
      try await profile.takeUp(epoch, forkedAt: 100, of: ada)
      _ = try await put("next", base: .version(120))
      #expect(try profile.parked().map(\.parked?.code) == ["epoch_changed"])
      #expect(try profile.parked().map(\.base) == [.mustNotExist])
    }

    @Test("a base that the hub gave in the new epoch is none, whatever was there before the fork")
    func baseInNewEpoch() async throws {
      try await profile.pull("a", version: 120, nil)
      try await profile.takeUp(epoch, forkedAt: 100, of: ada)
      let edit = try await put("mine", base: .mustNotExist)
      try await profile.settle(edit, .acknowledged(version: 130), epoch: epoch, highWater: 130)
      _ = try await put("next", base: .version(130))
      #expect(try profile.waiting().map(\.base) == [.version(130)])
      #expect(try profile.parked().isEmpty)
    }
  }
}
