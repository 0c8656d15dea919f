import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension Outbox {
  @Suite("the log of payloads of an area that keeps the records")
  struct BodyLogs {
    let store: TemporaryStore
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    }

    /// Commits a page of changes, with rising versions.
    private func pull(
      _ records: [String], from version: UInt64, payload: (String) -> String?
    ) async throws {
      let changes = records.enumerated().map { index, record in
        let payload = payload(record)
        return IncomingChange(
          record: RecordID(record), version: version + UInt64(index),
          payload: payload.map { Data($0.utf8) }, isDeleted: payload == nil)
      }
      try await profile.area.commit(
        pages: [ChangePage(changes)], epoch: Hub.epoch, lineage: [],
        progress: .cursor(version + UInt64(records.count)), position: nil,
        policy: profile.registry.policy, requiring: {})
    }

    private func bodyCount() throws -> Int {
      let bodies = try profile.area.environment.table(
        "bodies", key: UInt64Codec.self, value: BytesCodec.self)
      return try profile.area.environment.read { try $0.count(of: bodies) }
    }

    @Test("a page in any order of IDs shows each record in its newest version")
    func newestOfEach() async throws {
      let names = (0..<300).map { "r\($0 * 7919 % 300)" }
      try await pull(names + names.prefix(50), from: 1) { "\($0) new" }
      let records = try profile.records()
      #expect(records.map(\.id) == Set(names).map { RecordID($0) }.sorted())
      #expect(records.allSatisfy { $0.payload == Data("\($0.id.text) new".utf8) })
      #expect(records.filter { ($0.version ?? 0) > 300 }.count == 50)
      #expect(try profile.area.violations() == [])
    }

    @Test("records that are updated again and again take a bounded number of payloads")
    func bounded() async throws {
      let names = (0..<400).map { "r\($0)" }
      var version: UInt64 = 1
      var most = 0
      for round in 0..<40 {
        let mixed = names.enumerated().filter { ($0.offset * 31 + round) % 3 != 0 }.map(\.element)
        try await pull(mixed.reversed(), from: version) { "\($0) \(round)" + text(count: 300) }
        version += UInt64(mixed.count)
        most = max(most, try bodyCount())
      }
      // In use, half as much again, the slack that is always allowed, and one page.
      let unitsEach = (12 + 4 + 306 + 33) / 16
      #expect(most <= 400 * 3 / 2 + 4_096 / unitsEach + 300)
      #expect(try profile.records().count == 400)
      #expect(try profile.area.violations() == [])
    }

    private func text(count: Int) -> String { String(repeating: "x", count: count) }

    @Test("a payload of pages of its own goes with the next version, a deleted one at once")
    func goesAtOnce() async throws {
      try await pull(["large", "small"], from: 1) { $0 == "large" ? text(count: 9_000) : "s" }
      try await pull(["large"], from: 3) { _ in text(count: 9_001) }
      #expect(try bodyCount() == 2)
      try await pull(["large", "small"], from: 4) { _ in nil }
      #expect(try bodyCount() == 0)
      #expect(try profile.records().isEmpty)
      #expect(try profile.area.violations() == [])
    }

    @Test("what comes again in the same version is not written again, unless it is another")
    func sameVersion() async throws {
      try await pull(["a", "b"], from: 1) { "\($0)" }
      let before = try profile.dump()["bodies"]
      try await pull(["a", "b"], from: 1) { "\($0)" }
      #expect(try profile.dump()["bodies"] == before)
      // As after a page of the file was damaged and the history is brought again.
      try await pull(["a", "b"], from: 1) { $0 == "a" ? "z" : $0 }
      #expect(try profile.text("a") == "z")
      #expect(try profile.text("b") == "b")
      #expect(try profile.area.violations() == [])
    }

    @Test("edits and the hub's records come in one order, in pages of any size")
    func merged() async throws {
      try await pull((0..<40).map { "h\($0)" }, from: 1) { "\($0)" }
      for number in stride(from: 0, to: 60, by: 3) {
        try await profile.enqueue(
          number % 2 == 0
            ? .put(RecordID("h\(number)"), Data("mine".utf8)) : .delete(RecordID("h\(number)")),
          account: ada)
      }
      let expected = Set((0..<40).map { "h\($0)" })
        .union(stride(from: 0, to: 60, by: 6).map { "h\($0)" })
        .subtracting(stride(from: 3, to: 60, by: 6).map { "h\($0)" })
        .map { RecordID($0) }.sorted()
      #expect(try profile.records().map(\.id) == expected)
      let inspector = try StoreInspector(directory: profile.registry.directory)
      #expect(try inspector.profile(profile.id).records == expected.count)
      for limit in [1, 2, 7, 100] {
        var found: [RecordID] = []
        while true {
          let page = try profile.records(prefix: "h", after: found.last, limit: limit)
          if page.isEmpty { break }
          #expect(page.count <= limit)
          found += page.map(\.id)
        }
        #expect(found == expected)
      }
      #expect(
        try profile.records(prefix: "h1").map(\.id)
          == expected.filter { $0.text.hasPrefix("h1") })
    }

    @Test("more edits than are looked at together come in order, too")
    func manyEdits() async throws {
      try await pull((0..<50).map { "r\($0 * 40)" }, from: 1) { "\($0)" }
      try await profile.enqueue(
        (0..<1_200).map { .put(RecordID("r\($0)"), Data("mine".utf8)) }, account: ada)
      let expected = Set((0..<1_200).map { "r\($0)" } + (0..<50).map { "r\($0 * 40)" })
        .map { RecordID($0) }.sorted()
      #expect(try profile.records().map(\.id) == expected)
      #expect(try profile.records(limit: 700).map(\.id) == Array(expected.prefix(700)))
    }
  }
}
