import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("Replay: cancelled, cut off or failing to apply")
struct ReplayInterruptionTests {
  private static func complete(_ hub: TestHub, _ count: Int = 10) async throws -> Person {
    let other = try await Person.withRecords(hub, ids(1...count))
    try await other.send(ids(2...3), "second")
    let person = try await Device(hub, keeping: .app).signIn()
    try await person.pass()
    person.app.forgetBatches()
    person.device.wire.clear()
    return person
  }

  /// What stops a replay at a page.
  enum Stop: CaseIterable, Sendable {
    case cut
    case cancelled
    case unavailable
  }

  @Test(
    "at every page: cursor and metadata stay, and nothing is lost or delivered older later",
    arguments: Stop.allCases)
  func everyPage(stop: Stop) async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Self.complete(hub)
      let rows = person.app.rows
      let cursor = try person.profile.cursor()
      for page in 1...6 {
        let pages = Log<Int>()
        let task = Log<Task<SyncReport, any Error>>()
        let isStarted = Gate()
        person.device.wire.clear()
        person.device.wire.before { _, request throws(TransportError) in
          await isStarted.wait()
          guard request.call == .changes, pages.add(1) == page else { return nil }
          switch stop {
          case .cut: request.headers.append(HeaderField(HubHeader.fault, "cut-body"))
          case .cancelled: task.entries.first?.cancel()
          case .unavailable: return .made(503)
          }
          return nil
        }
        task.add(Task { try await person.pass(replayFromStart: true) })
        isStarted.open()
        let result = await task.entries[0].result
        #expect(throws: (any Error).self) { try result.get() }
        if stop == .cancelled {
          #expect(throws: CancellationError.self) { try result.get() }
        }
        #expect(try person.profile.cursor() == cursor)
        #expect(person.app.rows == rows)
        person.device.wire.clear()
        // The plain pass knows of no replay; the next replay brings all.
        #expect(try await person.pass().delivered == 0)
        person.app.restore(rows: [:], position: person.app.position)
        try await person.replay()
        #expect(person.app.rows == rows)
      }
    }
  }

  @Test("a closure that throws at batch k keeps what was committed before, and no more")
  func closureThrows() async throws {
    try await TestHub.run { hub in
      let person = try await Self.complete(hub, 1_200)
      let rows = person.app.rows
      for k in 1...3 {
        let cursor = try person.profile.cursor()
        person.app.restore(rows: [:], position: person.app.position)
        let batches = Log<Int>()
        await #expect(throws: AppFailure.self) {
          try await person.profile.synchronize(
            account: person.account, replayFromStart: true
          ) { batch in
            if batches.add(batch.count) == k { throw AppFailure() }
            try person.app.save(batch)
          }
        }
        #expect(batches.entries.count == k)
        #expect(try person.profile.cursor() == cursor)
        try await person.replay()
        #expect(person.app.rows == rows)
      }
    }
  }
}

// Contract section 5.7.
@Suite("Replay: the position of an app that is behind")
struct ReplayPositionTests {
  /// An app at position 10 whose file was restored from position 3.
  private static func behind(
    _ hub: TestHub, _ count: Int
  ) async throws -> (Person, [RecordID: AppStore.Row]) {
    let person = try await Device(hub, keeping: .app).signIn()
    try await person.pass()
    let other = try await Device(hub).signIn()
    for number in 1...10 {
      try await other.send(ids(number...number), "first")
      try await person.pass(at: person.app.position)
    }
    if count > 10 { try await other.send(ids(11...count), "first") }
    let rows = person.app.rows
    #expect(person.app.position.number == 10)
    let old = rows.filter { $0.value.version <= 3 }
    person.app.restore(rows: old, position: BatchPosition(3))
    person.device.wire.clear()
    return (person, rows)
  }

  @Test("a replay never throws appStoreBehind; its batches carry what the pass was given")
  func carried() async throws {
    try await TestHub.run { hub in
      let (person, _) = try await Self.behind(hub, 1_100)
      await expect(.appStoreBehind) { try await person.pass(at: person.app.position) }
      try await person.replay(at: person.app.position)
      #expect(person.app.batches.map(\.changes.count) == [500, 500, 100])
      #expect(person.app.batches.map(\.position.number) == [3, 3, 11])
      #expect(try person.profile.area.facts().position == 11)
      #expect(Set(person.app.rows.keys) == Set(ids(1...1_100)))
      try await person.pass(at: person.app.position)
    }
  }

  @Test("cut off before its last batch, the app is still seen to be behind")
  func cutOff() async throws {
    try await TestHub.run { hub in
      let (person, _) = try await Self.behind(hub, 1_100)
      for k in 2...3 {
        let batches = Log<Int>()
        await #expect(throws: AppFailure.self) {
          try await person.profile.synchronize(
            account: person.account, replayFromStart: true, appPosition: person.app.position
          ) { batch in
            if batches.add(1) == k { throw AppFailure() }
            try person.app.save(batch)
          }
        }
        #expect(person.app.position.number == 3)
        #expect(try person.profile.area.facts().position == 10)
        await expect(.appStoreBehind) { try await person.pass(at: person.app.position) }
      }
    }
  }

  @Test("it stays behind over the legs, until the last batch of the last leg")
  func legs() async throws {
    try await TestHub.run { hub in
      let (person, _) = try await Self.behind(hub, 520)
      try await hub.restart(HubLimits(pullRecords: 5))
      let first = try await person.pass(replayFromStart: true, at: person.app.position)
      #expect(person.app.position.number == 3)
      await expect(.appStoreBehind) { try await person.pass(at: person.app.position) }
      // The continuation knows it, also where the app does not say it again.
      let last = try await person.leg(try #require(first.continuation))
      #expect(last.isComplete)
      #expect(person.app.batches.map(\.position.number) == [3, 11])
      try await person.pass(at: person.app.position)
    }
  }

  @Test("the tombstones at its end come before the position is the new one")
  func tombstones() async throws {
    try await TestHub.run { hub in
      let (person, _) = try await Self.behind(hub, 10)
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      try await other.delete(ids(2...2))
      // Behind it, so that the tombstone lies below what is purged.
      try await other.send(ids(11...11), "first")
      // Pulled by the app as it was, so that the metadata knows the tombstone.
      try await person.pass(at: BatchPosition(10))
      try await hub.server.purgeTombstones(of: person.account.id)
      person.app.restore(
        rows: [ids(2...2)[0]: AppStore.Row(version: 2, text: "first")],
        position: BatchPosition(3))
      let batches = Log<Int>()
      await #expect(throws: AppFailure.self) {
        try await person.profile.synchronize(
          account: person.account, replayFromStart: true, appPosition: BatchPosition(3)
        ) { batch in
          if batches.add(1) == 2 { throw AppFailure() }
          try person.app.save(batch)
        }
      }
      #expect(person.app.position.number == 3)
      await expect(.appStoreBehind) { try await person.pass(at: person.app.position) }
      try await person.replay(at: person.app.position)
      #expect(person.app.position.number == 12)
      #expect(person.app.rows[ids(2...2)[0]] == nil)
    }
  }

  @Test("a replay that has nothing for the app takes it along with an empty batch")
  func nothing() async throws {
    try await TestHub.run { hub in
      let (person, rows) = try await Self.behind(hub, 10)
      person.device.wire.ask(for: "older-versions", at: .changes)
      // Everything that comes is older than known.
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      try await other.send(ids(1...10), "again")
      person.app.restore(rows: rows, position: BatchPosition(10))
      person.device.wire.clear()
      try await person.pass(at: BatchPosition(10))
      person.app.restore(rows: rows, position: BatchPosition(3))
      person.device.wire.ask(for: "older-versions", at: .changes)
      try await person.replay(at: person.app.position)
      #expect(person.app.batches.map(\.changes.count) == [0])
      #expect(person.app.position.number == 12)
      person.device.wire.clear()
      try await person.pass(at: person.app.position)
    }
  }
}
