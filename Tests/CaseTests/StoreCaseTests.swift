import Foundation
import HubProtocol
import LMDB
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("J: several processes, locks and full files")
struct StoreCaseTests {
  @Test("J1: another process inspects the store while this one writes and synchronizes")
  func inspecting() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn()
      try await alice.send(["first"], "1")
      let child = try CaseChild.start("inspect", hub, device.directory.url, as: "alice")
      #expect(await child.line() == "begun")
      for round in 1...20 {
        try child.send("look")
        for number in 1...5 { try await alice.write([RecordID("r\(number)")], "\(round)") }
        try await alice.sync()
        #expect(await child.line() == "looked \(round)")
      }
      #expect(try await child.end() == .exited(0))
      #expect(try await hub.highWater(of: "alice") == 101)
    }
  }

  @Test(
    "J1: a pass of another process makes this one busy, or wait; killed, it keeps nobody waiting")
  func otherProcessSyncs() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub, keeping: .app)
      let alice = try await device.signIn()
      try await alice.write(["a"], "1")
      let app = device.directory.url.appending(path: "app.json").path
      let child = try CaseChild.start(
        "pass", hub, device.directory.url, as: "alice", ["ordinary", app, "stay request:2"])
      #expect(await child.line() == "stays")
      for waiting in [PassWait.notAtAll, .atMost(.milliseconds(20))] {
        await expect(.busy) {
          try await alice.profile.synchronize(account: alice.account, waiting: waiting) { batch in
            _ = try batch.changes(localOwner: alice.account.bytes)
          }
        }
      }
      // Reading and enqueueing go on all the while.
      try await alice.write(["b"], "2")
      #expect(try alice.profile.outbox().count == 2)
      let waiting = Task { try await alice.pass() }
      child.kill()
      #expect(try await child.end() == .signal(SIGKILL))
      _ = try await waiting.value
      #expect(try await hub.highWater(of: "alice") == 2)
    }
  }

  @Test(
    "J3: 10,000 writes of as many tasks all end, and each is there once", .timeLimit(.minutes(1)))
  func manyWriters() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub, keeping: .app).signIn()
      try await withThrowingTaskGroup { group in
        for number in 1...10_000 {
          group.addTask { try await alice.write([RecordID("r\(number)")], "x") }
        }
        try await group.waitForAll()
      }
      let outbox = try alice.profile.outbox()
      #expect(outbox.count == 10_000)
      #expect(Set(outbox.map(\.record)).count == 10_000)
      #expect(outbox.map(\.order) == outbox.map(\.order).sorted())
    }
  }

  @Test("J4: a store reached by a link, by .. and by links to its files is one, with one handle")
  func aliases() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn()
      try await alice.send(["a"], "1")
      let elsewhere = try TemporaryDirectory()
      let link = elsewhere.url.appending(path: "link")
      try FileManager.default.createSymbolicLink(at: link, withDestinationURL: device.directory.url)
      let linked = elsewhere.url.appending(path: "linked")
      try Self.linkFiles(of: device.directory.url, to: linked)
      let path = device.directory.url.path
      for place in [link.path, path + "/areas/..", linked.path] {
        try await Self.requireSame(alice, URL(filePath: place))
        // Whoever opened it a second time is gone, and the first goes on.
        try await alice.write(["b"], place)
        #expect(try alice.profile.record("b") != nil)
      }
    }
  }

  private static func requireSame(_ alice: Person, _ place: URL) async throws {
    let registry = try ProfileRegistry(directory: place, session: alice.device.session)
    let profile = try await registry.profile(for: alice.account)
    #expect(profile.area === alice.profile.area)
    try await profile.enqueue(.put("c", Data("c".utf8)), account: alice.account)
    #expect(try alice.profile.record("c") != nil)
  }

  private static func linkFiles(of directory: URL, to linked: URL) throws {
    for name in try FileManager.default.subpathsOfDirectory(atPath: directory.path).sorted() {
      var isDirectory: ObjCBool = false
      let (from, to) = (directory.appending(path: name).path, linked.appending(path: name).path)
      guard FileManager.default.fileExists(atPath: from, isDirectory: &isDirectory) else {
        continue
      }
      if isDirectory.boolValue {
        try FileManager.default.createDirectory(atPath: to, withIntermediateDirectories: true)
      } else {
        try FileManager.default.createDirectory(
          atPath: (to as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try #require(link(from, to) == 0)
      }
    }
  }

  @Test("J5: 1,200 readers that were killed leave room for others")
  func killedReaders() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn()
      try await alice.send(["a"], "1")
      for _ in 0..<6 {
        let child = try CaseChild.start("readers", hub, device.directory.url, as: "alice", ["200"])
        #expect(await child.line() == "held 200")
        child.kill()
        #expect(try await child.end() == .signal(SIGKILL))
        try await alice.send(["b"], "2")
        #expect(try alice.texts().count == 2)
      }
    }
  }

  @Test("J6: a file at its limit refuses what comes in, and is read and drained")
  func fullFile() async throws {
    try await TestHub.run { hub in
      var limits = StoreLimits()
      limits.areaByteCountMax = 4 << 20
      let alice = try await Device(hub, limits: limits).signIn()
      try await alice.sync()
      let text = String(repeating: "x", count: 20_000)
      var stored: [RecordID] = []
      do {
        for number in 1...1_000 {
          let id = RecordID("r\(number)")
          try await alice.write([id], text)
          stored.append(id)
        }
        Issue.record("a file of 4 MiB took 20 MB")
      } catch let error as StoreError {
        #expect(error.code == .storage)
        #expect(error.cause?.code == .mapFull)
      }
      #expect(stored.count > 20)
      #expect(try alice.profile.pendingSummary().count == stored.count)
      #expect(Set(try alice.texts().keys) == Set(stored))
      // It drains, though there may be no room for what the hub has to tell.
      do { try await alice.sync() } catch let error as StoreError {
        #expect(error.cause?.code == .mapFull)
      }
      #expect(try alice.profile.outbox().isEmpty)
      #expect(try await hub.records(of: "alice").map(\.id) == stored)
      #expect(Set(try alice.texts().keys) == Set(stored))
      // There is room again once something was deleted.
      for id in stored.prefix(stored.count / 2) { try await alice.delete([id]) }
      try await alice.sync()
      try await alice.send(["again"], text)
      #expect(try alice.texts() == (try await hub.texts(of: "alice")))
    }
  }

  @Test(
    "J7: a deleted record may stay in free pages; a compact copy has none, an erased profile no file"
  )
  func leftovers() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn()
      try await alice.write(["secret"], "canary-in-the-file")
      #expect(try files(under: device.directory.url.path, with: "canary-in-the-file") > 0)
      try await alice.sync()
      try await alice.delete(["secret"])
      try await alice.sync()
      // The record of what was acknowledged still has it, in case the hub loses it: more of these
      // push it out.
      for number in 1...3 {
        try await alice.profile.enqueue(
          (1...500).map { .put(RecordID("r\($0)"), Data("\(number)".utf8)) }, account: alice.account
        )
        try await alice.sync()
      }
      let copy = try TemporaryDirectory()
      try await alice.profile.area.environment.copy(
        to: copy.url.appending(path: "copy").path, compacting: true)
      #expect(try files(under: copy.url.path, with: "canary-in-the-file") == 0)
      try await device.registry.erase(alice.account)
      #expect(try files(under: device.directory.url.path, with: "canary-in-the-file") == 0)
    }
  }
}
