import Foundation
import HubProtocol
import ProfileStore
import Testing

extension Outbox {
  @Suite("bases")
  struct Bases {
    let store: TemporaryStore
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    }

    private func put(
      _ record: RecordID, base: Mutation.Base? = nil, replacing: UUID? = nil
    ) async throws -> UUID {
      try await profile.enqueue(
        .put(record, Data("p".utf8), base: base, replacing: replacing), account: ada
      ).mutation
    }

    private func bases() throws -> [Mutation.Base?] { try profile.waiting().map(\.base) }

    @Test("a base is a version, must not exist, or the UUID of an earlier mutation of the record")
    func kinds() async throws {
      _ = try await put("a", base: .version(7))
      _ = try await put("b", base: .mustNotExist)
      let third = try await put("c")
      _ = try await put("c", base: .mutation(third))
      #expect(try bases() == [.version(7), .mustNotExist, nil, .mutation(third)])
    }

    @Test("an edit given a base while an earlier one of its record waits is based on that one")
    func basedOnEarlier() async throws {
      let first = try await put("a", base: .version(7))
      let second = try await put("a", base: .version(7))
      let third = try await put("a", base: .mutation(first))
      #expect(try bases() == [.version(7), .mutation(first), .mutation(second)])
      #expect(third != second)
    }

    @Test("one without a base stays without: the last writer wins")
    func withoutStaysWithout() async throws {
      _ = try await put("a", base: .version(7))
      _ = try await put("a")
      #expect(try bases() == [.version(7), nil])
    }

    @Test("a base that was acknowledged meanwhile means the version that it was given")
    func acknowledgedBase() async throws {
      let first = try await put("a")
      try await profile.acknowledge(first, version: 12)
      _ = try await put("a", base: .mutation(first))
      #expect(try bases() == [.version(12)])
      #expect(
        await code { _ = try await put("b", base: .mutation(first)) } == .badBase)
    }

    @Test("in the transaction that settles a mutation its followers get its version")
    func acknowledged() async throws {
      let first = try await put("a", base: .version(7))
      let second = try await put("a", base: .version(7))
      _ = try await put("a", base: .version(7))
      _ = try await put("a")
      try await profile.acknowledge(first, version: 12)
      #expect(try bases() == [.version(12), .mutation(second), nil])
    }

    @Test("retried: followers get the new UUID, and it goes before them from its own place")
    func retried() async throws {
      let first = try await put("a", base: .version(7))
      _ = try await put("a", base: .version(7))
      let other = try await put("b")
      try await profile.park(first, Parked(reason: .conflict))
      let before = try profile.waiting()
      let again = try await profile.retry(first, account: ada)
      let entries = try profile.waiting()
      #expect(again != first)
      #expect(entries.map(\.mutation) == [again, before[1].mutation, other])
      #expect(entries.map(\.order) == before.map(\.order))
      #expect(entries.map(\.base) == [.version(7), .mutation(again), nil])
      #expect(entries.map(\.parked) == [nil, nil, nil])
      #expect(entries[0].firstSent == nil)
      #expect(try profile.sendable().map(\.order) == before.map(\.order))
    }

    @Test(
      "retried on another base: on the edit before it, if one waits, and never on one that does not"
    )
    func retriedOnAnotherBase() async throws {
      let first = try await put("a")
      let second = try await put("a", base: .version(7))
      let third = try await put("a")
      try await profile.park(second, Parked(reason: .conflict))
      for wrong in [UUID(), third, second] {
        #expect(
          await code { try await profile.retry(second, account: ada, base: .mutation(wrong)) }
            == .badBase)
      }
      #expect(
        await code { try await profile.retry(second, account: ada, base: .version(0)) }
          == .badBase)
      let again = try await profile.retry(second, account: ada, base: .version(9))
      #expect(try bases() == [nil, .mutation(first), nil])
      try await profile.acknowledge(first, version: 12)
      try await profile.park(again, Parked(reason: .conflict))
      try await profile.retry(again, account: ada, base: .version(15))
      #expect(try bases() == [.version(15), nil])
    }

    @Test("discarded: followers get its own base, and go on")
    func discarded() async throws {
      let first = try await put("a", base: .version(7))
      _ = try await put("a", base: .version(7))
      try await profile.park(first)
      try await profile.discard(first, account: ada)
      #expect(try bases() == [.version(7)])
      #expect(try profile.sendable().count == 1)
    }

    @Test(
      "resolved: followers get the new UUID; the local edit goes on what the hub has now",
      arguments: [
        (HubVersion(version: 9, isDeleted: false, payload: Data(), isPayloadOmitted: false), 9),
        (HubVersion(version: 9, isDeleted: true, payload: nil, isPayloadOmitted: false), 0),
        (nil, 0),
      ] as [(HubVersion?, UInt64)])
    func resolvedLocal(_ current: HubVersion?, _ version: UInt64) async throws {
      let first = try await put("a", base: .version(7))
      _ = try await put("a", base: .version(7))
      try await profile.park(first, Parked(reason: .conflict, current: current))
      try await profile.decide(first, account: ada, .keepLocal)
      let entries = try profile.waiting()
      #expect(entries[0].mutation != first)
      #expect(entries[0].base == (version == 0 ? .mustNotExist : .version(version)))
      #expect(entries[1].base == .mutation(entries[0].mutation))
    }

    @Test("resolved by a merge: the payload goes in its place, on what the hub has now")
    func merged() async throws {
      let first = try await put("a", base: .version(7))
      let current = HubVersion(
        version: 9, isDeleted: false, payload: Data("hub".utf8), isPayloadOmitted: false)
      try await profile.park(first, Parked(reason: .conflict, current: current))
      try await profile.decide(first, account: ada, .merged(Data("merged".utf8)))
      let entry = try #require(try profile.waiting().first)
      #expect(entry.mutation != first)
      #expect(entry.payload == Data("merged".utf8))
      #expect(entry.base == .version(9))
      #expect(try profile.text("a") == "merged")
      #expect(try profile.pendingSummary().payloadByteCount == 6)
    }

    @Test("a merged payload above the limit is refused, and the mutation is parked as it was")
    func mergedTooLarge() async throws {
      let first = try await put("a")
      try await profile.park(first, Parked(reason: .conflict))
      let before = try profile.dump()
      let thrown = await code {
        try await profile.decide(
          first, account: ada, .merged(Data(count: StoreLimits.payloadByteCountDefault + 1)))
      }
      #expect(thrown == .payloadTooLarge)
      #expect(try profile.dump() == before)
    }

    @Test("a merge may make a parked delete a put")
    func mergedDelete() async throws {
      let id = try await profile.enqueue(.delete("a", base: .version(7)), account: ada).mutation
      try await profile.park(id, Parked(reason: .conflict))
      try await profile.decide(id, account: ada, .merged(Data("merged".utf8)))
      #expect(try profile.waiting().map(\.kind) == [.put])
      #expect(try profile.text("a") == "merged")
    }

    @Test("resolved for the hub: the edit goes, followers get its own base")
    func resolvedHub() async throws {
      let first = try await put("a", base: .version(7))
      _ = try await put("a", base: .version(7))
      try await profile.park(first, Parked(reason: .conflict))
      try await profile.decide(first, account: ada, .keepHub)
      #expect(try bases() == [.version(7)])
    }

    @Test("sent again after a refusal that was no conflict, it keeps its base")
    func rejectedKeepsBase() async throws {
      let first = try await put("a", base: .version(7))
      let second = try await put("b")
      try await profile.park(first)
      try await profile.park(second)
      try await profile.decide(first, account: ada, .keepLocal)
      try await profile.decide(second, account: ada, .keepLocal)
      #expect(try bases() == [.version(7), nil])
    }

    @Test(
      "a decision on a version that is no longer the hub's is refused, whatever it is",
      arguments: [Resolution.keepHub, .keepLocal, .merged(Data("both".utf8))])
    func decidedUnseen(_ resolution: Resolution) async throws {
      let first = try await put("a", base: .version(7))
      let current = HubVersion(
        version: 9, isDeleted: false, payload: Data("hub".utf8), isPayloadOmitted: false)
      try await profile.park(first, Parked(reason: .conflict, current: current))
      #expect(try profile.parked().first?.parked?.current == current)
      try await profile.pull("a", version: 15, "newer")
      let before = try profile.dump()
      for seen in [nil, 0, 9, 16] as [UInt64?] {
        #expect(
          await code {
            try await profile.resolve(first, seen: seen, account: ada, resolution)
          } == .decidedOnAnotherVersion)
      }
      #expect(try profile.dump() == before)
      // The person is shown what the hub has now, and decides on that.
      let shown = try #require(try profile.parked().first?.parked?.current)
      #expect(shown.version == 15 && shown.payload == Data("newer".utf8))
      #expect(try profile.outbox().first?.parked?.current == shown)
      try await profile.resolve(first, seen: 15, account: ada, resolution)
      #expect(try bases() == (resolution == .keepHub ? [] : [.version(15)]))
      #expect(try profile.text("a") == ["newer", "p", "both"][resolution.index])
    }

    @Test("a record that was deleted since is shown so, and is no base")
    func deletedSince() async throws {
      let first = try await put("a", base: .version(7))
      let current = HubVersion(
        version: 9, isDeleted: false, payload: Data("hub".utf8), isPayloadOmitted: false)
      try await profile.park(first, Parked(reason: .conflict, current: current))
      try await profile.pull("a", version: 15, nil)
      let shown = try #require(try profile.parked().first?.parked?.current)
      #expect(
        shown == HubVersion(version: 15, isDeleted: true, payload: nil, isPayloadOmitted: false))
      try await profile.resolve(first, seen: 15, account: ada, .keepLocal)
      #expect(try bases() == [.mustNotExist])
    }

    @Test("what an edit in sight of a version is based on: that one, or that there is none")
    func baseOfAVersion() {
      let expected: [(version: UInt64, isDeleted: Bool, base: Mutation.Base)] = [
        (9, false, .version(9)), (9, true, .mustNotExist), (0, false, .mustNotExist),
        (0, true, .mustNotExist),
      ]
      for (version, isDeleted, base) in expected {
        let current = HubVersion(
          version: version, isDeleted: isDeleted, payload: nil, isPayloadOmitted: false)
        #expect(current.base == base)
      }
    }
  }
}

extension Resolution {
  /// Its place among `keepHub`, `keepLocal` and `merged`.
  fileprivate var index: Int {
    switch self {
    case .keepHub: 0
    case .keepLocal: 1
    case .merged: 2
    }
  }
}
