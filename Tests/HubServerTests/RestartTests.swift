import Foundation
import HubProtocol
import HubServer
import Testing

@Suite("A hub that starts again on its directory")
struct RestartTests {
  private let directory: TemporaryDirectory
  private let configuration: HubConfiguration
  private var store: URL { configuration.dataDirectory.appending(path: "store/data.mdb") }
  private var copy: URL { directory.url.appending(path: "copy.mdb") }

  init() throws {
    directory = try TemporaryDirectory()
    configuration = .test(directory)
  }

  private func replace(_ target: URL, by source: URL) throws {
    if FileManager.default.fileExists(atPath: target.path) {
      try FileManager.default.removeItem(at: target)
    }
    try FileManager.default.copyItem(at: source, to: target)
  }

  private func push(_ id: String, to hub: TestedHub) async throws -> SessionAnswer {
    let alice = try TestClient(hub)
    let epoch = try await alice.session().epoch
    try await alice.register()
    let answer = try await alice.push([.put(id)], epoch: epoch).message(PushAnswer.self)
    #expect(answer.results.map(\.status) == [.applied])
    return try await alice.session()
  }

  @Test("keeps its ID, its epochs and what it stored")
  func clean() async throws {
    var session: SessionAnswer?
    try await withHub(configuration) { session = try await push("a", to: $0) }
    try await withHub(configuration) { hub in
      let again = try await TestClient(hub).session()
      #expect(again.hub == session?.hub)
      #expect(again.epoch == session?.epoch)
      #expect(again.highWater == 1)
    }
  }

  @Test("gives every account a new epoch when an older copy was put back, forked where it ends")
  func restored() async throws {
    var before: SessionAnswer?
    try await withHub(configuration) { before = try await push("a", to: $0) }
    try replace(copy, by: store)
    try await withHub(configuration) { _ = try await push("b", to: $0) }
    try replace(store, by: copy)
    let old = try #require(before)
    var first: SessionAnswer?
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      first = session
      #expect(session.hub == old.hub)
      #expect(session.epoch != old.epoch)
      #expect(session.highWater == 1)
      #expect(session.lineage == [LineageEntry(epoch: old.epoch, forkedAt: 1)])
    }
    // And no further one at the next start.
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.epoch == first?.epoch)
    }
  }

  @Test("notices a copy of the same run, too")
  func restoredSameRun() async throws {
    var before: SessionAnswer?
    try await withHub(configuration) { hub in
      before = try await push("a", to: hub)
      // Nothing writes meanwhile, so the file is whole.
      try replace(copy, by: store)
      _ = try await push("b", to: hub)
    }
    try replace(store, by: copy)
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.epoch != before?.epoch)
    }
  }

  @Test("tells a crash from an older copy, however many transactions its run had")
  func crashImage() async throws {
    var crashed = configuration
    crashed.dataDirectory = directory.url.appending(path: "a", directoryHint: .isDirectory)
    var restored = configuration
    restored.dataDirectory = directory.url.appending(path: "b", directoryHint: .isDirectory)
    var before: SessionAnswer?
    try await withHub(configuration) { hub in
      before = try await push("first", to: hub)
      try replace(copy, by: store)
      // More transactions than a block of leased numbers has.
      for number in 0..<70 { _ = try await push("r\(number)", to: hub) }
      // What a crash would leave now: nothing writes, and nothing was noted at a clean stop.
      try replace(crashed.dataDirectory, by: configuration.dataDirectory)
      try replace(restored.dataDirectory, by: configuration.dataDirectory)
    }
    try await withHub(crashed) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.epoch == before?.epoch)
      #expect(session.highWater == 71)
    }
    // The copy is of the same run, and from before the last block.
    try replace(restored.dataDirectory.appending(path: "store/data.mdb"), by: copy)
    try await withHub(restored) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.epoch != before?.epoch)
      #expect(session.highWater == 1)
      #expect(session.lineage.map(\.forkedAt) == [1])
    }
  }

  @Test("gives new epochs when the note beside the data file is missing")
  func noNote() async throws {
    var before: SessionAnswer?
    try await withHub(configuration) { before = try await push("a", to: $0) }
    try FileManager.default.removeItem(
      at: configuration.dataDirectory.appending(path: "run.json"))
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.hub == before?.hub)
      #expect(session.epoch != before?.epoch)
    }
  }

  @Test("keeps its ID when the data file is lost, and makes accounts anew")
  func noData() async throws {
    var before: SessionAnswer?
    try await withHub(configuration) { before = try await push("a", to: $0) }
    try FileManager.default.removeItem(at: store.deletingLastPathComponent())
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.hub == before?.hub)
      #expect(session.epoch != before?.epoch)
      #expect(session.empty)
    }
  }

  @Test("refuses the data file of another hub, and a fixed ID that is not its own")
  func foreign() async throws {
    try await withHub(configuration) { _ = try await push("a", to: $0) }
    let elsewhere = try TemporaryDirectory()
    let other = HubConfiguration.test(elsewhere)
    try await withHub(other) { _ = try await push("a", to: $0) }
    try replace(store, by: other.dataDirectory.appending(path: "store/data.mdb"))
    let error = await #expect(throws: HubServerError.self) {
      _ = try await HubServer.start(configuration)
    }
    #expect(error?.code == .storeUnusable)
    var fixed = other
    fixed.hubID = UUID()
    let mismatch = await #expect(throws: HubServerError.self) {
      _ = try await HubServer.start(fixed)
    }
    #expect(mismatch?.code == .storeUnusable)
    // Nothing was changed by either refusal.
    try await withHub(other) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.lineage.isEmpty)
    }
  }

  @Test("applies erasures to a copy that has not seen them, and an erased account made again")
  func erasures() async throws {
    let alice = try AccountID("alice")
    try await withHub(configuration) { _ = try await push("a", to: $0) }
    try replace(copy, by: store)
    try await withHub(configuration) { try await $0.erase(alice) }
    try replace(store, by: copy)
    try await withHub(configuration) { hub in
      let client = try TestClient(hub)
      #expect(try await client.send("GET", "/v1/records?id=a").code == "account_erased")
      try await hub.recreate(alice)
      let session = try await client.session()
      #expect(session.empty && session.highWater == 0)
      #expect(session.lineage.allSatisfy { $0.forkedAt == 0 })
      _ = try await push("new", to: hub)
    }
    // The file that has seen them is left alone.
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.highWater == 1)
    }
    try replace(store, by: copy)
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.empty)
      #expect(session.lineage.allSatisfy { $0.forkedAt == 0 })
    }
  }

  @Test("keeps an account that somebody wanted made again although it was not erased")
  func recreatedAlive() async throws {
    let alice = try AccountID("alice")
    try await withHub(configuration) { _ = try await push("a", to: $0) }
    try replace(copy, by: store)
    try await withHub(configuration) { hub in
      let error = await #expect(throws: HubServerError.self) { try await hub.recreate(alice) }
      #expect(error?.code == .accountNotErased)
    }
    // No note of it brings harm to an older copy, not even one that another version has written.
    let line = #"{"id":"\#(UUID())","action":"recreate","account":"YWxpY2U"}"# + "\n"
    let notes = configuration.dataDirectory.appending(path: "erasures.jsonl")
    #expect(!FileManager.default.fileExists(atPath: notes.path))
    try Data(line.utf8).write(to: notes)
    try replace(store, by: copy)
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.highWater == 1 && !session.empty)
      #expect(try await TestClient(hub).send("GET", "/v1/records?id=a").status == 200)
    }
  }

  @Test("drops the end of an erasure note that a crash cut off")
  func cutNote() async throws {
    let file = configuration.dataDirectory.appending(path: "erasures.jsonl")
    try await withHub(configuration) { hub in
      _ = try await push("a", to: hub)
      try await hub.erase(AccountID("alice"))
    }
    var text = try Data(contentsOf: file)
    text.append(Data(#"{"id":"#.utf8))
    try text.write(to: file)
    try await withHub(configuration) { try await $0.recreate(AccountID("alice")) }
    try await withHub(configuration) { hub in
      let session = try await TestClient(hub).session()
      #expect(session.empty)
    }
    text.removeLast(10)
    text.append(Data("\n".utf8))
    try text.write(to: file)
    let error = await #expect(throws: HubServerError.self) {
      _ = try await HubServer.start(configuration)
    }
    #expect(error?.code == .storeUnusable)
  }

  @Test("makes a data file anew that a kill left empty, unless a run was noted")
  func emptyFile() async throws {
    try FileManager.default.createDirectory(
      at: store.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data().write(to: store)
    try await withHub(configuration) { _ = try await push("a", to: $0) }
    try Data().write(to: store)
    let error = await #expect(throws: HubServerError.self) {
      _ = try await HubServer.start(configuration)
    }
    #expect(error?.code == .storeUnusable)
  }

  @Test("answers 503 while the note of its run cannot be written, and goes on afterwards")
  func fullDisk() async throws {
    try await withHub(configuration) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      // A directory in the place of the new note fails like a full disk, also for root.
      let obstacle = configuration.dataDirectory.appending(path: "run.json.new")
      try FileManager.default.createDirectory(at: obstacle, withIntermediateDirectories: false)
      var refused: RawAnswer?
      for number in 0..<130 where refused == nil {
        let answer = try await alice.push([.put("r\(number)")], epoch: epoch)
        if answer.status != 200 { refused = answer }
      }
      #expect(refused?.status == 503)
      #expect(refused?.code == "unavailable")
      #expect(refused?.header("Retry-After") == "5")
      try FileManager.default.removeItem(at: obstacle)
      #expect(try await alice.push([.put("last")], epoch: epoch).status == 200)
    }
  }

  @Test("is refused while another hub serves the directory, with a sentence")
  func inUse() async throws {
    try await withHub(configuration) { _ in
      let error = await #expect(throws: HubServerError.self) {
        _ = try await HubServer.start(configuration)
      }
      #expect(error?.code == .directoryInUse)
      #expect(error?.message.contains(configuration.dataDirectory.path) ?? false)
    }
    try await withHub(configuration) { _ in }
  }

  @Test("is refused on a directory that is a file, a store that is none, or a port in use")
  func unusable() async throws {
    var file = configuration
    file.dataDirectory = directory.url.appending(path: "file")
    try Data("x".utf8).write(to: file.dataDirectory)
    let notDirectory = await #expect(throws: HubServerError.self) {
      _ = try await HubServer.start(file)
    }
    #expect(notDirectory?.code == .directoryUnusable)
    try FileManager.default.createDirectory(
      at: store.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data("no database, and longer than a page".utf8).write(to: store)
    let damaged = await #expect(throws: HubServerError.self) {
      _ = try await HubServer.start(configuration)
    }
    #expect(damaged?.code == .storeUnusable)
    try FileManager.default.removeItem(at: store)
    try await withHub(configuration) { hub in
      let elsewhere = try TemporaryDirectory()
      var second = HubConfiguration.test(elsewhere)
      second.listen.port = UInt16(hub.url.port ?? 0)
      let inUse = await #expect(throws: HubServerError.self) {
        _ = try await HubServer.start(second)
      }
      #expect(inUse?.code == .listenFailed)
      second.listen.address = "localhost"
      let noAddress = await #expect(throws: HubServerError.self) {
        _ = try await HubServer.start(second)
      }
      #expect(noAddress?.code == .listenFailed)
      // A start that failed lets go of its directory.
      second.listen = HubConfiguration.Listen()
      try await withHub(second) { _ in }
    }
  }
}
