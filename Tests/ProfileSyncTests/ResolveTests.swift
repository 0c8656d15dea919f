import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract section 4, "the app decides"; section 6's last bullet.
@Suite("Synchronize: conflicts that a resolver decides")
struct ResolveTests {
  /// A person with an edit of "a" that is based on a version which another device has moved on from.
  private static func inConflict(
    _ hub: TestHub, keeping: ProfileRegistry.RecordKeeping = .area, deletes: Bool = false,
    hubDeletes: Bool = false
  ) async throws -> Person {
    let other = try await Person.withRecords(hub, ["a", "b"])
    let person = try await Device(hub, keeping: keeping).signIn()
    try await person.pass()
    let version = Mutation.Base.version(1)
    if hubDeletes { try await other.delete(["a"]) } else { try await other.write(["a"], "hub's") }
    try await other.profile.synchronize(account: other.account)
    try await person.profile.enqueue(
      deletes ? .delete("a", base: version) : .put("a", Data("local".utf8), base: version),
      account: person.account)
    person.device.wire.clear()
    return person
  }

  private func resolve(
    _ person: Person, _ decide: @escaping (SyncConflict) async throws -> Resolution?
  ) async throws -> SyncReport {
    let resolver = ConflictResolver(decide)
    if person.profile.registry.policy.keepsRecords {
      return try await person.profile.synchronize(account: person.account, resolve: resolver)
    }
    return try await person.profile.synchronize(account: person.account, resolve: resolver) {
      try person.app.save($0)
    }
  }

  private func atHub(_ hub: TestHub) async throws -> [RecordID: String] {
    let reader = try await Device(hub).signIn()
    try await reader.profile.synchronize(account: reader.account)
    return try reader.texts()
  }

  @Test(
    "it sees both sides; what it decides is at the hub when the pass ends",
    arguments: [ProfileRegistry.RecordKeeping.area, .app],
    [Resolution.keepHub, .keepLocal, .merged(Data("both".utf8))])
  func decides(keeping: ProfileRegistry.RecordKeeping, resolution: Resolution) async throws {
    try await TestHub.run { hub in
      let person = try await Self.inConflict(hub, keeping: keeping)
      let asked = Log<SyncConflict>()
      let report = try await resolve(person) { conflict in
        asked.add(conflict)
        return resolution
      }
      let conflict = try #require(asked.entries.first)
      #expect(asked.entries.count == 1)
      #expect(conflict.record == "a" && conflict.reason == .conflict)
      #expect(conflict.local == Data("local".utf8))
      #expect(conflict.base == .version(1))
      #expect(conflict.hub?.version == 3 && conflict.hub?.payload == Data("hub's".utf8))
      #expect(report.resolved == 1 && report.isComplete)
      #expect(try person.profile.pendingSummary().isEmpty)
      let text =
        switch resolution {
        case .keepHub: "hub's"
        case .keepLocal: "local"
        case .merged: "both"
        }
      #expect(try await atHub(hub)["a"] == text)
      #expect(keeping == .area ? try person.texts()["a"] == text : person.app.texts["a"] == text)
    }
  }

  @Test("a delete against an edit, and an edit against a delete, can be decided either way")
  func deletes() async throws {
    for (isLocal, resolution, text) in [
      (true, Resolution.keepLocal, nil), (true, .keepHub, "hub's"), (false, .keepLocal, "local"),
      (false, .keepHub, nil), (true, .merged(Data("both".utf8)), "both"),
    ] as [(Bool, Resolution, String?)] {
      try await TestHub.run { hub in
        let person = try await Self.inConflict(hub, deletes: isLocal, hubDeletes: !isLocal)
        _ = try await resolve(person) { conflict in
          #expect((conflict.local == nil) == isLocal)
          #expect(conflict.hub?.isDeleted == !isLocal)
          return resolution
        }
        #expect(try person.profile.pendingSummary().isEmpty)
        #expect(try await atHub(hub)["a"] == text)
        #expect(try person.texts()["a"] == text)
      }
    }
  }

  @Test("what it leaves is parked, asked about once in a pass, and in the next pass again")
  func leaves() async throws {
    try await TestHub.run { hub in
      let person = try await Self.inConflict(hub)
      try await person.write(["a"], "later")
      let asked = Log<UUID>()
      for pass in 1...2 {
        let report = try await resolve(person) { conflict in
          asked.add(conflict.mutation)
          return nil
        }
        #expect(report.resolved == 0)
        #expect(asked.entries.count == pass)
        // A later one of its record waits with it.
        #expect(try person.profile.outbox().map { $0.parked?.reason } == [.conflict, nil])
      }
      #expect(Set(asked.entries).count == 1)
      // One that was parked in an earlier pass is decided now, and what waits goes with it.
      _ = try await resolve(person) { _ in .keepLocal }
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(try await atHub(hub)["a"] == "later")
    }
  }

  @Test("a payload that the verdict had no room for is asked for")
  func omitted() async throws {
    try await TestHub.run { hub in
      let person = try await Self.inConflict(hub)
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .mutations else { return }
        response.change(PushAnswer.self) { answer in
          for index in answer.results.indices where answer.results[index].current != nil {
            answer.results[index].current?.payload = nil
            answer.results[index].current?.isPayloadOmitted = true
          }
        }
      }
      _ = try await resolve(person) { conflict in
        #expect(conflict.hub?.payload == Data("hub's".utf8))
        return .keepHub
      }
      #expect(person.device.wire.calls.contains(.records))
      #expect(try person.texts()["a"] == "hub's")
    }
  }

  @Test("a conflict that is older than what a pull has brought is decided by what the hub has now")
  func stale() async throws {
    try await TestHub.run { hub in
      let person = try await Self.inConflict(hub)
      _ = try await resolve(person) { _ in nil }
      let parked = try #require(try person.profile.parked().first)
      #expect(parked.parked?.current?.version == 3)
      let other = try await Device(hub).signIn()
      try await other.pass()
      try await other.send(["a"], "newer")
      try await person.profile.synchronize(account: person.account)
      // The verdict is the old one; what a decision is based on is what was seen, and no more.
      let area = person.profile.area
      let epoch = try #require(try area.facts().epoch)
      let asked = Log<SyncConflict>()
      _ = try await resolve(person) { conflict in
        asked.add(conflict)
        return nil
      }
      #expect(asked.entries.map { $0.hub?.version } == [4])
      #expect(asked.entries.map { $0.hub?.payload } == [Data("newer".utf8)])
      let now = try #require(try area.conflicts().first)
      let isSettled = try await area.settle(
        now, .keepLocal, seen: parked.parked?.current, epoch: epoch,
        policy: person.profile.registry.policy, requiring: {})
      #expect(isSettled)
      #expect(try person.profile.outbox().map(\.base) == [.version(3)])
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.parked().map { $0.parked?.current?.version } == [4])
      #expect(try await atHub(hub)["a"] == "newer")
    }
  }

  @Test(
    "a person who decides later than the hub moves on overwrites nothing unseen",
    arguments: [ProfileRegistry.RecordKeeping.area, .app], [true, false])
  func late(keeping: ProfileRegistry.RecordKeeping, hasPulled: Bool) async throws {
    try await TestHub.run { hub in
      let person = try await Self.inConflict(hub, keeping: keeping)
      try await person.pass()
      let seen = try #require(try person.profile.parked().first)
      #expect(seen.parked?.current?.version == 3)
      let other = try await Device(hub).signIn()
      try await other.pass()
      try await other.send(["a"], "newer")
      func decide(_ entry: OutboxEntry) async throws {
        try await person.profile.resolve(
          entry.mutation, seen: entry.parked?.current?.version, account: person.account,
          .keepLocal)
      }
      if hasPulled {
        try await person.pass()
        await expect(.decidedOnAnotherVersion) { try await decide(seen) }
      } else {
        // Only the hub knows: there it conflicts again.
        try await decide(seen)
        try await person.pass()
      }
      #expect(try await atHub(hub)["a"] == "newer")
      let shown = try #require(try person.profile.parked().first)
      #expect(shown.parked?.current?.version == 4)
      // An app with a store of its own was handed that version.
      if keeping == .area || !hasPulled {
        #expect(shown.parked?.current?.payload == Data("newer".utf8))
      } else {
        #expect(shown.parked?.current?.isPayloadOmitted == true)
      }
      try await decide(shown)
      try await person.pass()
      #expect(try await atHub(hub)["a"] == "local")
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("others who write faster than it decides do not keep the pass for ever")
  func bounded() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub).signIn()
      try await person.pass()
      try await other.send(["a"], "hub's 0")
      try await person.profile.enqueue(
        .put("a", Data("local".utf8), base: .version(1)), account: person.account)
      let asked = Log<UInt64?>()
      _ = try await resolve(person) { conflict in
        let time = asked.add(conflict.hub?.version)
        try await other.send(["a"], "hub's \(time)")
        return .keepLocal
      }
      #expect(asked.entries == [2, 3, 4])
      // The last decision was sent, in vain; nothing is lost, and the next pass asks again.
      #expect(try person.profile.parked().map { $0.parked?.reason } == [.conflict])
      _ = try await resolve(person) { _ in .keepLocal }
      #expect(try await atHub(hub)["a"] == "local")
    }
  }

  @Test("what it throws ends the pass as it is; what it decided before stays decided")
  func throwing() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["a", "b"])
      let person = try await Device(hub).signIn()
      try await person.pass()
      try await other.send(["a", "b"], "hub's")
      for (record, version) in [("a", 1), ("b", 2)] as [(RecordID, UInt64)] {
        try await person.profile.enqueue(
          .put(record, Data("local".utf8), base: .version(version)), account: person.account)
      }
      await #expect(throws: AppFailure.self) {
        _ = try await resolve(person) { conflict in
          if conflict.record == "b" { throw AppFailure() }
          return .keepLocal
        }
      }
      #expect(try person.profile.outbox().map { $0.parked?.reason } == [nil, .conflict])
      _ = try await resolve(person) { _ in .keepHub }
      #expect(try await atHub(hub) == ["a": "local", "b": "hub's"])
    }
  }

  @Test("no pass runs inside it, enqueue works, and what it enqueues waits for the next push")
  func inside() async throws {
    try await TestHub.run { hub in
      let person = try await Self.inConflict(hub)
      _ = try await resolve(person) { conflict in
        await expect(.insideApplyClosure) {
          try await person.profile.synchronize(account: person.account)
        }
        await withTaskGroup { group in
          group.addTask {
            await expect(.insideApplyClosure) {
              try await person.profile.synchronize(account: person.account)
            }
          }
        }
        try await person.write(["new"], "new")
        // The app may decide by itself meanwhile: then its decision counts.
        try await person.profile.resolve(
          conflict.mutation, seen: conflict.hub?.version, account: person.account,
          .merged(Data("by hand".utf8)))
        return .keepHub
      }
      try await person.profile.synchronize(account: person.account)
      #expect(try await atHub(hub)["a"] == "by hand")
      #expect(try await atHub(hub)["new"] == "new")
    }
  }

  @Test("a session that changes while it decides ends the pass, and nothing is decided")
  func session() async throws {
    try await TestHub.run { hub in
      let person = try await Self.inConflict(hub)
      await expect(.sessionChanged) {
        _ = try await resolve(person) { _ in
          person.device.session.signOut()
          return .keepHub
        }
      }
      _ = try person.device.session.signIn(person.account, token: hub.token(for: "alice"))
      #expect(try person.profile.parked().count == 1)
      #expect(try person.texts()["a"] == "local")
    }
  }

  @Test("a conflict that a new epoch makes goes to it, with what the hub has now")
  func newEpoch() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a", "b"])
      try await hub.backUp()
      try await person.send(["a", "c"], "lost")
      try await hub.restore()
      // Based on versions that only the lost history had.
      for record in ["a", "c"] as [RecordID] {
        let known = try #require(try person.profile.record(record))
        try await person.profile.enqueue(
          .put(record, Data("edit".utf8), base: known.base), account: person.account)
      }
      let asked = Log<SyncConflict>()
      let resolver = ConflictResolver { conflict in
        asked.add(conflict)
        return .keepLocal
      }
      await expect(.epochChanged) {
        try await person.profile.synchronize(account: person.account, resolve: resolver)
      }
      try await person.profile.synchronize(
        account: person.account, replayFromStart: true, resolve: resolver)
      #expect(asked.entries.map(\.record) == ["a", "c"])
      #expect(asked.entries.map { $0.hub?.payload } == [Data("first".utf8), nil])
      #expect(asked.entries.allSatisfy { $0.base == .mustNotExist })
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(try await atHub(hub) == ["a": "edit", "b": "first", "c": "edit"])
    }
  }

  @Test("a main-actor app's resolver runs on the main actor") @MainActor
  func mainActor() async throws {
    try await TestHub.run { hub in
      let person = try await Self.inConflict(hub)
      var count = 0
      let resolver = ConflictResolver { _ in
        MainActor.assertIsolated()
        count += 1
        return .keepLocal
      }
      try await person.profile.synchronize(account: person.account, resolve: resolver)
      #expect(count == 1)
    }
  }
}
