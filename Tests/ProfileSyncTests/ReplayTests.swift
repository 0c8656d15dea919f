import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract section 6.
@Suite("Replay")
struct ReplayTests {
  /// An app with a store of its own that has everything there is.
  private static func complete(_ hub: TestHub) async throws -> Person {
    let person = try await Device(hub, keeping: .app).signIn()
    try await person.pass()
    person.app.forgetBatches()
    person.device.wire.clear()
    return person
  }

  @Test("until is the hub's high water when it began, so that it ends although others write")
  func until() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let other = try await Person.withRecords(hub, ids(1...6))
      let person = try await Self.complete(hub)
      let written = Log<Int>()
      person.device.wire.after { number, request, _ throws(TransportError) in
        guard request.call == .changes, written.entries.count < 8 else { return }
        // Others write faster than pages come: a new record, and one that was still to come.
        written.add(number)
        do {
          try await other.send(ids((100 + number)...(100 + number)) + ids(6...6), "meanwhile")
        } catch { Issue.record("the other device failed: \(error)") }
      }
      try await person.replay()
      let pages = person.device.wire.requests.filter { $0.call == .changes }
      let pinned = pages.prefix { $0.query("until") != nil }
      #expect(pinned.allSatisfy { $0.query("until") == "6" })
      #expect(pinned.map { $0.query("after") } == ["0", "2", "4"])
      // The pull from until brings what was left out.
      #expect(pages[pinned.count].query("after") == "6")
      person.device.wire.clear()
      try await person.pass()
      #expect(try person.app.texts == other.texts())
      #expect(person.app.texts[ids(6...6)[0]] == "meanwhile")
    }
  }

  @Test("reads history without resetting cursor, metadata, outbox or records, and sends as usual")
  func resetsNothing() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Person.withRecords(hub, ids(1...4))
      try await person.write(["mine"], "mine")
      _ = try await person.makeConflict()
      try await person.write(["last"], "last")
      let before = try person.standing()
      let cursors = Log<UInt64?>()
      person.device.wire.clear()
      person.device.wire.after { _, request, _ throws(TransportError) in
        guard request.call == .changes else { return }
        do { cursors.add(try person.profile.cursor()?.sequence) } catch {
          Issue.record("the area could not be read: \(error)")
        }
      }
      try await person.profile.synchronize(account: person.account, replayFromStart: true)
      #expect(person.device.wire.calls.prefix(3) == [.session, .mutations, .changes])
      #expect(cursors.entries.allSatisfy { $0 ?? 0 >= before.cursor?.sequence ?? 1 })
      let after = try person.standing()
      #expect(after.records.map(\.payload) == before.records.map(\.payload))
      #expect(after.outbox == before.outbox.dropLast())
      #expect(try person.profile.parked().count == 1)
    }
  }

  @Test("holds its place as the only pass of the area")
  func lock() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ids(1...3))
      let person = try await Self.complete(hub)
      let (isInside, mayGoOn) = (Gate(), Gate())
      let replay = Task {
        try await person.profile.synchronize(account: person.account, replayFromStart: true) {
          batch in
          try person.app.save(batch)
          isInside.open()
          await mayGoOn.wait()
        }
      }
      await isInside.wait()
      for _ in 1...2 {
        await expect(.busy) {
          try await person.profile.synchronize(account: person.account, waiting: .notAtAll) {
            try person.app.save($0)
          }
        }
      }
      mayGoOn.open()
      _ = try await replay.value
    }
  }

  @Test("an equal version is delivered: what was accepted but not retained is recovered")
  func recovers() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let other = try await Person.withRecords(hub, ids(1...5))
      try await other.send(ids(2...2), "second")
      try await other.delete(ids(3...3))
      try await other.profile.synchronize(account: other.account)
      let person = try await Self.complete(hub)
      let cursor = try person.profile.cursor()
      person.app.restore(rows: [:], position: .start)
      // An ordinary pass has nothing to tell.
      try await person.pass()
      #expect(person.app.batches.isEmpty)
      let reports = try await person.replay()
      #expect(reports.count == 1 && reports[0].isComplete)
      #expect(try person.app.texts == other.texts())
      // Each record once, the tombstone too.
      #expect(person.app.changes.map(\.record).sorted() == ids(1...5))
      #expect(person.app.batches.allSatisfy { $0.isReplay })
      #expect(try person.profile.cursor() == cursor)
    }
  }

  @Test("a version older than the metadata knows is not delivered, and deletes nothing")
  func older() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ids(1...5))
      try await other.send(ids(1...5), "second")
      let person = try await Self.complete(hub)
      let rows = person.app.rows
      person.device.wire.ask(for: "older-versions", at: .changes)
      let report = try await person.pass(replayFromStart: true)
      #expect(report.outdated == 5 && report.delivered == 0)
      #expect(person.app.batches.isEmpty)
      person.device.wire.clear()
      try await person.replay()
      #expect(person.app.rows == rows)
    }
  }

  @Test("one ID twice in a page is an error")
  func twiceInAPage() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ids(1...3))
      let person = try await Self.complete(hub)
      let before = try person.standing()
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .changes else { return }
        response.change(ChangesPage.self) { $0.records[2].id = $0.records[0].id }
      }
      await expect(.badAnswer) { try await person.pass(replayFromStart: true) }
      #expect(person.app.batches.isEmpty)
      var after = try person.standing()
      after.scan = before.scan
      #expect(after == before)
    }
  }

  @Test("across the pages of a leg the newest wins, and the app gets the record once")
  func newestOfALeg() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      _ = try await Person.withRecords(hub, ids(1...6))
      let person = try await Self.complete(hub)
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.query("after") == "4", request.query("until") != nil else { return }
        response.change(ChangesPage.self) { page in
          page.records[0].id = ids(1...1)[0]
          page.records[0].payload = Data("newest".utf8)
        }
      }
      try await person.replay()
      let ones = person.app.changes.filter { $0.record == ids(1...1)[0] }
      #expect(ones.map(\.version) == [5] && ones.first?.payload == Data("newest".utf8))
    }
  }

  @Test("delivery begins when the leg is staged whole, from a scratch in the area's directory")
  func staged() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      _ = try await Person.withRecords(hub, ids(1...6))
      let person = try await Self.complete(hub)
      let scratch = person.profile.area.directory + "/scratch"
      let events = Log<String>()
      person.device.wire.after { _, request, _ throws(TransportError) in
        if request.call == .changes { events.add("page") }
      }
      try await person.profile.synchronize(account: person.account, replayFromStart: true) {
        batch in
        try person.app.save(batch)
        events.add("batch")
        #expect(FileManager.default.fileExists(atPath: scratch))
      }
      #expect(events.entries == ["page", "page", "page", "batch", "page"])
      #expect(!FileManager.default.fileExists(atPath: scratch))
    }
  }

  @Test("a scratch that another pass has left is deleted, not read")
  func foreignScratch() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ids(1...3))
      let person = try await Self.complete(hub)
      let scratch = person.profile.area.directory + "/scratch"
      try FileManager.default.createDirectory(
        atPath: scratch, withIntermediateDirectories: true)
      try Data("not what LMDB wrote".utf8).write(to: URL(filePath: scratch + "/data.mdb"))
      try await person.pass()
      #expect(!FileManager.default.fileExists(atPath: scratch))
      try FileManager.default.createDirectory(
        atPath: scratch, withIntermediateDirectories: true)
      try Data("not what LMDB wrote".utf8).write(to: URL(filePath: scratch + "/data.mdb"))
      try await person.replay()
      #expect(person.app.changes.map(\.record) == ids(1...3))
    }
  }

  @Test("the tombstones that metadata knows and that it did not bring are delivered, once")
  func tombstones() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let other = try await Person.withRecords(hub, ids(1...8))
      try await other.delete(ids(2...3))
      try await other.delete(ids(5...5))
      try await other.profile.synchronize(account: other.account)
      let person = try await Self.complete(hub)
      let rows = person.app.rows
      // Still at the hub, they come from there; purged, they come from the metadata.
      for purged in [false, true] {
        if purged { try await hub.server.purgeTombstones(of: person.account.id) }
        person.app.restore(
          rows: rows.merging([ids(2...2)[0]: AppStore.Row(version: 2, text: "first")]) { $1 },
          position: person.app.position)
        try await person.replay(at: person.app.position)
        #expect(person.app.changes.map(\.record).sorted() == ids(1...8))
        #expect(
          person.app.changes.filter(\.isDeleted).map(\.record).sorted()
            == ids(2...3) + ids(5...5))
        #expect(person.app.rows == rows)
      }
      #expect(person.app.changes.suffix(3).allSatisfy { $0.isDeleted && !$0.isInferred })
    }
  }

  @Test("the last leg raises the cursor to until, never below where it was")
  func raisesCursor() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ids(1...3))
      let person = try await Self.complete(hub)
      try await other.send(ids(4...6), "later")
      // The pull that follows the replay fails: the cursor is where the replay ended.
      person.device.wire.before { _, request throws(TransportError) in
        request.call == .changes && request.query("until") == nil ? .made(503) : nil
      }
      await expect(.hubUnavailable) { try await person.pass(replayFromStart: true) }
      #expect(try person.profile.cursor()?.sequence == 6)
    }
  }

  @Test("managed mode has the same records after a replay, pending edits kept")
  func managed() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Person.withRecords(hub, ids(1...5))
      try await person.delete(ids(5...5))
      _ = try await person.makeConflict()
      let before = try person.profile.records()
      let report = try await person.profile.synchronize(
        account: person.account, replayFromStart: true)
      #expect(report.delivered == 6)
      #expect(try person.profile.records() == before)
    }
  }
}

@Suite("Replay: legs of 100 pages")
struct ReplayLegTests {
  /// 205 pages of 5 records: legs of 100, 100 and 5 pages.
  private static func run(
    _ limits: StoreLimits = StoreLimits(), _ count: Int = 1_025,
    _ body: (TestHub, Person) async throws -> Void
  ) async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ids(1...count))
      let person = try await Device(hub, keeping: .app, limits: limits).signIn()
      try await person.pass()
      try await hub.restart(HubLimits(pullRecords: 5))
      person.app.forgetBatches()
      person.device.wire.clear()
      try await body(hub, person)
    }
  }

  @Test("a leg ends at 100 pages; continuations lead to the end, and may be stored meanwhile")
  func legs() async throws {
    try await Self.run { _, person in
      let cursor = try person.profile.cursor()
      var report = try await person.pass(replayFromStart: true)
      #expect(report.pages == 100 && report.delivered == 500 && !report.isComplete)
      var continuation = try #require(report.continuation)
      #expect(continuation.place == 500 && continuation.until == 1_025)
      let stored = try JSONEncoder().encode(continuation)
      continuation = try JSONDecoder().decode(ReplayContinuation.self, from: stored)
      report = try await person.leg(continuation)
      #expect(report.pages == 100 && report.continuation?.place == 1_000)
      report = try await person.leg(try #require(report.continuation))
      // Five pages, and the pull from until.
      #expect(report.pages == 6 && report.isComplete)
      #expect(person.app.changes.map(\.record) == ids(1...1_025))
      #expect(try person.profile.cursor() == cursor)
      // It is over.
      await expect(.continuationExpired) { _ = try await person.leg(continuation) }
    }
  }

  @Test("replayFromStart: true always begins again, and ends the continuations before it")
  func beginsAgain() async throws {
    try await Self.run(.init(), 505) { _, person in
      let first = try #require(try await person.pass(replayFromStart: true).continuation)
      let second = try #require(try await person.pass(replayFromStart: true).continuation)
      #expect(person.app.changes.map(\.record) == ids(1...500) + ids(1...500))
      await expect(.continuationExpired) { _ = try await person.leg(first) }
      #expect(try await person.leg(second).isComplete)
    }
  }

  @Test("an ordinary pass between two legs goes its own way and leaves the replay where it is")
  func ordinaryBetween() async throws {
    try await Self.run(.init(), 505) { hub, person in
      let continuation = try #require(try await person.pass(replayFromStart: true).continuation)
      _ = try await Person.withRecords(hub, ["between"])
      let report = try await person.pass()
      #expect(report.delivered == 1 && report.pages == 1)
      #expect(try await person.leg(continuation).isComplete)
      #expect(Set(person.app.texts.keys) == Set(ids(1...505) + ["between"]))
    }
  }

  @Test("a leg also ends at its byte limit")
  func byteLimit() async throws {
    var limits = StoreLimits()
    // Ten bytes a record, five records a page: the limit is met by the third page.
    limits.replayLegByteCountMax = 110
    try await Self.run(limits, 40) { _, person in
      let reports = try await person.replay()
      #expect(reports.map(\.delivered) == [15, 15, 10])
      #expect(person.app.changes.map(\.record) == ids(1...40))
    }
  }

  @Test("a leg that was cut off goes on with the same continuation, also in its tail")
  func cutLeg() async throws {
    try await Self.run(.init(), 505) { _, person in
      let continuation = try #require(try await person.pass(replayFromStart: true).continuation)
      person.device.wire.clear()
      person.device.wire.ask(for: "cut-body", at: .changes)
      await expect(.hubUnreachable) { _ = try await person.leg(continuation) }
      // The pages come, and the pull after them fails: only that is left to do.
      person.device.wire.before { _, request throws(TransportError) in
        request.call == .changes && request.query("until") == nil ? .made(503) : nil
      }
      await expect(.hubUnavailable) { _ = try await person.leg(continuation) }
      #expect(person.app.changes.map(\.record) == ids(1...505))
      person.device.wire.clear()
      try await person.pass()
    }
  }
}
