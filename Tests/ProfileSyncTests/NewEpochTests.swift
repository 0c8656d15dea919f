import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract sections 5.5 and 6, last bullet.
@Suite("Replay: a new epoch")
struct NewEpochTests {
  @Test("stops the pass with an error of its own; only a replay takes it up")
  func takenUp() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...3))
      try await person.write(["mine"], "mine")
      let before = try person.standing()
      try await hub.server.beginEpoch(person.account.id)
      for _ in 1...2 {
        let error = await expect(.epochChanged) {
          try await person.profile.synchronize(account: person.account)
        }
        #expect(error?.retryClass == .needsTheApp)
      }
      #expect(person.device.wire.calls == [.session, .session])
      #expect(try person.standing() == before)
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account, replayFromStart: true)
      // Pulled first, sent after.
      #expect(
        person.device.wire.calls == [.session, .changes, .changes, .mutations, .changes])
      let cursor = try #require(try person.profile.cursor())
      #expect(cursor.epoch != before.cursor?.epoch && cursor.sequence == 4)
      try await person.profile.synchronize(account: person.account)
    }
  }

  @Test("that a replay has begun to take up is finished by any pass")
  func finishedByPlainPass() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Person.withRecords(hub, ids(1...6))
      try await hub.server.beginEpoch(person.account.id)
      person.device.wire.before { _, request throws(TransportError) in
        request.query("after") == "4" ? .made(503) : nil
      }
      await expect(.hubUnavailable) {
        try await person.profile.synchronize(account: person.account, replayFromStart: true)
      }
      let half = try person.profile.area.facts()
      #expect(half.scan?.kind == .newEpoch && half.cursor?.epoch != half.scan?.epoch)
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      let facts = try person.profile.area.facts()
      #expect(facts.scan == nil && facts.cursor?.epoch == half.scan?.epoch)
    }
  }

  @Test("an epoch once left is never taken up again, not even when the hub forgets its lineage")
  func neverAgain() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...3))
      let left = try #require(try person.profile.cursor()?.epoch)
      for _ in 1...2 {
        try await hub.server.beginEpoch(person.account.id)
        try await person.profile.synchronize(account: person.account, replayFromStart: true)
      }
      // The hub names no lineage for a while; then it is back in the epoch that was left.
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .session else { return }
        response.change(SessionAnswer.self) { $0.lineage = [] }
      }
      try await person.profile.synchronize(account: person.account)
      let before = try person.standing()
      person.device.wire.clear()
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .session else { return }
        response.change(SessionAnswer.self) { answer in
          answer.lineage = []
          answer.epoch = left
        }
      }
      for replay in [false, true] {
        let error = await expect(.epochAlreadyLeft) {
          try await person.profile.synchronize(account: person.account, replayFromStart: replay)
        }
        #expect(error?.retryClass == .never)
      }
      #expect(person.device.wire.calls == [.session, .session])
      #expect(try person.standing() == before)
    }
  }

  @Test("what is known above the fork excludes nothing: the hub's older versions are delivered")
  func excludesNothing() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ids(1...3))
      try await hub.backUp()
      let person = try await Device(hub, keeping: .app).signIn()
      try await other.send(ids(1...2), "lost")
      try await person.pass()
      #expect(person.app.texts[ids(1...1)[0]] == "lost")
      person.app.forgetBatches()
      try await hub.restore()
      await expect(.epochChanged) { try await person.pass() }
      try await person.replay(at: person.app.position)
      #expect(person.app.texts[ids(1...1)[0]] == "first")
      #expect(person.app.changes.map(\.version) == [1, 2, 3])
    }
  }

  @Test("a deletion is inferred only for a record known at or below the fork")
  func inferred() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ids(1...3))
      let person = try await Device(hub, keeping: .app).signIn()
      try await person.pass()
      person.app.forgetBatches()
      // Deleted in the new epoch, and the tombstone purged.
      try await hub.server.beginEpoch(person.account.id)
      try await other.profile.synchronize(account: other.account, replayFromStart: true)
      try await other.delete(ids(2...2))
      try await other.send(["behind"], "first")
      try await hub.server.purgeTombstones(of: person.account.id)
      let reports = try await person.replay()
      #expect(reports.map(\.lostAtHub) == [0])
      #expect(person.app.changes.filter(\.isInferred).map(\.record) == ids(2...2))
      #expect(try person.app.texts == other.texts())
    }
  }

  @Test(
    "an epoch that is missing from the lineage has forkedAt 0: everything is lost, nothing deleted")
  func missingFromLineage() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...3))
      try await hub.server.erase(person.account.id)
      try await hub.server.recreate(person.account.id)
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .session else { return }
        response.change(SessionAnswer.self) { $0.lineage = [] }
      }
      let report = try await person.profile.synchronize(
        account: person.account, replayFromStart: true)
      #expect(report.lostAtHub == 3 && report.delivered == 0)
      #expect(try person.texts().count == 3)
      #expect(try person.profile.lostAtHub() == ids(1...3))
      #expect(try person.profile.acknowledgedButLost().count == 3)
    }
  }

  /// A device that wrote records 3 to 5 after the backup that the hub was restored from.
  private static func lost(
    _ hub: TestHub, _ before: (Person) async throws -> Void = { _ in }
  ) async throws -> Person {
    let person = try await Person.withRecords(hub, ids(1...3))
    try await hub.backUp()
    try await person.send(ids(3...5), "lost")
    try await before(person)
    try await hub.restore()
    person.device.wire.clear()
    try await person.profile.synchronize(account: person.account, replayFromStart: true)
    return person
  }

  @Test("a live record known above the fork is lost at the hub: kept, listed, never deleted")
  func lostAtHub() async throws {
    try await TestHub.run { hub in
      let person = try await Self.lost(hub)
      #expect(try person.profile.lostAtHub() == ids(4...5))
      #expect(try person.texts()[ids(4...4)[0]] == "lost")
      // Passes and replays leave it alone.
      try await person.profile.synchronize(account: person.account)
      try await person.profile.synchronize(account: person.account, replayFromStart: true)
      #expect(try person.texts()[ids(5...5)[0]] == "lost")
      #expect(try person.profile.lostAtHub() == ids(4...5))
    }
  }

  @Test("what was lost is sent again as base 0 if the app says so")
  func sentAgain() async throws {
    try await TestHub.run { hub in
      let person = try await Self.lost(hub)
      // Another device has made one of them anew meanwhile: it is not overwritten.
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      try await other.send(ids(5...5), "theirs")
      try await person.profile.sendAgain(lost: ids(4...5), account: person.account)
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      let sent = try person.device.wire.requests.compactMap { try $0.push }.flatMap(\.mutations)
      #expect(sent.map(\.id) == ids(4...5))
      #expect(sent.allSatisfy { $0.base == .version(0) })
      #expect(try person.profile.lostAtHub().isEmpty)
      #expect(try person.profile.parked().map(\.record) == ids(5...5))
      try await other.profile.synchronize(account: other.account)
      #expect(try other.texts()[ids(4...4)[0]] == "lost")
      #expect(try other.texts()[ids(5...5)[0]] == "theirs")
    }
  }

  @Test("an edit of a lost record goes up as a new one")
  func edited() async throws {
    try await TestHub.run { hub in
      let person = try await Self.lost(hub)
      let record = try #require(try person.profile.record(ids(4...4)[0]))
      try await person.profile.enqueue(
        .put(record.id, Data("edited".utf8), base: record.base), account: person.account)
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(try person.profile.lostAtHub() == ids(5...5))
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      #expect(try other.texts()[ids(4...4)[0]] == "edited")
    }
  }

  @Test("what was acknowledged above the fork is listed, and sent again under the same UUIDs")
  func acknowledgedButLost() async throws {
    try await TestHub.run { hub in
      let person = try await Self.lost(hub)
      let lost = try person.profile.acknowledgedButLost()
      #expect(lost.map(\.entry.record) == ids(3...5))
      try await person.profile.sendAgain(
        acknowledged: lost.map(\.entry.mutation), account: person.account)
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      let sent = try person.device.wire.requests.compactMap { try $0.push }.flatMap(\.mutations)
      #expect(sent.map(\.mutation) == lost.map(\.entry.mutation))
      #expect(try person.profile.acknowledgedButLost().isEmpty)
      #expect(try person.profile.pendingSummary().isEmpty)
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      for id in ids(3...5) { #expect(try other.texts()[id] == "lost") }
    }
  }

  @Test("a mutation based above the fork goes to the resolver as a conflict; firstSent is lowered")
  func outbox() async throws {
    try await TestHub.run { hub in
      let person = try await Self.lost(hub) { person in
        try await person.profile.enqueue(
          [
            .put(ids(1...1)[0], Data("below".utf8), base: .version(1)),
            .put(ids(3...3)[0], Data("above".utf8), base: .version(4)),
            .put(ids(3...3)[0], Data("follower".utf8), base: .version(4)),
            .put("none", Data("none".utf8)),
          ], account: person.account)
        // Sent once, and not answered: the high water then lay above the fork.
        person.device.wire.before { _, request throws(TransportError) in
          request.call == .mutations ? .made(503) : nil
        }
        await expect(.hubUnavailable) {
          try await person.profile.synchronize(account: person.account)
        }
        #expect(try person.profile.outbox().map(\.firstSent) == [6, 6, 6, 6])
      }
      let outbox = try person.profile.outbox()
      #expect(outbox.map(\.record) == ids(3...3) + ids(3...3))
      #expect(outbox.map { $0.parked?.reason } == [.conflict, nil])
      #expect(outbox[0].parked?.code == "epoch_changed")
      #expect(outbox.allSatisfy { $0.firstSent == 3 })
      let sent = try person.device.wire.requests.compactMap { try $0.push }.flatMap(\.mutations)
      #expect(sent.map(\.id) == [ids(1...1)[0], "none"] && sent.allSatisfy { $0.firstSent == 3 })
      #expect(try person.texts()[ids(1...1)[0]] == "below")
    }
  }

  @Test("an edit made while it is taken up, of what only the left history had, is a conflict")
  func editedMeanwhile() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...3))
      try await hub.backUp()
      try await person.send(ids(3...3), "lost")
      try await hub.restore()
      person.device.wire.after { _, request, _ throws(TransportError) in
        guard request.query("until") != nil else { return }
        do {
          try await person.profile.enqueue(
            .put(ids(3...3)[0], Data("edited".utf8), base: .version(4)), account: person.account)
        } catch { Issue.record("the enqueue failed: \(error)") }
      }
      try await person.profile.synchronize(account: person.account, replayFromStart: true)
      let parked = try person.profile.parked()
      #expect(parked.map(\.record) == ids(3...3))
      #expect(parked.first?.parked?.code == "epoch_changed")
    }
  }

  @Test("two epochs in a row: what only the first of them had is no history of the third")
  func twice() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Person.withRecords(hub, ids(1...6))
      try await hub.server.beginEpoch(person.account.id, forkedAt: 5)
      person.device.wire.before { _, request throws(TransportError) in
        request.query("after") == "2" ? .made(503) : nil
      }
      await expect(.hubUnavailable) {
        try await person.profile.synchronize(account: person.account, replayFromStart: true)
      }
      try await hub.server.beginEpoch(person.account.id, forkedAt: 2)
      person.device.wire.clear()
      await expect(.epochChanged) {
        try await person.profile.synchronize(account: person.account)
      }
      try await person.profile.synchronize(account: person.account, replayFromStart: true)
      let facts = try person.profile.area.facts()
      #expect(facts.lineage.map(\.forkedAt) == [2, 2])
      #expect(facts.cursor?.sequence == 6)
    }
  }
}
