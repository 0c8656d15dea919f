import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

@Suite("profilectl show")
struct ShowTests {
  @Test("tells everything that the area knows, and changes nothing")
  func everything() async throws {
    let store = try TestStore()
    store.session.signOut()
    let guest = try await store.registry.unownedProfile()
    try await guest.enqueue(.put("guest", Data("{}".utf8)), account: nil)
    let alice = try TestStore.account("alice@example.org")
    let profile = try await store.profile(of: alice)
    _ = try await store.registry.adopt(guest.id, by: alice)
    let (acknowledged, conflict, rejected) = (UUID(), UUID(), UUID())
    try await profile.enqueue(
      [
        .put("a", Data("1".utf8), mutation: acknowledged),
        .put("b", Data("22".utf8), mutation: conflict),
        .put("c", Data("333".utf8), mutation: rejected),
      ], account: alice)
    try await store.settle(
      [
        (acknowledged, .acknowledged(version: 7)),
        (conflict, .parked(Parked(reason: .conflict))),
        (rejected, .parked(Parked(reason: .rejected, code: "forbidden"))),
      ], of: profile)
    try await pull(into: profile, of: store)
    _ = try profile.table("bookmarks", key: TextCodec.self, value: TextCodec.self)
    let copy = try store.copied()
    let before = try FileTree(copy.directory)

    let run = await copy.run(["show", "\(profile.id)", "--json"])
    #expect(run.exitCode == 0)
    let shown = try run.json()
    #expect(shown["directory"] as? String == copy.file(store.path(of: profile.id)).path)
    #expect(shown["knownRecords"] as? Int == 3)
    #expect((shown["cursor"] as? [String: Any])?["sequence"] as? Int == 30)
    let registry = try #require(shown["registry"] as? [String: Any])
    #expect(registry["state"] as? String == "owned")
    #expect(registry["intent"] is NSNull)
    let files = try #require(shown["files"] as? [[String: Any]])
    let data = try Data(contentsOf: copy.file(store.path(of: profile.id) + "/data.mdb"))
    // The seal is empty as long as an app has the area open.
    #expect(files.map { $0["name"] as? String } == ["data.mdb", "data.seal"])
    #expect(files.map { $0["bytes"] as? Int } == [data.count, 0])

    let contents = try #require(shown["contents"] as? [String: Any])
    #expect(contents["isClientRegistered"] as? Bool == true)
    #expect(contents["isCopy"] as? Bool == true)
    #expect(contents["position"] as? Int == 5)
    #expect((contents["highWater"] as? [String: Any])?["sequence"] as? Int == 50)
    #expect((contents["scan"] as? [String: Any])?["kind"] as? String == "replay")
    #expect((contents["scan"] as? [String: Any])?["until"] as? Int == 50)
    #expect((contents["lineage"] as? [[String: Any]])?.first?["forkedAt"] as? Int == 12)
    #expect((contents["hubLimits"] as? [String: Any])?["payloadBytes"] as? Int == 1_048_576)
    #expect(contents["tombstones"] as? Int == 1)
    let parked = contents["parked"] as? [String: Int]
    #expect(
      parked == ["conflict": 1, "rejected": 1, "tooLarge": 0, "adopted": 0, "discarding": 0])
    #expect(contents["acknowledged"] as? Int == 1)
    #expect(contents["settled"] as? Int == 1)
    let adoptions = try #require(contents["adoptions"] as? [[String: Any]])
    #expect(adoptions.map { $0["source"] as? String } == ["\(guest.id)"])
    #expect(adoptions.map { $0["mutations"] as? Int } == [1])
    let tables = try #require(contents["tables"] as? [[String: Any]])
    #expect(tables.contains { $0["name"] as? String == "app.bookmarks" })
    #expect(
      tables.contains { $0["name"] as? String == "outbox" && $0["entries"] as? Int == 3 })
    #expect(contents["readerSlotsMax"] as? Int == 1024)
    #expect(try FileTree(copy.directory) == before)
  }

  /// What a pass leaves behind: two changes, a cursor, and a replay that was begun.
  private func pull(into profile: Profile, of store: TestStore) async throws {
    let owner = try #require(try profile.owner)
    let lineage = [LineageEntry(epoch: UUID(), forkedAt: 12)]
    let standing = SessionAnswer(
      nonce: UUID(), hub: owner.hub, epoch: TestStore.epoch, lineage: lineage, account: owner.id,
      highWater: 50, minimumCursor: 0, idempotencyFloor: 0, empty: false, expiresAt: 0,
      limits: HubLimits())
    try await profile.area.note(standing)
    try await profile.area.commit(
      [
        IncomingChange(record: "x", version: 20, payload: Data("x".utf8), isDeleted: false),
        IncomingChange(record: "y", version: 30, payload: nil, isDeleted: true),
      ], epoch: TestStore.epoch, lineage: lineage, progress: .cursor(30), position: 5,
      policy: store.registry.policy, requiring: {})
    try await profile.area.begin(
      ScanState(id: UUID(), kind: .replay, epoch: TestStore.epoch, until: 50, place: 10),
      standing: standing)
  }

  @Test("finds a profile by its ID, by its first digits, and whatever their case")
  func prefixes() async throws {
    let store = try TestStore()
    let profile = try await store.profile(of: try TestStore.account("alice@example.org"))
    let copy = try store.copied()
    let id = "\(profile.id)"
    for digits in [id, String(id.prefix(4)), id.prefix(8).uppercased()] {
      let run = await copy.run(["show", digits, "--json"])
      #expect(run.exitCode == 0)
      #expect(try run.json()["profile"] as? String == id)
    }
  }

  @Test("of a profile that is not there ends with code 1 and a sentence")
  func unknown() async throws {
    let store = try TestStore()
    let profile = try await store.profile(of: try TestStore.account("alice@example.org"))
    let other = profile.id.description.hasPrefix("0000") ? "1111" : "0000"
    let copy = try store.copied()
    for command in ["show", "outbox"] {
      let run = await copy.run([command, other])
      #expect(run.exitCode == 1)
      #expect(run.output == "")
      #expect(
        run.errors
          == "profilectl: no profile of this store begins with '\(other)': 'list' shows them all\n")
    }
  }

  @Test("of a store that nobody has opened since it was copied makes no lock file")
  func noLockFile() async throws {
    let store = try TestStore()
    let profile = try await store.profile(of: try TestStore.account("alice@example.org"))
    let copy = try store.copied()
    for words in [["list"], ["show", "\(profile.id)"], ["outbox", "\(profile.id)"]] {
      #expect(await copy.run(words).exitCode == 0)
    }
    #expect(try FileTree.names(in: copy.directory).allSatisfy { !$0.hasSuffix("lock.mdb") })
  }
}
