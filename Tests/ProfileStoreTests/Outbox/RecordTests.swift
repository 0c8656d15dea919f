import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension Outbox {
  @Suite("the records of an area that keeps them")
  struct Records {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      (ada, profile) = try await store.signedInProfile("ada", in: registry)
    }

    @Test("an edit is shown at once, and is the hub's version once it is acknowledged")
    func shownAndSettled() async throws {
      let id = try await profile.enqueue(.put("a", Data("mine".utf8)), account: ada).mutation
      var record = try #require(try profile.record("a"))
      #expect(record.isPending)
      #expect(record.version == nil)
      #expect(record.base == .mustNotExist)
      try await profile.acknowledge(id, version: 5)
      record = try #require(try profile.record("a"))
      #expect(record.payload == Data("mine".utf8))
      #expect(record.version == 5)
      #expect(!record.isPending)
      #expect(record.base == .version(5))
    }

    @Test("an acknowledged delete leaves nothing")
    func deleted() async throws {
      try await profile.pull("a", version: 4, "hub")
      let id = try await profile.enqueue(.delete("a"), account: ada).mutation
      #expect(try profile.record("a") == nil)
      try await profile.acknowledge(id, version: 5)
      #expect(try profile.record("a") == nil)
      #expect(try profile.dump()["bodies"] == [:])
    }

    @Test("an acknowledgement that a newer version of the hub has overtaken does not cover it")
    func overtaken() async throws {
      let id = try await profile.enqueue(.put("a", Data("mine".utf8)), account: ada).mutation
      try await profile.pull("a", version: 9, "newer")
      #expect(try profile.text("a") == "mine")
      try await profile.acknowledge(id, version: 5)
      #expect(try profile.text("a") == "newer")
      #expect(try profile.record("a")?.version == 9)
    }

    @Test("while a later edit waits, an acknowledgement of the earlier one leaves it shown")
    func laterEditShown() async throws {
      let first = try await profile.enqueue(.put("a", Data("1".utf8)), account: ada).mutation
      let second = try await profile.enqueue(.delete("a"), account: ada).mutation
      try await profile.acknowledge(first, version: 5)
      #expect(try profile.record("a") == nil)
      try await profile.park(second)
      try await profile.discard(second, account: ada)
      #expect(try profile.text("a") == "1")
      #expect(try profile.record("a")?.version == 5)
    }

    @Test("a put over a delete that waits is shown with the version it was made from")
    func putOverDelete() async throws {
      try await profile.pull("a", version: 4, "hub")
      try await profile.enqueue([.delete("a"), .put("a", Data("back".utf8))], account: ada)
      #expect(try profile.text("a") == "back")
      #expect(try profile.record("a")?.version == 4)
    }

    @Test("are read by prefix and in pages, in byte order")
    func pages() async throws {
      let ids = ["a", "b/1", "b/2", "b/3", "c", "b"].map { RecordID($0) }
      try await profile.enqueue(ids.map { .put($0, Data()) }, account: ada)
      func read(_ prefix: RecordID?, _ after: RecordID?, _ limit: Int = .max) throws -> [String] {
        try profile.records(prefix: prefix, after: after, limit: limit).map(\.id.text)
      }
      #expect(try read(nil, nil) == ["a", "b", "b/1", "b/2", "b/3", "c"])
      #expect(try read("", nil) == ["a", "b", "b/1", "b/2", "b/3", "c"])
      #expect(try read("b/", nil) == ["b/1", "b/2", "b/3"])
      #expect(try read("b/", "b/1", 1) == ["b/2"])
      #expect(try read("b/", "b/3") == [])
      #expect(try read("b/", "a") == ["b/1", "b/2", "b/3"])
      #expect(try read("b/", "c") == [])
      #expect(try read(nil, "b/2") == ["b/3", "c"])
      #expect(try read(nil, nil, 0) == [])
    }

    @Test("are read only while the session says their owner")
    func readByOwner() async throws {
      try await profile.enqueue(.put("a", Data()), account: ada)
      let reads: [(Profile) throws -> Void] = [
        { _ = try $0.record("a") }, { _ = try $0.records() }, { _ = try $0.outbox() },
        { _ = try $0.parked() }, { _ = try $0.acknowledged() }, { _ = try $0.lostAtHub() },
        { _ = try $0.read { $0.identifier() } },
      ]
      let table: [(SessionState, StoreError.Code)] = [
        (.unknown, .sessionUnknown), (.nobody, .notSignedIn),
        (try verified("bob").signedIn(), .anotherAccountSignedIn),
      ]
      for (state, expected) in table {
        let other = Profile.handle(
          to: profile.area, of: try store.registry(session: ScriptedSession(state)))
        for read in reads { #expect(await code { try read(other) } == expected) }
        #expect(try other.pendingSummary().count == 1)
      }
    }

    @Test("an app that keeps its records itself has none here")
    func appStore() async throws {
      let app = Profile.handle(
        to: profile.area, of: try store.registry(keeping: .app, at: store.path + "/other"))
      let id = try await app.enqueue(.put("a", Data("mine".utf8)), account: ada).mutation
      try await app.pull("b", version: 4, "hub")
      try await app.acknowledge(id, version: 5)
      #expect(try app.records().isEmpty)
      #expect(try app.record("a") == nil)
      #expect(try app.dump()["bodies"] == [:])
    }
  }
}
