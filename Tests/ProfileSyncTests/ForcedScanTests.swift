import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract section 6: a scan from zero that is an area's first pull, or was forced by the hub.
@Suite("Replay: a forced scan from zero")
struct ForcedScanTests {
  @Test("is stored in the area; any pass goes on with it, also after a restart of the process")
  func stored() async throws {
    try await TestHub.run(HubLimits(pullRecords: 5)) { hub in
      let other = try await Person.withRecords(hub, ids(1...505))
      let directory = try TemporaryDirectory()
      var scan: ScanState?
      do {
        let person = try await Device(hub, keeping: .app, in: directory).signIn()
        // The first leg is accepted, the second one is not.
        let batches = Log<Int>()
        await #expect(throws: AppFailure.self) {
          try await person.profile.synchronize(account: person.account) { batch in
            if batches.add(batch.count) == 2 { throw AppFailure() }
            try person.app.save(batch)
          }
        }
        #expect(batches.entries == [500, 5])
        let facts = try person.profile.area.facts()
        scan = facts.scan
        #expect(scan?.kind == .first && scan?.until == 505 && scan?.place == 500)
        #expect(facts.cursor == nil && !facts.hasFinishedScan)
      }
      try await other.send(ids(1...1) + ids(600...600), "later")
      let person = try await Device(hub, keeping: .app, in: directory).signIn()
      #expect(try person.profile.area.facts().scan == scan)
      try await person.pass()
      let pages = person.device.wire.requests.filter { $0.call == .changes }
      #expect(pages.map { $0.query("after") } == ["500", "505"])
      #expect(pages.map { $0.query("until") } == ["505", nil])
      // Nothing that the first leg brought is taken for deleted.
      #expect(person.app.changes.map(\.record) == ids(501...505) + ids(1...1) + ids(600...600))
      let facts = try person.profile.area.facts()
      #expect(facts.scan == nil && facts.hasFinishedScan && facts.cursor?.sequence == 507)
    }
  }

  @Test("goes on in its tail when only that is left")
  func tail() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ids(1...3))
      let person = try await Device(hub).signIn()
      try await person.write(["mine"], "mine")
      person.device.wire.before { _, request throws(TransportError) in
        request.call == .changes && request.query("until") == nil ? .made(503) : nil
      }
      await expect(.hubUnavailable) {
        try await person.profile.synchronize(account: person.account)
      }
      let facts = try person.profile.area.facts()
      #expect(facts.scan?.phase == .tail && facts.cursor?.sequence == 3)
      // Nothing was sent before the scan was finished.
      #expect(!person.device.wire.calls.contains(.mutations))
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(person.device.wire.calls == [.session, .changes, .mutations, .changes])
      #expect(try person.texts().count == 4)
    }
  }

  /// A device whose cursor lies below what the hub still has tombstones for.
  /// - Returns: it, and the device that deleted records 2 to 4 meanwhile.
  private static func expired(
    _ hub: TestHub, keeping: ProfileRegistry.RecordKeeping, _ count: Int = 6
  ) async throws -> (Person, Person) {
    let other = try await Person.withRecords(hub, ids(1...count))
    let person = try await Device(hub, keeping: keeping).signIn()
    try await person.catchUp()
    person.app.forgetBatches()
    try await other.delete(ids(2...4))
    try await other.send(["behind"], "first")
    try await hub.server.purgeTombstones(of: person.account.id)
    person.device.wire.clear()
    return (person, other)
  }

  @Test("ends with what it did not bring, as deletions marked inferred")
  func inferred() async throws {
    try await TestHub.run { hub in
      let (person, other) = try await Self.expired(hub, keeping: .app)
      try await person.pass(at: person.app.position)
      let deletions = person.app.changes.filter(\.isDeleted)
      #expect(deletions.map(\.record) == ids(2...4))
      #expect(deletions.allSatisfy { $0.isInferred && $0.localEdit == .none })
      #expect(deletions.map(\.version) == [2, 3, 4])
      #expect(try person.app.texts == other.texts())
      #expect(person.app.position == person.app.batches.last?.position)
      // Once: they are known no more.
      person.app.forgetBatches()
      try await person.pass(at: person.app.position)
      #expect(person.app.batches.isEmpty)
    }
  }

  @Test("infers nothing while others write faster than it reads: the next pass ends it")
  func tailGivenUp() async throws {
    try await TestHub.run(HubLimits(pullRecords: 1)) { hub in
      let (person, other) = try await Self.expired(hub, keeping: .app)
      person.device.wire.before { _, request throws(TransportError) in
        guard request.call == .changes, request.query("until") != nil,
          request.query("after") == "0"
        else { return nil }
        // What the legs do not bring any more lies behind a hundred other records.
        do { try await other.send(ids(100...210) + ids(6...6), "second") } catch {
          Issue.record("the other device failed: \(error)")
        }
        return nil
      }
      #expect(try await !person.pass(at: person.app.position).isComplete)
      #expect(try person.profile.area.facts().scan?.phase == .tail)
      #expect(person.app.changes.filter(\.isDeleted).isEmpty)
      person.device.wire.clear()
      #expect(try await person.pass(at: person.app.position).isComplete)
      #expect(try person.profile.area.facts().scan == nil)
      #expect(person.app.changes.filter(\.isDeleted).map(\.record) == ids(2...4))
      #expect(try person.app.texts == other.texts())
    }
  }

  @Test("deletes what it infers where the area keeps the records")
  func inferredInTheArea() async throws {
    try await TestHub.run { hub in
      let (person, other) = try await Self.expired(hub, keeping: .area)
      try await person.profile.synchronize(account: person.account)
      #expect(try person.texts() == other.texts())
    }
  }

  @Test("only flags an inferred deletion where an edit is pending or parked")
  func flagged() async throws {
    try await TestHub.run { hub in
      let (person, _) = try await Self.expired(hub, keeping: .app)
      for id in ids(2...3) {
        try await person.profile.enqueue(
          .put(id, Data("mine".utf8), base: .version(id == ids(2...2)[0] ? 2 : 3)),
          account: person.account)
      }
      try await person.pass()
      let edits = person.app.changes.filter(\.isInferred).map(\.localEdit)
      #expect(edits == [.pending, .pending, .none])
      // Their bases are gone at the hub: the app decides.
      #expect(try person.profile.parked().map(\.record) == ids(2...3))
      #expect(try person.profile.parked().allSatisfy { $0.parked?.reason == .conflict })
    }
  }

  @Test("keeps a waiting edit in the area; given up, the record is gone")
  func keptInTheArea() async throws {
    try await TestHub.run { hub in
      let (person, other) = try await Self.expired(hub, keeping: .area)
      try await person.profile.enqueue(
        .put(ids(2...2)[0], Data("mine".utf8), base: .version(2)), account: person.account)
      try await person.profile.synchronize(account: person.account)
      #expect(try person.texts()[ids(2...2)[0]] == "mine")
      let parked = try #require(try person.profile.parked().first)
      try await person.profile.discard(parked.mutation, account: person.account)
      #expect(try person.texts() == other.texts())
    }
  }

  @Test("never infers a deletion from a record that came older than known")
  func olderIsThere() async throws {
    try await TestHub.run { hub in
      let (person, other) = try await Self.expired(hub, keeping: .area)
      try await other.send(ids(5...6), "second")
      person.device.wire.ask(for: "older-versions", at: .changes)
      try await person.profile.synchronize(account: person.account)
      #expect(Set(try person.texts().keys) == Set(try other.texts().keys))
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account, replayFromStart: true)
      #expect(try person.texts() == other.texts())
    }
  }

  @Test("410 for its own until begins it again")
  func ownUntil() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let (person, other) = try await Self.expired(hub, keeping: .area, 8)
      let pages = Log<Int>()
      person.device.wire.after { _, request, _ throws(TransportError) in
        guard request.call == .changes, pages.add(1) == 1 else { return }
        // While the first page is on its way, more is deleted and purged.
        do {
          try await other.delete(ids(5...5))
          try await other.send(ids(6...7), "second")
          try await hub.server.purgeTombstones(of: person.account.id)
        } catch { Issue.record("the other device failed: \(error)") }
      }
      try await person.profile.synchronize(account: person.account)
      let untils = person.device.wire.requests.compactMap { $0.query("until") }
      #expect(Set(untils).count == 2 && untils.prefix(2) == ["12", "12"])
      #expect(try person.texts() == other.texts())
      #expect(try person.profile.area.facts().scan == nil)
    }
  }

  @Test("410 again after one that was finished stops with an error, and nothing is lost")
  func again() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...3))
      try await person.write(["mine"], "mine")
      person.device.wire.before { _, request throws(TransportError) in
        let isPush = request.call == .mutations
        let isPull = request.call == .changes && request.query("until") == nil
        return isPush || isPull
          ? .made(410, hub: hub.id, account: "alice", code: .cursorExpired) : nil
      }
      let error = await expect(.cursorExpired) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(error?.retryClass == .never)
      #expect(person.device.wire.requests.count < 12)
      #expect(try person.texts().count == 4)
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a captive portal's 410 begins no scan")
  func captivePortal() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...3))
      let before = try person.standing()
      for (hubID, account) in [(nil, nil), (hub.id, nil), (nil, "alice")] as [(UUID?, String?)] {
        person.device.wire.clear()
        person.device.wire.before { _, request throws(TransportError) in
          request.call == .changes
            ? .made(410, hub: hubID, account: account, code: .cursorExpired) : nil
        }
        await expect(.badAnswer) {
          try await person.profile.synchronize(account: person.account)
        }
        #expect(person.device.wire.calls == [.session, .changes])
      }
      #expect(try person.standing() == before)
    }
  }

  @Test("an app that gives up in the middle of inferred deletions gets the rest of them later")
  func interrupted() async throws {
    try await TestHub.run { hub in
      let (person, other) = try await Self.expired(hub, keeping: .app)
      await #expect(throws: AppFailure.self) {
        try await person.profile.synchronize(account: person.account) { batch in
          let changes = try batch.changes(localOwner: person.account.bytes).copies()
          if changes.contains(where: \.isInferred) { throw AppFailure() }
          try person.app.save(batch)
        }
      }
      #expect(try person.profile.area.facts().scan?.phase == .tail)
      try await person.pass()
      #expect(try person.app.texts == other.texts())
    }
  }
}

extension Person {
  /// A pass, whatever the app's way of keeping records is.
  func catchUp(replayFromStart: Bool = false) async throws {
    if device.registry.policy.keepsRecords {
      try await profile.synchronize(account: account, replayFromStart: replayFromStart)
    } else {
      try await pass(replayFromStart: replayFromStart)
    }
  }
}
