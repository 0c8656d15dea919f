import Foundation
import Holdfast
import Testing

@testable import SQLiteNotes

/// What a crash leaves is what was committed: each test performs the first steps of an order that the
/// pages give, lets go of everything, and opens the app again.
@Suite("An app with its own store, stopped between two steps", .timeLimit(.minutes(5)))
@MainActor
struct OwnStoreTests {
  private struct Stopped: Error {}

  private func open(
    _ hub: RunningHub, _ folder: String = "device", saved: (account: Data, token: String)? = nil
  ) async throws -> SyncedNotes {
    try await SyncedNotes(folder: hub.folder(folder), hub: hub.url, saved: saved)
  }

  /// The notes of an app: text and version of each.
  private func notes(_ app: SyncedNotes) throws -> [String] {
    try app.file.notes().map { "\($0.text) \($0.version ?? 0)" }
  }

  /// What another device of the account shows after a pass.
  private func otherDevice(_ hub: RunningHub, _ token: String) async throws -> [String] {
    let app = try await open(hub, "other device")
    _ = try await app.signIn(token: token, adopting: false)
    try await app.synchronize()
    return try notes(app)
  }

  // MARK: A change

  private func change(_ app: SyncedNotes, steps: Int) async throws {
    let account = try #require(app.account)
    guard steps >= 1 else { return }
    try app.file.write("note/bread", "Buy bread")
    let changes = try app.file.waiting()
    guard steps >= 2 else { return }
    try await app.profile.enqueue(changes.map(\.mutation), account: account)
    guard steps >= 3 else { return }
    try app.file.strikeOff(changes)
    guard steps >= 4 else { return }
    try await app.profile.strikeOff(changes.map(\.id), account: account)
  }

  @Test("a change is applied at the hub once, whichever step was its last", arguments: 0...4)
  func change(steps: Int) async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      var app = try await open(hub)
      let account = try await app.signIn(token: token, adopting: false)
      try await change(app, steps: steps)

      app = try await open(hub, saved: (account, token))
      #expect(try app.file.waiting().isEmpty)
      #expect(try app.profile.pendingSummary().count == min(steps, 1))
      try await app.synchronize()
      #expect(try app.profile.pendingSummary().isEmpty)
      // The hub counts what it applies: applied once, it is the account's first version.
      let expected = steps == 0 ? [] : ["Buy bread 1"]
      #expect(try notes(app) == expected)
      #expect(try await otherDevice(hub, token) == expected)
    }
  }

  @Test("a change that was settled while its UUID was still on the list is not sent again")
  func settledBeforeStruckOff() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      var app = try await open(hub)
      let account = try await app.signIn(token: token, adopting: false)
      try await change(app, steps: 2)
      let alice = try #require(app.account)
      await #expect(throws: Stopped.self) {
        try await app.profile.synchronize(account: alice) { _ in throw Stopped() }
      }
      #expect(try app.profile.pendingSummary().isEmpty)

      app = try await open(hub, saved: (account, token))
      #expect(try app.profile.pendingSummary().isEmpty)
      try await app.synchronize()
      #expect(try notes(app) == ["Buy bread 1"])
    }
  }

  // MARK: Binding

  private func bind(_ app: SyncedNotes, token: String, steps: Int) async throws {
    let account = try await app.registry.verify(token: token)
    guard steps >= 1 else { return }
    try app.file.setAdopting(account.bytes)
    guard steps >= 2 else { return }
    let profile = try await app.profile.bindAccount(account, adoptingUnownedData: true)
    guard steps >= 3 else { return }
    if profile.id == app.file.area {
      try app.file.setOwner(account.bytes)
    } else {
      try NotesFile(in: app.folder, area: profile.id, owner: account.bytes).takeOver(app.file)
    }
    guard steps >= 4 else { return }
    app.session.signIn(account, token: token)
  }

  @Test(
    "what the person gave to an account arrives once, whichever step was the last",
    arguments: 0...4, [false, true])
  func binding(steps: Int, accountWasHereBefore: Bool) async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      var app = try await open(hub)
      if accountWasHereBefore {
        _ = try await app.signIn(token: token, adopting: false)
        try await app.write("note/old", "Old note")
        try await app.synchronize()
        try await app.signOut()
      }
      try await app.write("note/bread", "Buy bread")
      try await bind(app, token: token, steps: steps)

      app = try await open(hub)
      _ = try await app.signIn(token: token, adopting: true)
      #expect(try await app.registry.unownedSummary() == nil)
      try await app.synchronize()
      let expected =
        accountWasHereBefore ? ["Buy bread 2", "Old note 1"] : ["Buy bread 1"]
      #expect(try notes(app) == expected)
      #expect(try app.profile.parked().isEmpty)
      #expect(try await otherDevice(hub, token) == expected)
      // Nobody's file has them any more.
      for area in try NotesFile.areas(in: app.folder) where area != app.profile.id {
        #expect(try NotesFile(in: app.folder, area: area, owner: nil).notes().isEmpty)
      }
    }
  }

  @Test("a bound area gives no change to a file that names no owner yet")
  func noOwnerYet() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let app = try await open(hub)
      try await app.write("note/bread", "Buy bread")
      try await bind(app, token: token, steps: 2)
      let account = try await app.registry.verify(token: token)
      let profile = try await app.registry.profile(for: account)
      app.session.signIn(account, token: token)
      let error = await #expect(throws: StoreError.self) {
        try await profile.synchronize(account: account) { batch in
          _ = try batch.changes(localOwner: try app.file.owner())
        }
      }
      #expect(error?.code == .ownedByAnotherAccount)
    }
  }

  // MARK: The file

  @Test(
    "a file that came back from a backup, or is gone, has every note again after one pass",
    arguments: [true, false])
  func fileIsOlder(hasBackup: Bool) async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let (url, account) = try await { () async throws -> (URL, Data) in
        let app = try await open(hub)
        let account = try await app.signIn(token: token, adopting: false)
        try await app.write("note/bread", "Buy bread")
        try await app.synchronize()
        return (app.file.url, account)
      }()
      let backup = hub.folder("backup")
      try FileManager.default.copyItem(at: url, to: backup)
      try await { () async throws in
        let app = try await open(hub, saved: (account, token))
        try await app.write("note/call", "Call Ada")
        try await app.write("note/bread", "Buy bread and butter")
        try await app.synchronize()
      }()
      try FileManager.default.removeItem(at: url)
      if hasBackup { try FileManager.default.copyItem(at: backup, to: url) }

      let app = try await open(hub, saved: (account, token))
      try await app.synchronize()
      #expect(try notes(app) == ["Buy bread and butter 3", "Call Ada 2"])
      // And once more, without a replay.
      try await app.write("note/call", "Call Ada and Bob")
      try await app.synchronize()
      #expect(try notes(app) == ["Buy bread and butter 3", "Call Ada and Bob 4"])
    }
  }

  @Test("a replay that was cut off is noticed by the next pass, which brings the rest")
  func replayCutOff() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let app = try await open(hub)
      _ = try await app.signIn(token: token, adopting: false)
      let alice = try #require(app.account)
      let count = 1_200
      try await app.profile.enqueue(
        (0..<count).map { .put("note/\($0)", Data("Note".utf8)) }, account: alice)
      try await app.synchronize()
      #expect(try app.file.notes().count == count)

      // An older file: it had nothing yet.
      for note in try app.file.notes() { try app.file.write(note.id, nil) }
      try app.file.strikeOff(try app.file.waiting())
      try app.file.setPosition(.start)
      var batchCount = 0
      await #expect(throws: Stopped.self) {
        try await app.profile.synchronize(
          account: alice, replayFromStart: true, appPosition: try app.file.position()
        ) { batch in
          batchCount += 1
          if batchCount == 2 { throw Stopped() }
          try app.file.apply(batch)
        }
      }
      #expect(batchCount == 2)
      try await app.synchronize()
      #expect(try app.file.notes().count == count)
    }
  }

  @Test("an edit that the hub has taken and no pass has delivered yet is no conflict with the next")
  func acknowledgedButNotDelivered() async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let app = try await open(hub)
      _ = try await app.signIn(token: token, adopting: false)
      let alice = try #require(app.account)
      try await app.write("note/bread", "Buy bread")
      try await app.synchronize()
      try await app.write("note/bread", "Buy bread and butter")
      await #expect(throws: Stopped.self) {
        try await app.profile.synchronize(account: alice) { _ in throw Stopped() }
      }
      #expect(try app.profile.pendingSummary().isEmpty)

      try await app.write("note/bread", "Buy butter")
      try await app.synchronize()
      #expect(try app.profile.parked().isEmpty)
      #expect(try notes(app) == ["Buy butter 3"])
    }
  }

  // MARK: Conflicts

  @Test(
    "an edit that waits is not overwritten; the file shows what the person decides in the end",
    arguments: [Resolution.keepHub, .keepLocal, .merged(Data("Both".utf8))])
  func conflict(resolution: Resolution) async throws {
    try await withHub { hub in
      let token = try hub.token(for: "alice")
      let (app, other) = (try await open(hub), try await open(hub, "other device"))
      _ = try await app.signIn(token: token, adopting: false)
      _ = try await other.signIn(token: token, adopting: false)
      try await app.write("note/bread", "Buy bread")
      try await app.synchronize()
      try await other.synchronize()
      try await other.write("note/bread", "Theirs")
      try await other.synchronize()

      try await app.write("note/bread", "Mine")
      try await app.synchronize()
      #expect(try notes(app) == ["Mine 1"])
      let parked = try #require(try app.profile.parked().first)
      #expect(parked.parked?.reason == .conflict)
      let alice = try #require(app.account)
      try await app.profile.resolve(
        parked.mutation, seen: parked.parked?.current?.version, account: alice, resolution)
      try await app.synchronize()
      try await other.synchronize()
      let expected =
        switch resolution {
        case .keepHub: "Theirs 2"
        case .keepLocal: "Mine 3"
        case .merged: "Both 3"
        }
      #expect(try notes(app) == [expected])
      #expect(try notes(other) == [expected])
      #expect(try app.profile.pendingSummary().isEmpty)
    }
  }
}
