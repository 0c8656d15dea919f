import Foundation
import HubProtocol
import ProfileStore
import Testing

extension Outbox {
  @Suite("what is settled")
  struct SettlingTests {
    /// What is left of a batch, without what is another one in each store.
    private struct Left: Equatable {
      struct Kept: Equatable {
        var version: UInt64
        var order: UInt64
        var record: RecordID
        var payload: Data?
        var base: Mutation.Base?
      }

      var kept: [Kept]
      var records: [RecordID: Data]
      var versions: [UInt64?]
      var pending: PendingSummary
      var rowCounts: [String: Int]
    }

    /// A store with mutations of every kind, all of them remembered as sent.
    private static func settled(
      keeping: ProfileRegistry.RecordKeeping, _ order: ([OutboxEntry]) -> [OutboxEntry]
    ) async throws -> Left {
      let store = try TemporaryStore()
      let (ada, profile) = try await store.signedInProfile(
        "ada", in: try store.registry(keeping: keeping))
      try await profile.pull("c", version: 7, "hub's")
      try await profile.pull("gone", version: 8, "hub's")
      var mutations: [Mutation] = [
        .put("a", Data("a".utf8)), .delete("gone"), .put("c", Data("c".utf8), base: .version(7)),
        .put("empty", Data()), .put("long", Data(repeating: 7, count: 20_000)),
        .delete("unknown"), .put("twice", Data("1".utf8), base: .mustNotExist),
        .put("named", Data("n".utf8)), .put("twice", Data("2".utf8), base: .mustNotExist),
      ]
      mutations[7].id = UUID()
      mutations[7].isCallerGiven = true
      try await profile.enqueue(mutations, account: ada)
      let entries = try profile.sendable()
      #expect(entries.count == mutations.count)
      try await profile.area.markFirstSent(entries.map(\.order), highWater: 8)
      try await profile.area.settle(
        order(entries).map { ($0.order, $0.mutation, .acknowledged(version: 8 + $0.order)) },
        epoch: Hub.epoch, highWater: 17, policy: profile.registry.policy)
      #expect(try profile.area.violations() == [])
      let kept = try profile.acknowledged().map { one in
        Left.Kept(
          version: one.version, order: one.entry.order, record: one.entry.record,
          payload: one.entry.payload, base: one.entry.base)
      }
      let records = keeping == .area ? try profile.records() : []
      return Left(
        kept: kept.sorted { $0.order < $1.order },
        records: Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0.payload) }),
        versions: records.map(\.version),
        pending: try profile.pendingSummary(),
        rowCounts: try profile.dump().mapValues(\.count))
    }

    @Test(
      "leaves the same whether it was settled where it lay or as a value",
      arguments: [ProfileRegistry.RecordKeeping.area, .app])
    func same(_ keeping: ProfileRegistry.RecordKeeping) async throws {
      let inPlace = try await Self.settled(keeping: keeping) { $0 }
      // In another order than that of the places each is looked up by itself, as a value. The two of
      // one record stay in their order.
      let asValues = try await Self.settled(keeping: keeping) { entries in
        entries.filter { $0.record != "twice" }.reversed()
          + entries.filter { $0.record == "twice" }
      }
      #expect(inPlace == asValues)
      #expect(inPlace.kept.count == 9 && inPlace.pending.isEmpty)
      // The second of a record is kept as based on what the first one became.
      #expect(inPlace.kept.last?.base == .version(15))
    }
  }
}
