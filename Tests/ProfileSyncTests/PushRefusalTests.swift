import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Protocol's last table, rows 400 and 413.
@Suite("Synchronize: a push that the hub does not take")
struct PushRefusalTests {
  /// A hub that refuses pushes with certain records, as its answers would say it.
  private static func refuse(
    _ person: Person, _ bad: Set<RecordID>, status: Int, code: HubCode?, names hub: UUID?,
    refusesEmpty: Bool = false
  ) {
    person.device.wire.clear()
    person.device.wire.before { _, request throws(TransportError) in
      do {
        guard let push = try request.push else { return nil }
        let isRefused =
          push.mutations.contains { bad.contains($0.id) }
          || (refusesEmpty && push.mutations.isEmpty)
        guard isRefused else { return nil }
        return .made(status, hub: hub, account: hub.map { _ in "alice" }, code: code)
      } catch {
        Issue.record("a push could not be read: \(error)")
        return nil
      }
    }
  }

  private func sizes(_ person: Person) throws -> [Int] {
    try person.device.wire.requests.compactMap { try $0.push }.map(\.mutations.count)
  }

  @Test("413 halves the batch, down to the single one, which is parked; the others go on")
  func tooLarge() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(ids(1...8), "second")
      try await person.write(ids(3...3), "follower")
      Self.refuse(
        person, [ids(3...3)[0]], status: 413, code: .tooLarge, names: hub.id)
      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.parked == 1 && report.acknowledged == 7)
      let outbox = try person.profile.outbox()
      #expect(outbox.map(\.record) == ids(3...3) + ids(3...3))
      #expect(outbox.map { $0.parked?.reason } == [.tooLarge, nil])
      // An empty push was accepted before anything was parked.
      #expect(try sizes(person).contains(0))
      #expect(try person.texts()[ids(3...3)[0]] == "follower")
    }
  }

  @Test("a payload above the hub's limit is parked and can be replaced by a smaller one")
  func payload() async throws {
    try await TestHub.run(HubLimits(payloadBytes: 1_000)) { hub in
      let person = try await Device(hub).signIn()
      // Enqueued before the hub has announced its limit.
      try await person.write(["large"], String(repeating: "x", count: 1_001))
      try await person.write(["small"], "small")
      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.parked == 1 && report.acknowledged == 1)
      let parked = try #require(try person.profile.parked().first)
      #expect(parked.record == "large" && parked.parked?.code == "too_large")
      try await person.profile.enqueue(
        .put("large", Data("fits".utf8), replacing: parked.mutation), account: person.account)
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a batch above pushBytes is sent in parts")
  func pushBytes() async throws {
    try await TestHub.run(HubLimits(pushBytes: 20_000, payloadBytes: 10_000)) { hub in
      let person = try await Device(hub).signIn()
      try await person.write(ids(1...12), String(repeating: "x", count: 4_000))
      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.acknowledged == 12 && report.parked == 0)
      let bodies = person.device.wire.requests.compactMap { $0.body?.count }
      #expect(bodies.allSatisfy { $0 <= 20_000 })
    }
  }

  @Test("413 that the hub did not say halves but never parks")
  func proxy() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(ids(1...8), "second")
      let before = try person.profile.outbox().map(\.mutation)
      Self.refuse(person, Set(ids(1...8)), status: 413, code: nil, names: nil)
      await expect(.hubUnavailable) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(try sizes(person) == [8, 4, 2, 1])
      #expect(try person.profile.outbox().map(\.mutation) == before)
      #expect(try person.profile.parked().isEmpty)
    }
  }

  @Test("bad_mutation is bisected; the single one is parked only after an empty push was accepted")
  func badMutation() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(ids(1...8), "second")
      let bad: Set<RecordID> = [ids(2...2)[0], ids(7...7)[0]]
      Self.refuse(
        person, bad, status: 400, code: .badMutation, names: hub.id, refusesEmpty: true)
      await expect(.refused) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(try person.profile.parked().isEmpty)
      #expect(try sizes(person).last == 0)
      Self.refuse(person, bad, status: 400, code: .badMutation, names: hub.id)
      let report = try await person.profile.synchronize(account: person.account)
      #expect(report.parked == 2)
      #expect(Set(try person.profile.parked().map(\.record)) == bad)
      #expect(try person.profile.parked().allSatisfy { $0.parked?.code == "bad_mutation" })
      #expect(try person.profile.pendingSummary().count == 2)
    }
  }

  @Test("bad_request is bisected, but parks nothing: it does not name the mutation")
  func badRequest() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(ids(1...4), "second")
      Self.refuse(person, [ids(1...1)[0]], status: 400, code: .badRequest, names: hub.id)
      let error = await expect(.refused) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(error?.hubCode == "bad_request")
      #expect(try sizes(person) == [4, 2, 1])
      #expect(try person.profile.parked().isEmpty)
      #expect(try person.profile.pendingSummary().count == 4)
    }
  }

  @Test(
    "400 on a pull stops and reports, and the cursor stays",
    arguments: [HubCode.badCursor, .badRequest])
  func badPull(code: HubCode) async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let before = try person.standing()
      person.device.wire.clear()
      person.device.wire.before { _, request throws(TransportError) in
        request.call == .changes
          ? .made(400, hub: hub.id, account: "alice", code: code) : nil
      }
      let error = await expect(.refused) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(error?.hubCode == code.rawValue)
      #expect(person.device.wire.calls == [.session, .changes])
      #expect(try person.standing() == before)
    }
  }

  @Test(
    "404, 405, 414, 415 and 431 from the hub stop and report",
    arguments: [
      (404, HubCode.notFound), (405, .methodNotAllowed), (414, .uriTooLong),
      (415, .unsupportedMediaType), (431, .headersTooLarge),
    ])
  func others(status: Int, code: HubCode) async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(ids(1...4), "second")
      for call in [Call.session, .mutations, .changes] {
        person.device.wire.clear()
        person.device.wire.before { _, request throws(TransportError) in
          request.call == call
            ? .made(status, hub: hub.id, account: "alice", code: code) : nil
        }
        let error = await expect(.refused) {
          try await person.profile.synchronize(account: person.account)
        }
        #expect(error?.hubCode == code.rawValue)
        #expect(person.device.wire.calls.last == call)
      }
      #expect(try person.profile.parked().isEmpty)
    }
  }

  @Test("verdicts on other mutations are used in nothing")
  func otherVerdicts() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b", "c"], "second")
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .mutations else { return }
        response.change(PushAnswer.self) { $0.results.reverse() }
      }
      await expect(.badAnswer) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(try person.profile.pendingSummary().count == 2)
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.cursor()?.sequence == 3)
    }
  }
}
