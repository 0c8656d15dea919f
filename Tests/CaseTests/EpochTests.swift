import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("F: a hub, or a device, that was put back to an earlier time")
struct EpochTests {
  @Test("F1: what a restored hub lost is listed by the device that had sent it, and is sent again")
  func restoredHub() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.send(["kept"], "first")
      try await hub.backUp()
      try await alice.sync()
      try await alice.write(ids(1...10), "lost")
      let mutations = try alice.profile.outbox().map(\.mutation)
      try await alice.sync()
      try await alice.sync()
      try await hub.restore()
      #expect(try await hub.texts(of: "alice") == ["kept": "first"])
      await expect(.epochChanged) { try await alice.sync() }
      await expect(.epochChanged) { try await alice.sync() }
      try await alice.profile.synchronize(account: alice.account, replayFromStart: true)
      // Nothing was deleted for being gone at the hub.
      #expect(try alice.texts().count == 11)
      #expect(try alice.profile.lostAtHub().sorted() == ids(1...10))
      #expect(try alice.profile.acknowledgedButLost().map(\.entry.mutation) == mutations)
      try await alice.profile.sendAgain(acknowledged: mutations, account: alice.account)
      try await alice.sync()
      #expect(try await hub.texts(of: "alice").count == 11)
      #expect(try alice.profile.outbox().isEmpty)
      let other = try await Device(hub).signIn()
      try await other.sync()
      #expect(try other.texts() == (try alice.texts()))
    }
  }

  /// Found by the simulator: the tombstone, delivered once more, counted as the record's newest state, and
  /// what was put behind it was neither listed as lost nor taken away.
  @Test("F1: a record that was deleted and put again is lost with both")
  func lostBehindItsTombstone() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.send(["kept"], "first")
      try await hub.backUp()
      try await alice.send(["note"], "first")
      try await alice.delete(["note"])
      try await alice.sync()
      try await alice.write(["note"], "again")
      // The hub takes it, and no pull brings it.
      alice.device.wire.before { _, request throws(TransportError) in
        guard request.call != .changes else {
          throw TransportError(code: .connectionLost, description: "try again")
        }
        return nil
      }
      await expect(.hubUnreachable) { try await alice.sync() }
      alice.device.wire.clear()
      #expect(try alice.profile.outbox().isEmpty)
      try await hub.restore()
      try await alice.profile.synchronize(account: alice.account, replayFromStart: true)
      #expect(try alice.profile.lostAtHub() == ["note"])
      #expect(try alice.texts() == ["kept": "first", "note": "again"])
      try await alice.profile.sendAgain(lost: ["note"], account: alice.account)
      try await alice.sync()
      #expect(try await hub.texts(of: "alice") == ["kept": "first", "note": "again"])
    }
  }

  @Test(
    "F2: a device put back to an earlier copy of itself: what it writes then arrives",
    arguments: [false, true])
  func restoredDevice(isInPlace: Bool) async throws {
    try await TestHub.run { hub in
      let directory = try TemporaryDirectory()
      try await Self.write(["a"], "1", hub, directory.url)
      let copy = try Self.copy(directory.url)
      try await Self.write(["b", "c"], "2", hub, directory.url)
      #expect(try await hub.highWater(of: "alice") == 3)
      if isInPlace { try Self.overwrite(directory.url, with: copy.url) }
      let restored = isInPlace ? directory : copy
      try await Self.write(["d"], "3", hub, restored.url)
      #expect(try await hub.texts(of: "alice") == ["a": "1", "b": "2", "c": "2", "d": "3"])
      let alice = try await Device(hub, in: restored).signIn()
      #expect(try alice.texts().keys.sorted() == ["a", "b", "c", "d"])
    }
  }

  @Test("F2: two clones of one device are two clients: what either of them writes arrives")
  func clones() async throws {
    try await TestHub.run { hub in
      let directory = try TemporaryDirectory()
      try await Self.write(["a"], "1", hub, directory.url, waiting: "waits")
      let copies = [try Self.copy(directory.url), try Self.copy(directory.url)]
      var people: [Person] = []
      for (number, copy) in copies.enumerated() {
        let person = try await Device(hub, in: copy).signIn()
        try await person.write([RecordID("of clone \(number)")], "2")
        people.append(person)
      }
      try await withThrowingTaskGroup { group in
        for person in people { group.addTask { try await person.sync() } }
        try await group.waitForAll()
      }
      #expect(
        try await hub.texts(of: "alice")
          == ["a": "1", "waiting": "waits", "of clone 0": "2", "of clone 1": "2"])
      // What waited in both was one mutation, and is applied once.
      #expect(try await hub.highWater(of: "alice") == 4)
      let clients = try people.map { try $0.profile.area.facts().client.id }
      #expect(Set(clients).count == 2)
      for person in people {
        try await person.sync()
        #expect(try person.texts() == (try await hub.texts(of: "alice")))
      }
    }
  }

  /// A device that is switched on, writes and synchronizes, and is switched off.
  private static func write(
    _ records: [RecordID], _ text: String, _ hub: TestHub, _ directory: URL,
    waiting: String? = nil
  ) async throws {
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(directory: directory, session: session)
    registry.connect(to: hub.connection)
    let token = try hub.token(for: "alice")
    let account = try await registry.verify(token: token)
    session.signIn(account, token: token)
    let profile = try await registry.profile(for: account)
    for record in records {
      try await profile.enqueue(.put(record, Data(text.utf8)), account: account)
    }
    try await profile.synchronize(account: account)
    guard let waiting else { return }
    try await profile.enqueue(.put("waiting", Data(waiting.utf8)), account: account)
  }

  private static func copy(_ directory: URL) throws -> TemporaryDirectory {
    let copy = try TemporaryDirectory()
    for name in ["registry", "areas"] {
      try FileManager.default.copyItem(
        at: directory.appending(path: name), to: copy.url.appending(path: name))
    }
    return copy
  }

  /// Puts the data of a copy back into the same files, whose inodes stay.
  private static func overwrite(_ directory: URL, with copy: URL) throws {
    for name in try FileManager.default.subpathsOfDirectory(atPath: copy.path)
    where name.hasSuffix("data.mdb") {
      let file = try FileHandle(forWritingTo: directory.appending(path: name))
      try file.truncate(atOffset: 0)
      try file.write(contentsOf: Data(contentsOf: copy.appending(path: name)))
      try file.close()
    }
  }
}
