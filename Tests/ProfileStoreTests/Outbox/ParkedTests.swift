import Foundation
import HubProtocol
import ProfileStore
import Testing

extension Outbox {
  @Suite("parked mutations")
  struct ParkedMutations {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      (ada, profile) = try await store.signedInProfile("ada", in: registry)
    }

    private func put(
      _ record: RecordID, _ payload: String = "p", base: Mutation.Base? = nil
    ) async throws -> UUID {
      try await profile.enqueue(.put(record, Data(payload.utf8), base: base), account: ada).mutation
    }

    @Test(
      "a put replacing: it removes it and every earlier one of that record, and keeps its own place"
    )
    func replaced() async throws {
      let first = try await put("a", base: .version(7))
      let other = try await put("b")
      let parked = try await put("a", base: .version(7))
      let later = try await put("a", base: .version(7))
      try await profile.park(parked)
      let before = try profile.area.outboxMark()
      let new = try await profile.enqueue(
        .put("a", Data("new".utf8), base: .version(9), replacing: parked), account: ada
      ).mutation
      // A push that runs has looked up what is gone now.
      #expect(try profile.area.outboxMark().decisions == before.decisions + 1)
      let entries = try profile.waiting()
      #expect(entries.map(\.mutation) == [other, later, new])
      // The chain is whole: the later one goes on what the removed ones went on.
      #expect(entries[1].base == .version(7))
      #expect(entries[2].base == .mutation(later))
      #expect(first != parked)
      #expect(try profile.sendable().count == 3)
    }

    @Test("a delete replacing a put of a record that the hub never had removes both")
    func deleteOfUnknown() async throws {
      let parked = try await put("a")
      try await profile.park(parked)
      let delete = Mutation.delete("a", mutation: UUID(), replacing: parked)
      #expect(try await profile.enqueue(delete, account: ada).outcome == .cancelledOut)
      #expect(try profile.waiting().isEmpty)
      #expect(try profile.record("a") == nil)
      #expect(try await profile.enqueue(delete, account: ada).outcome == .alreadySettled)
    }

    /// Ways in which the hub may have the record after all.
    enum Known: CaseIterable {
      case pulled, acknowledged, namedByTheRefusal, perhapsSent, laterEdit
    }

    @Test(
      "a delete replacing a put is sent wherever the hub may have the record",
      arguments: Known.allCases, [ProfileRegistry.RecordKeeping.area, .app])
    func deleteOfKnown(_ known: Known, _ keeping: ProfileRegistry.RecordKeeping) async throws {
      let profile = Profile.handle(
        to: profile.area, of: try store.registry(keeping: keeping, at: store.path + "/other"))
      func put() async throws -> UUID {
        try await profile.enqueue(.put("a", Data("p".utf8)), account: ada).mutation
      }
      var reason = Parked(reason: .rejected)
      switch known {
      case .pulled: try await profile.pull("a", version: 4, "hub")
      case .acknowledged: try await profile.acknowledge(try await put(), version: 4)
      case .namedByTheRefusal:
        reason.current = HubVersion(
          version: 4, isDeleted: false, payload: Data(), isPayloadOmitted: false)
      case .perhapsSent:
        _ = try await put()
        try await profile.area.markFirstSent([1], highWater: 0)
      case .laterEdit: break
      }
      let parked = try await put()
      try await profile.park(parked, reason)
      if known == .laterEdit { _ = try await put() }
      let receipt = try await profile.enqueue(.delete("a", replacing: parked), account: ada)
      #expect(receipt.outcome == .stored)
      #expect(try profile.sendable().last?.kind == .delete)
    }

    @Test(
      "each decision changes what other processes look at; what settles and strikes off does not")
    func outboxMark() async throws {
      var mark = try profile.area.outboxMark()
      func isChanged() throws -> Bool {
        defer { mark = (try? profile.area.outboxMark()) ?? OutboxMark() }
        return try profile.area.outboxMark() != mark
      }
      let ids = try await [put("a"), put("b"), put("c"), put("d")]
      #expect(try isChanged())
      for id in ids { try await profile.park(id, Parked(reason: .conflict)) }
      #expect(try !isChanged())
      let retried = try await profile.retry(ids[0], account: ada)
      #expect(try isChanged())
      try await profile.discard(ids[1], account: ada)
      #expect(try isChanged())
      try await profile.resolve(ids[2], seen: nil, account: ada, .keepLocal)
      #expect(try isChanged())
      try await profile.enqueue(.put("d", Data(), replacing: ids[3]), account: ada)
      #expect(try isChanged())
      try await profile.acknowledge(retried, version: 1)
      try await profile.strikeOff(ids, account: ada)
      #expect(try !isChanged())
    }

    @Test(
      "only a parked mutation of the account's area is retried, discarded, resolved or replaced")
    func onlyParked() async throws {
      let waiting = try await put("a")
      let before = try profile.dump()
      for id in [waiting, UUID()] {
        let expected: StoreError.Code = id == waiting ? .notParked : .unknownMutation
        #expect(await code { try await profile.retry(id, account: ada) } == expected)
        #expect(await code { try await profile.discard(id, account: ada) } == expected)
        #expect(await code { try await profile.decide(id, account: ada, .keepLocal) } == expected)
        #expect(
          await code {
            try await profile.enqueue(.put("a", Data(), replacing: id), account: ada)
          } == expected)
      }
      let bob = try verified("bob")
      #expect(
        await code { try await profile.discard(waiting, account: bob) } == .ownedByAnotherAccount)
      #expect(try profile.dump() == before)
    }

    @Test("after a discard the device shows the hub's version: kept beside, and put in place")
    func discardShowsHub() async throws {
      try await profile.pull("a", version: 4, "hub 4")
      let edit = try await put("a", "mine", base: .version(4))
      #expect(try profile.text("a") == "mine")
      try await profile.pull("a", version: 5, "hub 5")
      #expect(try profile.text("a") == "mine")
      let current = HubVersion(
        version: 6, isDeleted: false, payload: Data("hub 6".utf8), isPayloadOmitted: false)
      try await profile.park(edit, Parked(reason: .conflict, current: current))
      #expect(try profile.text("a") == "mine")
      try await profile.discard(edit, account: ada)
      let record = try #require(try profile.record("a"))
      #expect(record.payload == Data("hub 6".utf8))
      #expect(record.version == 6)
      #expect(!record.isPending)
      #expect(try profile.waiting().isEmpty)
    }

    @Test("after a discard of a record that the hub has not, or has deleted, the device shows none")
    func discardShowsNothing() async throws {
      let new = try await put("new")
      try await profile.park(new)
      try await profile.discard(new, account: ada)
      #expect(try profile.record("new") == nil)
      try await profile.pull("gone", version: 4, "hub")
      let edit = try await put("gone", "mine")
      let current = HubVersion(version: 6, isDeleted: true, payload: nil, isPayloadOmitted: false)
      try await profile.park(edit, Parked(reason: .conflict, current: current))
      try await profile.discard(edit, account: ada)
      #expect(try profile.record("gone") == nil)
      #expect(try profile.dump()["bodies"] == [:])
    }

    @Test("after a discard of a delete the hub's version is there again")
    func discardOfDelete() async throws {
      try await profile.pull("a", version: 4, "hub")
      let id = try await profile.enqueue(.delete("a"), account: ada).mutation
      #expect(try profile.record("a") == nil)
      try await profile.park(id)
      try await profile.discard(id, account: ada)
      #expect(try profile.text("a") == "hub")
    }

    @Test("while others of the record wait, the newest of them is what is shown")
    func newestIsShown() async throws {
      try await profile.pull("a", version: 4, "hub")
      let first = try await put("a", "first")
      _ = try await put("a", "second")
      try await profile.park(first)
      try await profile.discard(first, account: ada)
      #expect(try profile.text("a") == "second")
      #expect(try profile.record("a")?.isPending == true)
    }

    @Test("an app with its own store: a discarded mutation goes only after the closure returned")
    func discardWithAppStore() async throws {
      let app = Profile.handle(
        to: profile.area, of: try store.registry(keeping: .app, at: store.path + "/other"))
      let first = try await app.enqueue(.put("a", Data(), base: .version(3)), account: ada).mutation
      try await app.enqueue(.put("a", Data(), base: .version(3)), account: ada)
      try await app.park(first, Parked(reason: .conflict))
      try await app.discard(first, account: ada)
      let waiting = try #require(try profile.waiting().first)
      #expect(waiting.parked?.reason == .discarding)
      #expect(try app.pendingSummary().count == 2)
      #expect(try app.area.discarding() == [waiting])
      #expect(try app.sendable().isEmpty)
      #expect(await code { try await app.retry(first, account: ada) } == .notParked)
      // The pass has handed the hub's version to the app, and its closure returned.
      let change = IncomingChange(
        record: "a", version: 8, payload: Data("hub".utf8), isDeleted: false)
      try await app.area.finishDiscard(
        of: waiting, change: change, epoch: Hub.epoch, lineage: [], position: 1,
        policy: app.registry.policy, requiring: {})
      #expect(try profile.waiting().map(\.base) == [.version(3)])
      #expect(try app.sendable().count == 1)
      #expect(try app.area.discarding().isEmpty)
    }

    @Test("a version whose payload the answer had no room for is fetched before the edit goes")
    func omittedPayload() async throws {
      let edit = try await put("a", "mine")
      let current = HubVersion(version: 6, isDeleted: false, payload: nil, isPayloadOmitted: true)
      try await profile.park(edit, Parked(reason: .conflict, current: current))
      try await profile.discard(edit, account: ada)
      #expect(try profile.waiting().first?.parked?.reason == .discarding)
      #expect(try profile.text("a") == "mine")
    }
  }

  @Suite("a full outbox")
  struct Full {
    let store: TemporaryStore
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      var limits = StoreLimits()
      limits.outboxCountMax = 3
      limits.outboxByteCountMax = 100
      (ada, profile) = try await store.signedInProfile(
        "ada", in: try store.registry(limits: limits))
    }

    @Test("by count or by bytes refuses the enqueue with the numbers, and loses nothing")
    func refuses() async throws {
      try await profile.enqueue(.put("a", Data(count: 60)), account: ada)
      let before = try profile.dump()
      #expect(
        await code { try await profile.enqueue(.put("b", Data(count: 41)), account: ada) }
          == .outboxFull)
      #expect(try profile.dump() == before)
      try await profile.enqueue([.put("b", Data(count: 40)), .delete("c")], account: ada)
      let full = try profile.dump()
      let error = try await #require(throws: StoreError.self) {
        try await profile.enqueue(.delete("d"), account: ada)
      }
      #expect(error.code == .outboxFull)
      #expect(error.pending?.count == 3)
      #expect(error.pending?.payloadByteCount == 100)
      #expect(try profile.dump() == full)
      // Once something was sent there is room again.
      try await profile.acknowledge(try #require(profile.waiting().first).mutation, version: 1)
      try await profile.enqueue(.delete("d"), account: ada)
    }

    @Test("never stops what was enqueued before: the same UUID again changes nothing")
    func sameAgain() async throws {
      let mutation = Mutation.put("a", Data(count: 100), mutation: UUID())
      try await profile.enqueue(mutation, account: ada)
      #expect(try await profile.enqueue(mutation, account: ada).outcome == .alreadyWaiting)
    }

    @Test("never stops retry, resolve, replace and adopt")
    func neverStops() async throws {
      let ids = try await profile.enqueue(
        ["a", "b", "c"].map { .put(RecordID($0), Data(count: 33)) }, account: ada
      ).map(\.mutation)
      for id in ids { try await profile.park(id, Parked(reason: .conflict)) }
      try await profile.retry(ids[0], account: ada)
      try await profile.resolve(ids[1], seen: nil, account: ada, .merged(Data(count: 1_000)))
      try await profile.enqueue(.put("c", Data(count: 1_000), replacing: ids[2]), account: ada)
      let guest = try await store.guest(in: profile.registry, puts: ["d", "e"])
      try await guest.bindAccount(ada, adoptingUnownedData: true)
      #expect(try profile.waiting().count == 5)
      #expect(try profile.pendingSummary().payloadByteCount > 2_000)
      store.signIn(ada)
      #expect(
        await code { try await profile.enqueue(.delete("x"), account: ada) } == .outboxFull)
    }
  }
}
