import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

extension Person {
  /// Parks an edit in conflict with one of another device.
  /// - Returns: the parked mutation.
  func makeConflict(_ record: RecordID = "contested") async throws -> UUID {
    try await profile.enqueue(.put(record, Data("first".utf8)), account: account)
    try await catchUp()
    let other = try await Device(device.hub).signIn(account.id.text)
    try await other.profile.synchronize(account: other.account)
    try await other.send([record], "theirs")
    let version = try profile.cursor()?.sequence ?? 1
    let receipt = try await profile.enqueue(
      .put(record, Data("mine".utf8), base: .version(version)), account: account)
    try await catchUp()
    return receipt.mutation
  }
}

// Contract sections 5.4 to 5.8.
@Suite("Synchronize: the batches that an app saves")
struct SynchronizeBatchesTests {
  @Test("changes(localOwner:) throws ownedByAnotherAccount before giving any")
  func localOwner() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub, keeping: .app).signIn("alice")
      let bob = try await Device(hub).signIn("bob")
      for owner in [bob.account.bytes, Data(), person.account.bytes + [0]] {
        await expect(StoreError.Code.ownedByAnotherAccount) {
          try await person.profile.synchronize(account: person.account) { batch in
            _ = try batch.changes(localOwner: owner)
          }
        }
      }
      #expect(try person.profile.area.facts().position == 0)
      try await person.pass()
      #expect(person.app.texts == ["a": "first"])
    }
  }

  @Test("metadata and cursor advance only after the closure returned")
  func onlyAfter() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      try await person.pass()
      _ = try await Person.withRecords(hub, ids(1...6))
      let seen = Log<(cursor: UInt64?, position: UInt64)>()
      try await person.profile.synchronize(account: person.account) { batch in
        try person.app.save(batch)
        let facts = try person.profile.area.facts()
        seen.add((facts.cursor?.sequence, facts.position))
      }
      #expect(seen.entries.map(\.cursor) == [0, 2, 4])
      #expect(seen.entries.map(\.position) == [0, 1, 2])
      #expect(try person.profile.cursor()?.sequence == 6)
    }
  }

  @Test(
    "a closure that throws at record k stops the pass, and the same batch is delivered again",
    arguments: [1, 2, 3, 4, 6])
  func throwing(k: Int) async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      try await person.pass()
      _ = try await Person.withRecords(hub, ids(1...6))
      let refused = Log<[Change]>()
      for attempt in 1...2 {
        let before = person.app.rows.count
        await #expect(throws: AppFailure.self) {
          try await person.profile.synchronize(account: person.account) { batch in
            let changes = try batch.changes(localOwner: person.account.bytes).copies()
            if changes.contains(where: { $0.record == ids(k...k)[0] }) {
              refused.add(changes)
              throw AppFailure()
            }
            try person.app.save(batch)
          }
        }
        // Whole batches before it were committed, nothing of this one.
        let committed = UInt64((k - 1) / 2 * 2)
        #expect(try person.profile.cursor()?.sequence == committed)
        #expect(try person.profile.area.facts().position == committed / 2)
        #expect(attempt == 1 || person.app.rows.count == before)
      }
      #expect(refused.entries[0] == refused.entries[1])
      try await person.pass()
      #expect(person.app.changes.map(\.record) == ids(1...6))
    }
  }

  @Test("positions grow by one, are stored, and a pass given an older one throws appStoreBehind")
  func positions() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      try await person.pass(at: .start)
      _ = try await Person.withRecords(hub, ids(1...6))
      try await person.pass(at: person.app.position)
      #expect(person.app.batches.map(\.position.number) == [1, 2, 3])
      // A pass without changes is no step.
      try await person.pass(at: person.app.position)
      #expect(person.app.position.number == 3)
      person.device.wire.clear()
      for old in [0, 2] as [UInt64] {
        let error = await expect(.appStoreBehind) { try await person.pass(at: .init(old)) }
        #expect(error?.retryClass == .needsTheApp)
      }
      #expect(person.device.wire.calls.isEmpty)
      // Newer than the area's (the area came from a backup): goes on from there.
      _ = try await Person.withRecords(hub, ["later"])
      try await person.pass(at: .init(9))
      #expect(person.app.position.number == 10)
    }
  }

  @Test("a change says whether a local edit is pending or parked")
  func localEdits() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      _ = try await person.makeConflict("parked")
      let other = try await Person.withRecords(hub, ["free"])
      try await other.send(["parked", "pending"], "theirs")
      person.app.forgetBatches()
      // The push is held back, so that the edit still waits when the page comes.
      person.device.wire.ask(for: "verdicts=deferred", at: .mutations)
      try await person.write(["pending"], "mine")
      try await person.pass()
      let edits = Dictionary(
        uniqueKeysWithValues: person.app.changes.map { ($0.record, $0.localEdit) })
      #expect(edits == ["parked": .parked, "pending": .pending, "free": .none])
    }
  }

  @Test("isPending refuses an ID beyond its limit as such", arguments: [0, 401, 70_000])
  func isPendingOfLongID(_ count: Int) async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub, keeping: .app).signIn()
      await expect(StoreError.Code.badRecordID) {
        try await person.profile.synchronize(account: person.account) { batch in
          _ = try batch.isPending(RecordID(String(repeating: "x", count: count)))
        }
      }
    }
  }

  @Test("a batch of a scan has 16 MiB at most, whatever a leg holds")
  func bytes() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["first"])
      try await other.profile.enqueue(
        ids(1...18).map { .put($0, Data(count: 1 << 20)) }, account: other.account)
      try await other.profile.synchronize(account: other.account)
      let person = try await Device(hub, keeping: .app).signIn()
      let sizes = Log<[Int]>()
      try await person.profile.synchronize(account: person.account) { batch in
        let changes = try batch.changes(localOwner: person.account.bytes).copies()
        sizes.add(changes.map { $0.payload?.count ?? 0 })
      }
      #expect(sizes.entries.map { $0.reduce(0, +) }.allSatisfy { $0 <= 16 << 20 })
      #expect(sizes.entries.map(\.count).reduce(0, +) == 19)
      #expect(sizes.entries.count == 2)
    }
  }

  @Test("isPending reads at the moment of asking, within the app's own saving transaction")
  func isPending() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub, keeping: .app).signIn()
      let answers = Log<[Bool]>()
      try await person.profile.synchronize(account: person.account) { batch in
        guard answers.entries.isEmpty else { return }
        let change = try batch.changes(localOwner: person.account.bytes)[0].copy()
        let before = try batch.isPending("a")
        try await person.write(["a"], "mine")
        // The change was made before that edit; the question is asked now.
        answers.add([before, try batch.isPending("a"), change.localEdit != .none])
      }
      #expect(answers.entries == [[false, true, false]])
    }
  }

  @Test("a discarded mutation goes only after the hub's version was handed over")
  func discards() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      let mutation = try await person.makeConflict()
      #expect(try person.profile.parked().map(\.mutation) == [mutation])
      // Pulled with the edit parked: the app keeps its own.
      #expect(person.app.changes.last?.localEdit == .parked)
      try await person.profile.discard(mutation, account: person.account)
      person.app.forgetBatches()
      let position = person.app.position.number
      await #expect(throws: AppFailure.self) {
        try await person.profile.synchronize(account: person.account) { _ in throw AppFailure() }
      }
      #expect(try person.profile.pendingSummary().count == 1)
      try await person.pass()
      let batch = try #require(person.app.batches.first)
      #expect(batch.changes.map(\.record) == ["contested"])
      #expect(batch.changes.first?.payload == Data("theirs".utf8))
      #expect(batch.changes.first?.localEdit == LocalEdit.none)
      #expect(batch.position.number == position + 1)
      #expect(try person.profile.area.facts().position == position + 1)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a discarded mutation of a record that the hub does not have is handed over as a deletion")
  func discardedUnknown() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      try await person.pass()
      person.device.wire.ask(for: "verdicts=rejected", at: .mutations)
      try await person.write(["new"], "mine")
      try await person.pass()
      let mutation = try #require(try person.profile.parked().first)
      try await person.profile.discard(mutation.mutation, account: person.account)
      person.device.wire.clear()
      try await person.pass()
      let change = try #require(person.app.changes.last)
      #expect(change.record == "new" && change.isDeleted && change.isInferred)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("followers of a discarded mutation wait for that, and then go on")
  func followers() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      let mutation = try await person.makeConflict()
      try await person.write(["contested"], "follower")
      try await person.profile.discard(mutation, account: person.account)
      try await person.pass()
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(person.app.texts == ["contested": "follower"])
    }
  }

  @MainActor
  private final class Screen {
    var texts: [RecordID: String] = [:]
  }

  @MainActor
  @Test("a main-actor app's closure needs no Sendable and runs on the main actor")
  func mainActor() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub, keeping: .app).signIn()
      let screen = Screen()
      var batchCount = 0
      try await person.profile.synchronize(account: person.account) { batch in
        MainActor.assertIsolated()
        for change in try batch.changes(localOwner: person.account.bytes).copies() {
          screen.texts[change.record] = change.payload.map { String(decoding: $0, as: UTF8.self) }
        }
        batchCount += 1
        await Task.yield()
        MainActor.assertIsolated()
      }
      #expect(screen.texts == ["a": "first"] && batchCount == 1)
    }
  }

  @Test("an app that keeps its records itself cannot forget its closure")
  func closureRequired() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub, keeping: .app).signIn()
      try await person.write(["a"], "first")
      await expect(SyncError.Code.closureRequired) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(person.device.wire.calls.isEmpty)
      #expect(try person.profile.pendingSummary().count == 1)
    }
  }

  @Test("without a way to the hub it says so, and nothing is lost")
  func notConnected() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let registry = try ProfileRegistry(
        directory: person.device.directory.url, session: person.device.session)
      let profile = try await registry.profile(for: person.account)
      await expect(.notConnected) { try await profile.synchronize(account: person.account) }
    }
  }
}

// Contract section 5, last paragraph.
@Suite("Synchronize: records that are kept in the area")
struct ManagedRecordsTests {
  @Test("records, metadata and cursor commit in one transaction, each change exactly once")
  func exactlyOnce() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Device(hub).signIn()
      try await person.profile.synchronize(account: person.account)
      let other = try await Person.withRecords(hub, ids(1...6))
      // Whenever a page comes, some pages before it are there, records and cursor alike.
      let seen = Log<(versions: [UInt64?], cursor: UInt64?)>()
      person.device.wire.after { _, request, _ throws(TransportError) in
        guard request.call == .changes else { return }
        do {
          let standing = try person.standing()
          seen.add((standing.records.compactMap(\.version).sorted(), standing.cursor?.sequence))
        } catch { Issue.record("the area could not be read: \(error)") }
      }
      let report = try await person.profile.synchronize(account: person.account)
      #expect(seen.entries.count == 3)
      for (versions, cursor) in seen.entries {
        #expect([0, 2, 4].contains(cursor))
        #expect(versions == (0..<(cursor ?? 0)).map { $0 + 1 })
      }
      #expect(report.delivered == 6)
      #expect(try await person.profile.synchronize(account: person.account).delivered == 0)
      try await other.delete(ids(2...2))
      try await other.send(ids(3...3), "second")
      try await person.profile.synchronize(account: person.account)
      #expect(try person.texts() == other.texts())
      #expect(try person.texts().count == 5)
    }
  }

  @Test("a download never overwrites a pending or parked edit, and is there after a discard")
  func beside() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let mutation = try await person.makeConflict()
      #expect(try person.texts() == ["contested": "mine"])
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      try await other.send(["contested"], "newest")
      try await person.profile.synchronize(account: person.account)
      #expect(try person.texts() == ["contested": "mine"])
      try await person.profile.discard(mutation, account: person.account)
      #expect(try person.texts() == ["contested": "newest"])
      try await person.profile.synchronize(account: person.account)
      #expect(try person.texts() == ["contested": "newest"])
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a conflict without its payload reads it from the hub before the edit goes")
  func omittedPayload() async throws {
    try await TestHub.run(HubLimits(pullBytes: 1_024)) { hub in
      let person = try await Device(hub).signIn()
      try await person.send(["a", "b"], "first")
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      let large = String(repeating: "x", count: 2_000)
      try await other.send(["a", "b"], large)
      for id in ["a", "b"] as [RecordID] {
        try await person.profile.enqueue(
          .put(id, Data("mine".utf8), base: .version(id == "a" ? 1 : 2)), account: person.account)
      }
      // The pull that follows the push would bring the payloads, too.
      person.device.wire.before { _, request throws(TransportError) in
        request.call == .changes ? .made(503) : nil
      }
      await expect(.hubUnavailable) {
        try await person.profile.synchronize(account: person.account)
      }
      let parked = try person.profile.parked()
      #expect(parked.map { $0.parked?.current?.isPayloadOmitted } == [false, true])
      for entry in parked {
        try await person.profile.discard(entry.mutation, account: person.account)
      }
      #expect(try person.profile.pendingSummary().count == 1)
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(person.device.wire.calls.contains(.records))
      #expect(try person.texts() == ["a": large, "b": large])
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a progress observer is told of sending and receiving")
  func progress() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.profile.synchronize(account: person.account)
      try await person.write(ids(1...5), "first")
      let seen = Log<SyncProgress>()
      try await person.profile.synchronize(
        account: person.account, progress: .init { seen.add($0) })
      #expect(seen.entries.map(\.phase) == [.sending, .receiving])
      #expect(seen.entries.allSatisfy { $0.completed == 5 && $0.total == 5 })
    }
  }
}
