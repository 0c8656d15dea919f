import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Protocol's last table, row "500 for the same first batch in 3 passes".
@Suite("Synchronize: a push on which the hub fails")
struct PushFailingTests {
  /// A hub that answers 500 whenever one of these records is in a push.
  private static func fail(
    _ person: Person, on bad: Set<RecordID>, isFromHub: Bool = true, failsEmpty: Bool = false,
    status: Int = 500, account: String? = "alice"
  ) {
    let hub = person.device.hub.id
    person.device.wire.clear()
    person.device.wire.before { _, request throws(TransportError) in
      do {
        guard let push = try request.push else { return nil }
        let isFailing =
          push.mutations.contains { bad.contains($0.id) }
          || (failsEmpty && push.mutations.isEmpty)
        guard isFailing else { return nil }
        return isFromHub
          ? .made(status, hub: hub, account: account, code: .internal)
          : .made(status, contentType: "text/html")
      } catch {
        Issue.record("a push could not be read: \(error)")
        return nil
      }
    }
  }

  private func passes(_ person: Person, stoppedTimes count: Int) async throws {
    for _ in 0..<count {
      await expect(.hubUnavailable) {
        try await person.profile.synchronize(account: person.account)
      }
    }
  }

  private func sizes(_ person: Person) throws -> [Int] {
    try person.device.wire.requests.compactMap { try $0.push }.map(\.mutations.count)
  }

  @Test("two passes change nothing; in the third the one is found and held, and the others go")
  func held() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.send(["a"], "first")
      try await person.write(ids(1...8), "second")
      try await person.write(ids(3...3), "follower")
      Self.fail(person, on: [ids(3...3)[0]])
      let before = try person.profile.outbox().map(\.mutation)
      try await passes(person, stoppedTimes: 2)
      #expect(try sizes(person) == [9, 9])
      #expect(try person.profile.outbox().map(\.mutation) == before)

      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.acknowledged == 7 && report.held == 1 && report.parked == 0)
      let outbox = try person.profile.outbox()
      #expect(outbox.map(\.record) == ids(3...3) + ids(3...3))
      #expect(outbox.map { $0.held?.attempts } == [1, nil])
      #expect(outbox.allSatisfy { $0.parked == nil })
      // It counts as pending wherever a person is asked, and its edit is shown.
      #expect(try person.profile.pendingSummary().count == 2)
      #expect(try person.profile.pendingSummary().parked == 0)
      #expect(try person.texts()[ids(3...3)[0]] == "follower")
      #expect(try person.profile.nextTryOfHeld() == outbox[0].held?.nextTry)
    }
  }

  @Test("what is held is sent again by itself when its time has come, before what waits with it")
  func again() async throws {
    try await TestHub.run { hub in
      let time = TestTime()
      let person = try await Device(hub, now: { time.now }).signIn()
      try await person.write(ids(1...4) + ids(2...2), "first")
      Self.fail(person, on: [ids(2...2)[0]])
      try await passes(person, stoppedTimes: 2)
      try await person.profile.synchronize(account: person.account)

      // Not before its time.
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(try sizes(person) == [])

      // The hub fails again: later, and alone; others are not kept waiting.
      Self.fail(person, on: [ids(2...2)[0]])
      time.advance(by: 61)
      try await person.write(["new"], "new")
      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.acknowledged == 1 && report.held == 1)
      #expect(try sizes(person) == [1, 1])
      #expect(try person.profile.outbox().map { $0.held?.attempts } == [2, nil])

      // A new process knows of it, too; the hub is well again.
      person.device.wire.clear()
      time.advance(by: 121)
      let last = try await person.profile.synchronize(account: person.account)
      #expect(last.acknowledged == 2)
      #expect(try person.profile.pendingSummary().isEmpty)
      #expect(try person.profile.nextTryOfHeld() == nil)
      let pushed = try person.device.wire.requests.compactMap { try $0.push }
      #expect(pushed.flatMap(\.mutations).map(\.id) == ids(2...2) + ids(2...2))
    }
  }

  @Test("a clock that was set back keeps it no longer than a pause takes")
  func clock() async throws {
    try await TestHub.run { hub in
      let time = TestTime()
      let person = try await Device(hub, now: { time.now }).signIn()
      try await person.write(ids(1...1), "first")
      Self.fail(person, on: [ids(1...1)[0]])
      try await passes(person, stoppedTimes: 2)
      try await person.profile.synchronize(account: person.account)
      person.device.wire.clear()
      time.advance(by: -100_000)
      #expect(try await person.profile.synchronize(account: person.account).acknowledged == 1)
    }
  }

  @Test("the app may give a held one up; what waits with it goes on")
  func discard() async throws {
    for keeping in [ProfileRegistry.RecordKeeping.area, .app] {
      try await TestHub.run { hub in
        let person = try await Device(hub, keeping: keeping).signIn()
        try await person.write(ids(1...1), "poison")
        Self.fail(person, on: [ids(1...1)[0]])
        for _ in 0..<2 { await expect(.hubUnavailable) { try await person.pass() } }
        try await person.pass()
        try await person.write(ids(1...1), "follower")
        let held = try #require(try person.profile.outbox().first)
        #expect(held.held != nil)
        // It may have reached the hub: under another UUID it would go up twice.
        await expect(StoreError.Code.notParked) {
          try await person.profile.retry(held.mutation, account: person.account)
        }
        try await person.profile.discard(held.mutation, account: person.account)
        person.device.wire.clear()
        // Where the app keeps its records, what waits goes with the pass after the hub's version.
        try await person.pass()
        try await person.pass()
        #expect(try person.profile.pendingSummary().isEmpty)
        let pushed = try person.device.wire.requests.compactMap { try $0.push }
        #expect(pushed.flatMap(\.mutations).map(\.payload) == [Data("follower".utf8)])
      }
    }
  }

  @Test("a hub that takes no empty push either fails as a whole: nothing is looked for")
  func hubDown() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.write(ids(1...4), "first")
      Self.fail(person, on: Set(ids(1...4)), failsEmpty: true)
      try await passes(person, stoppedTimes: 50)
      #expect(try person.profile.outbox().allSatisfy { $0.held == nil && $0.parked == nil })
      #expect(Set(try sizes(person)) == [4, 0])
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test(
    "any other 5xx, a 500 of something else, and one that names nobody count no attempt",
    arguments: [(500, false), (502, false), (503, false), (520, false), (598, false), (500, true)])
  func others(status: Int, isFromHub: Bool) async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.write(ids(1...4), "first")
      Self.fail(
        person, on: [ids(2...2)[0]], isFromHub: isFromHub, status: status, account: nil)
      try await passes(person, stoppedTimes: 10)
      #expect(try sizes(person) == Array(repeating: 4, count: 10))
      #expect(try person.profile.outbox().allSatisfy { $0.held == nil && $0.parked == nil })
    }
  }

  @Test(
    "with as many held as there may be, those whose time has come are tried: they may make room",
    arguments: [true, false])
  func full(isPoison: Bool) async throws {
    try await TestHub.run { hub in
      let time = TestTime()
      let person = try await Device(hub, now: { time.now }).signIn()
      let all = ids(1...(PushTrouble.heldCountMax + 1))
      try await person.write(all, "first")
      for (index, entry) in try person.profile.outbox().dropLast().enumerated() {
        let isHeld = try await person.profile.area.hold(
          entry.mutation, at: entry.order, now: time.now.addingTimeInterval(index < 3 ? 0 : 1_000),
          chance: 0)
        #expect(isHeld)
      }
      let last = try #require(all.last)
      Self.fail(person, on: isPoison ? Set([last] + all[..<3]) : [last])
      time.advance(by: 31)
      try await passes(person, stoppedTimes: 2)
      if isPoison {
        try await passes(person, stoppedTimes: 1)
        let outbox = try person.profile.outbox()
        #expect(
          outbox.map { $0.held?.attempts } == [2, 2, 2] + Array(repeating: 1, count: 61) + [nil])
      } else {
        let report = try await person.profile.synchronize(account: person.account)
        #expect(report.acknowledged == 3 && report.held == 1)
        #expect(try person.profile.outbox().allSatisfy { $0.held != nil })
      }
    }
  }

  @Test("a batch before it that the hub takes or puts off each time does not begin the count again")
  func countedBehindOthers() async throws {
    try await TestHub.run(HubLimits(pushMutations: 2)) { hub in
      let person = try await Device(hub).signIn()
      try await person.write(ids(1...4), "first")
      Self.fail(person, on: [ids(3...3)[0]])
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .mutations else { return }
        // The first two are put off for ever.
        guard let push = try? request.push, push.mutations.first?.id == ids(1...1)[0] else {
          return
        }
        response.change(PushAnswer.self) { answer in
          for index in answer.results.indices {
            answer.results[index].status = .deferred
            answer.results[index].version = nil
            answer.results[index].code = HubCode.busy.rawValue
          }
        }
      }
      try await passes(person, stoppedTimes: 2)
      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.held == 1)
      #expect(try person.profile.outbox().first { $0.held != nil }?.record == ids(3...3)[0])
    }
  }

  @Test("a batch that is taken between two failures begins the count again")
  func counted() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.write(ids(1...2), "first")
      for _ in 0..<3 {
        Self.fail(person, on: [ids(1...1)[0]])
        try await passes(person, stoppedTimes: 2)
        #expect(try sizes(person).allSatisfy { $0 > 0 })
        person.device.wire.clear()
        try await person.profile.synchronize(account: person.account)
        try await person.write(ids(1...2), "again")
      }
    }
  }
}
