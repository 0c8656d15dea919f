import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

/// A batch goes while the one before it is settled: what may go, and what becomes of both when
/// something happens in between.
@Suite("Synchronize: a batch that goes while the last one is settled")
struct PushAheadTests {
  /// Somebody with mutations that go in three batches of five.
  private func person(
    _ hub: TestHub, _ records: [RecordID] = ids(1...15)
  ) async throws -> Person {
    let person = try await Device(hub).signIn()
    try await person.send(["a"], "first")
    for record in records { try await person.write([record], "mine") }
    person.device.wire.clear()
    return person
  }

  private static func run(_ body: @Sendable (TestHub) async throws -> Void) async throws {
    try await TestHub.run(HubLimits(pushMutations: 5), body)
  }

  /// Lets something happen in the commit that settles the first batch, once the second is on its way, or
  /// a later one, for which it waits.
  /// - Returns: whether it was on its way by then.
  private func onSettlingFirst(
    _ person: Person, untilRequest last: Int = 3,
    _ happens: @escaping @Sendable () throws -> Void = {}
  ) -> Log<Bool> {
    let isOut = DispatchSemaphore(value: 0)
    let wasAhead = Log<Bool>()
    let commits = Log<Bool>()
    person.profile.area.onCommit.withLock { hook in
      hook = { step in
        // The first commit only remembers.
        guard step == .commits, commits.add(true) == 2 else { return }
        wasAhead.add(isOut.wait(timeout: .now() + .seconds(20)) == .success)
        try happens()
      }
    }
    person.device.wire.before { number, request throws(TransportError) in
      if number == last, request.call == .mutations { isOut.signal() }
      return nil
    }
    return wasAhead
  }

  private func pushes(_ person: Person) throws -> [PushRequest] {
    try person.device.wire.requests.compactMap { try $0.push }
  }

  /// What the hub has of an account, as a device finds it that has nothing yet.
  private static func records(_ hub: TestHub, of name: String = "alice") async throws -> [Record] {
    let other = try await Device(hub).signIn(name)
    try await other.pass()
    return try other.profile.records()
  }

  /// The newest version that the hub has given alice.
  private static func newest(_ hub: TestHub) async throws -> UInt64? {
    try await records(hub).compactMap(\.version).max()
  }

  @Test("the next batch is on its way before the last one is settled")
  func ahead() async throws {
    try await Self.run { hub in
      let person = try await person(hub)
      let wasAhead = onSettlingFirst(person)
      let report = try await person.profile.synchronize(account: person.account)
      person.profile.area.onCommit.withLock { $0 = nil }
      #expect(wasAhead.entries == [true])
      #expect(report.acknowledged == 15 && report.sent == 15)
      #expect(try pushes(person).map(\.mutations.count) == [5, 5, 5])
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(try await Self.newest(hub) == 16)
    }
  }

  @Test("batches that are answered while one is settled share the next commit")
  func together() async throws {
    try await Self.run { hub in
      let person = try await person(hub, ids(1...25))
      let commits = Log<Bool>()
      let wasAhead = onSettlingFirst(person, untilRequest: 5)
      let hook = person.profile.area.onCommit.withLock { $0 }
      person.profile.area.onCommit.withLock {
        $0 = { step in
          if step == .committed { commits.add(true) }
          try hook?(step)
        }
      }
      let report = try await person.profile.synchronize(account: person.account)
      person.profile.area.onCommit.withLock { $0 = nil }
      #expect(wasAhead.entries == [true])
      #expect(report.acknowledged == 25)
      // One before the first, one for the first, three for the others at most, and the page.
      #expect((4...6).contains(commits.entries.count))
      #expect(try await Self.newest(hub) == 26)
    }
  }

  @Test("a batch that could not be settled is sent again, and the one that went ahead too")
  func unsettled() async throws {
    struct Full: Error {}
    try await Self.run { hub in
      let person = try await person(hub)
      let wasAhead = onSettlingFirst(person) { throw Full() }
      await #expect(throws: (any Error).self) {
        try await person.profile.synchronize(account: person.account)
      }
      person.profile.area.onCommit.withLock { $0 = nil }
      #expect(wasAhead.entries == [true])
      #expect(try person.profile.pendingSummary().count == 15)
      let sent = try pushes(person).flatMap(\.mutations).map(\.mutation)
      #expect([10, 15].contains(sent.count))
      #expect(try await Self.newest(hub) == UInt64(sent.count) + 1)
      person.device.wire.clear()
      try await person.pass()
      // Nothing is doubled by it.
      let again = try pushes(person).flatMap(\.mutations).map(\.mutation)
      #expect(again.count == 15 && Array(again.prefix(sent.count)) == sent)
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(try await Self.newest(hub) == 16)
    }
  }

  @Test("what is being settled is settled, although the batch that went ahead does not get through")
  func unreachable() async throws {
    try await Self.run { hub in
      let person = try await person(hub)
      person.device.wire.before { number, _ throws(TransportError) in
        if number == 3 { throw TransportError(code: .unreachable, description: "offline") }
        return nil
      }
      await expect(.hubUnreachable) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(try person.profile.outbox().map(\.record) == ids(6...15))
    }
  }

  @Test("a pass that is cancelled leaves no settling behind that it does not wait for")
  func cancelled() async throws {
    try await Self.run { hub in
      let person = try await person(hub)
      let task = Mutex<Task<Void, any Error>?>(nil)
      let ended = Log<Bool>()
      let wasEnded = Log<Bool>()
      _ = onSettlingFirst(person) {
        task.withLock { $0?.cancel() }
        // Time enough for a pass that would not wait.
        Thread.sleep(forTimeInterval: 0.05)
        wasEnded.add(!ended.entries.isEmpty)
      }
      let gate = Gate()
      let pass = Task {
        await gate.wait()
        defer { ended.add(true) }
        try await person.profile.synchronize(account: person.account)
      }
      task.withLock { $0 = pass }
      gate.open()
      await #expect(throws: CancellationError.self) { try await pass.value }
      person.profile.area.onCommit.withLock { $0 = nil }
      #expect(wasEnded.entries == [false])
      // The second batch was answered, or it was not.
      #expect([ids(6...15), ids(11...15)].contains(try person.profile.outbox().map(\.record)))
      try await person.pass()
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(try await Self.newest(hub) == 16)
    }
  }

  @Test("nothing goes ahead for somebody who has gone; what the hub has taken is settled")
  func signedOut() async throws {
    try await Self.run { hub in
      let person = try await person(hub)
      let bob = try hub.token(for: "bob")
      let other = try await person.device.registry.verify(token: bob, clientName: "test")
      person.device.wire.clear()
      person.device.wire.after { number, _, _ throws(TransportError) in
        // On the way back with the verdicts on the second batch.
        if number == 3 { person.device.session.signIn(other, token: bob) }
      }
      await expect(.sessionChanged) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(try pushes(person).map(\.mutations.count) == [5, 5])
      person.device.session.signIn(person.account, token: try hub.token(for: "alice"))
      #expect(try person.profile.outbox().map(\.record) == ids(6...15))
      person.device.wire.clear()
      try await person.pass()
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(try await Self.newest(hub) == 16)
      #expect(try await Self.records(hub, of: "bob").isEmpty)
    }
  }

  @Test(
    "later mutations of a record that is parked or deferred do not go ahead",
    arguments: ["conflict", "rejected", "deferred"])
  func heldBack(_ verdict: String) async throws {
    try await Self.run { hub in
      // The first record's second mutation lies in the second batch, the third in the third.
      let records = ids(1...5) + ids(1...1) + ids(6...9) + ids(1...1) + ids(10...13)
      let person = try await person(hub, records)
      person.device.wire.before { number, request throws(TransportError) in
        if number == 2 {
          request.headers.append(HeaderField(HubHeader.fault, "verdicts=\(verdict)"))
        }
        return nil
      }
      let report = try await person.profile.synchronize(account: person.account)
      let sent = try pushes(person).map { $0.mutations.map(\.id) }
      #expect(sent.flatMap { $0 } == ids(1...13))
      #expect(try person.profile.outbox().map(\.record) == ids(1...1) + ids(1...1) + ids(1...1))
      #expect(report.acknowledged == 12)
      #expect(report.parked == (verdict == "deferred" ? 0 : 1))
    }
  }

  @Test("one that went ahead and is based on one of the batch before it is applied")
  func basedOnLast() async throws {
    try await Self.run { hub in
      let person = try await Device(hub).signIn()
      try await person.send(["r"], "first")
      let version = try #require(try person.profile.record("r")?.version)
      for number in 1...15 {
        try await person.profile.enqueue(
          .put("r", Data("\(number)".utf8), base: .version(version)), account: person.account)
      }
      person.device.wire.clear()
      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.acknowledged == 15 && report.parked == 0)
      #expect(try await Self.records(hub).map(\.payload) == [Data("15".utf8)])
      let bases = try pushes(person).flatMap(\.mutations).map(\.base)
      #expect(bases.first == .version(version))
      #expect(bases.dropFirst().allSatisfy { if case .mutation = $0 { true } else { false } })
    }
  }

  // What a person decides while a push runs.

  /// Once, when a push is on its way to the hub for the first time.
  private func onFirstPush(
    _ person: Person, _ happens: @escaping @Sendable () async throws -> Void
  ) {
    let pushes = Log<Bool>()
    person.device.wire.before { _, request throws(TransportError) in
      guard request.call == .mutations, pushes.add(true) == 1 else { return nil }
      do { try await happens() } catch { Issue.record("it did not happen: \(error)") }
      return nil
    }
  }

  private func payloads(_ person: Person, of record: RecordID) throws -> [Data?] {
    try pushes(person).flatMap(\.mutations).filter { $0.id == record }.map(\.payload)
  }

  @Test("one that is sent again from a place that the push has passed goes before its followers")
  func retriedBehind() async throws {
    try await Self.run { hub in
      let person = try await person(hub, ["r"])
      person.device.wire.ask(for: "verdicts=conflict", at: .mutations)
      try await person.pass()
      let parked = try #require(try person.profile.parked().first?.mutation)
      // So many that its follower is not looked up before the first batch goes.
      try await person.write(ids(1...30), "other")
      try await person.write(["r"], "follower")
      person.device.wire.clear()
      onFirstPush(person) { try await person.profile.retry(parked, account: person.account) }
      try await person.pass()
      #expect(try payloads(person, of: "r") == [Data("mine".utf8), Data("follower".utf8)])
      #expect(try person.profile.pendingSummary().isEmpty)
      let there = try await Self.records(hub).first { $0.id == "r" }
      #expect(there?.payload == Data("follower".utf8))
    }
  }

  @Test("one that was looked up ahead, and that an edit has taken the place of, does not go")
  func replacedAhead() async throws {
    try await Self.run { hub in
      let person = try await person(hub, ids(1...10) + ["r"] + ids(11...14) + ["r"])
      let profile = person.profile
      let last = try #require(try profile.outbox().last)
      let epoch = try #require(try profile.cursor()?.epoch)
      try await profile.area.settle(
        [(last.order, last.mutation, .parked(Parked(reason: .adopted)))], epoch: epoch,
        highWater: 0, policy: person.device.registry.policy)
      onFirstPush(person) {
        try await profile.enqueue(
          .put("r", Data("instead".utf8), replacing: last.mutation), account: person.account)
      }
      try await person.pass()
      #expect(try payloads(person, of: "r") == [])
      #expect(try profile.outbox().map(\.record) == ["r"])
      try await person.pass()
      #expect(try payloads(person, of: "r") == [Data("instead".utf8)])
      #expect(try profile.pendingSummary().isEmpty)
    }
  }

  @Test("a held one that is discarded while another held one is tried does not go")
  func discardedHeld() async throws {
    try await Self.run { hub in
      let person = try await person(hub, ids(1...2))
      let profile = person.profile
      let entries = try profile.outbox()
      for entry in entries {
        #expect(
          try await profile.area.hold(
            entry.mutation, at: entry.order, now: Date(timeIntervalSinceNow: -600), chance: 0))
      }
      onFirstPush(person) {
        try await profile.discard(entries[1].mutation, account: person.account)
      }
      try await person.pass()
      #expect(try pushes(person).flatMap(\.mutations).map(\.id) == ids(1...1))
      #expect(try profile.pendingSummary().isEmpty)
    }
  }
}
