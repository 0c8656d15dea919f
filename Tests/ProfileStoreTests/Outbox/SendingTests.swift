import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension Outbox {
  @Suite("what is sent, and in which order")
  struct Sending {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      (ada, profile) = try await store.signedInProfile("ada", in: registry)
    }

    @discardableResult
    private func put(_ records: String...) async throws -> [UUID] {
      let mutations = records.map { Mutation.put(RecordID($0), Data($0.utf8)) }
      return try await profile.enqueue(mutations, account: ada).map(\.mutation)
    }

    @Test("each mutation is stamped with the account it was enqueued under")
    func stamped() async throws {
      try await put("r")
      #expect(try profile.waiting().map(\.stamp) == [ada.bytes])
      let guest = try await store.guest(in: registry, puts: ["g"])
      #expect(try guest.waiting().map(\.stamp) == [nil])
    }

    @Test("binding stores (account, last unowned order), the stamp of everything up to it")
    func stampOfBinding() async throws {
      let guest = try await store.guest(in: registry, puts: ["a", "b"])
      let bob = try verified("bob")
      try await guest.bindAccount(bob, adoptingUnownedData: true)
      store.signIn(bob)
      try await guest.enqueue(.put("c", Data()), account: bob)
      #expect(try guest.waiting().map(\.stamp) == [nil, nil, bob.bytes])
      #expect(try guest.sendable().map(\.record) == ["a", "b", "c"])
    }

    @Test("the send path refuses a mutation whose stamp is not the owner, and sends nothing")
    func foreignStamp() async throws {
      try await put("a")
      let policy = registry.policy
      let bob = try verified("bob")
      for stamp in [bob.bytes, nil] {
        let planted = try profile.area.writeBlocking { transaction in
          try profile.area.insert(
            [.put("planted", Data())], stamp: stamp, policy: policy, &transaction
          )[0].mutation
        }
        #expect(await code { _ = try profile.sendable() } == .ownedByAnotherAccount)
        try await profile.acknowledge(planted, version: 1)
        #expect(try profile.sendable().count == 1)
      }
    }

    @Test("an unowned area sends nothing")
    func unownedSendsNothing() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      #expect(await code { _ = try guest.sendable() } == .notBound)
    }

    @Test("mutations are sent in order, a batch after the other")
    func inOrder() async throws {
      try await put("c", "a", "b", "a", "d")
      #expect(try profile.sendable().map(\.record) == ["c", "a", "b", "a", "d"])
      var sent: [RecordID] = []
      var last: UInt64 = 0
      while let batch = try profile.batch(after: last, countMax: 2), !batch.isEmpty {
        #expect(batch.count <= 2)
        sent += batch.map(\.record)
        last = batch.map(\.order).max() ?? last
      }
      #expect(sent == ["c", "a", "b", "a", "d"])
    }

    @Test("a batch ends at its byte limit; a single larger mutation comes alone")
    func byteLimit() async throws {
      let big = Mutation.put("big", Data(count: 10_000))
      try await profile.enqueue(
        [.put("a", Data(count: 400)), big, .put("b", Data())], account: ada)
      #expect(try profile.sendable(byteCountMax: 2_000).map(\.record) == ["a"])
      #expect(
        try profile.batch(after: 1, countMax: 9, byteCountMax: 2_000)?.map(\.record) == ["big"])
      #expect(try profile.batch(after: 2, countMax: 9, byteCountMax: 2_000)?.map(\.record) == ["b"])
    }

    @Test("one that the hub refuses for good is parked with the reason, and kept in its place")
    func parkedInPlace() async throws {
      let ids = try await put("a", "b", "c")
      let current = HubVersion(
        version: 9, isDeleted: false, payload: Data("hub".utf8), isPayloadOmitted: false)
      let reason = Parked(reason: .rejected, code: "quota", current: current)
      try await profile.park(ids[1], reason)
      let entries = try profile.waiting()
      #expect(entries.map(\.mutation) == ids)
      #expect(entries.map(\.parked) == [nil, reason, nil])
      #expect(try profile.parked().map(\.mutation) == [ids[1]])
      #expect(try profile.pendingSummary().parked == 1)
    }

    @Test(
      "those behind a parked one go on, except later ones of the same record, which wait with it")
    func behindParked() async throws {
      let ids = try await put("a", "b", "a", "c", "a")
      try await profile.park(ids[0])
      #expect(try profile.sendable().map(\.mutation) == [ids[1], ids[3]])
      // Also where the batch begins behind the parked one.
      #expect(try profile.batch(after: 2, countMax: 9)?.map(\.mutation) == [ids[3]])
      try await profile.discard(ids[0], account: ada)
      #expect(try profile.sendable().map(\.mutation) == [ids[1], ids[2], ids[3], ids[4]])
    }

    @Test("earlier ones of the record are still sent when a later one is parked")
    func beforeParked() async throws {
      let ids = try await put("a", "a")
      try await profile.park(ids[1])
      #expect(try profile.sendable().map(\.mutation) == [ids[0]])
    }

    @Test(
      "parked counts as pending wherever a person is asked, and where a download could overwrite")
    func parkedIsPending() async throws {
      let ids = try await put("a")
      try await profile.park(ids[0])
      #expect(try profile.pendingSummary().count == 1)
      #expect(try !profile.pendingSummary().isEmpty)
      #expect(await code { try await registry.erase(ada) } == .pendingMutations)
      try await profile.pull("a", version: 4, "hub")
      #expect(try profile.text("a") == "a")
      #expect(try profile.record("a")?.isPending == true)
    }

    @Test("a lost answer is harmless: the same UUID is sent again, with its first high water")
    func sentAgain() async throws {
      let ids = try await put("a", "b")
      try await profile.area.markFirstSent([1, 2], highWater: 7)
      let first = try profile.sendable()
      #expect(first.map(\.firstSent) == [7, 7])
      try await profile.area.markFirstSent([1, 2], highWater: 9)
      #expect(try profile.sendable() == first)
      // The answer to the repetition settles it once; one that comes late changes nothing.
      try await profile.acknowledge(ids[0], version: 8)
      let before = try profile.dump()
      try await profile.acknowledge(ids[0], version: 8)
      try await profile.park(ids[0])
      #expect(try profile.dump() == before)
    }

    @Test("acknowledged mutations are kept by a configured count")
    func keptByCount() async throws {
      var limits = StoreLimits()
      limits.acknowledgedCountMax = 3
      let few = Profile.handle(to: profile.area, of: try store.registry(limits: limits))
      let ids = try await put("a", "b", "c", "d", "e")
      for (number, id) in ids.enumerated() {
        try await few.acknowledge(id, version: UInt64(number + 1))
      }
      let kept = try profile.acknowledged()
      #expect(kept.map(\.entry.mutation) == Array(ids[2...]))
      #expect(kept.map(\.version) == [3, 4, 5])
      #expect(kept.map(\.entry.payload) == ["c", "d", "e"].map { Data($0.utf8) })
    }

    @Test("acknowledged mutations are kept by a configured age")
    func keptByAge() async throws {
      var limits = StoreLimits()
      limits.acknowledgedAgeMax = 60
      let brief = Profile.handle(to: profile.area, of: try store.registry(limits: limits))
      let ids = try await put("a", "b", "c")
      for (number, id) in ids.enumerated() {
        try await brief.acknowledge(id, version: UInt64(number + 1))
        store.clock.advance(by: 40)
      }
      #expect(try profile.acknowledged().map(\.entry.mutation) == Array(ids[1...]))
    }

    @Test("a later batch reads nothing before it but earlier mutations of the records it takes")
    func laterBatch() async throws {
      store.expectDamage()
      let ids = try await put("x", "a", "b", "a", "c", "b")
      try await profile.park(ids[1])
      let table = try profile.area.environment.table(
        "outbox", key: UInt64Codec.self, value: BytesCodec.self)
      try await profile.area.environment.write { try $0.put([0], for: 1, in: table) }
      let batch = try #require(try profile.batch(after: 3, countMax: 500))
      #expect(batch.map(\.mutation) == [ids[4], ids[5]])
    }

    @Test("an acknowledgement reads of the later mutations only the next one of its record")
    func nextFollower() async throws {
      store.expectDamage()
      let ids = try await profile.enqueue(
        (1...4).map { .put("a", Data("\($0)".utf8), base: .mustNotExist) }, account: ada
      ).map(\.mutation)
      let table = try profile.area.environment.table(
        "outbox", key: UInt64Codec.self, value: BytesCodec.self)
      try await profile.area.environment.write { try $0.put([0], for: 3, in: table) }
      try await profile.acknowledge(ids[0], version: 7)
      let next = try #require(try profile.batch(after: 0, countMax: 1)?.first)
      #expect(next.mutation == ids[1] && next.base == .version(7))
    }
  }
}

extension Profile {
  /// A later batch of one pass.
  func batch(
    after order: UInt64, countMax: Int, byteCountMax: Int = 1 << 20
  ) throws -> [OutboxEntry]? {
    try area.read {
      try area.batch(after: order, countMax: countMax, byteCountMax: byteCountMax, $0)
    }
  }
}
