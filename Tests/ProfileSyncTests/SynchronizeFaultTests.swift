import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract section 8, and the protocol's last table, over a real hub that misbehaves.
@Suite("Synchronize: a hub that misbehaves")
struct SynchronizeFaultTests {
  /// A fault, where it is asked for, and the error that it leads to.
  struct Case: Sendable, CustomTestStringConvertible {
    var fault: String
    var call: Call
    var code: SyncError.Code
    var replay = false
    var testDescription: String { "\(fault) at \(call)\(replay ? " of a replay" : "")" }
  }

  private static let cases: [Case] =
    Call.allCases.filter { ![.clients, .records, .events].contains($0) }.flatMap { call in
      [
        Case(fault: "other-account-body", call: call, code: .accountMismatch),
        Case(fault: "other-account-header", call: call, code: .accountMismatch),
        Case(fault: "cut-body", call: call, code: .hubUnreachable),
        Case(fault: "cut-body=0", call: call, code: .hubUnreachable),
        Case(fault: "drop-after-commit", call: call, code: .hubUnreachable),
        Case(fault: "throttle=1", call: call, code: .hubUnavailable),
      ]
    }
    + [
      Case(fault: "new-epoch", call: .mutations, code: .epochChanged),
      Case(fault: "new-epoch", call: .changes, code: .epochChanged),
      Case(fault: "unauthorized-at-page=2", call: .changes, code: .needsAuthentication),
      Case(fault: "repeat-page", call: .changes, code: .badAnswer),
      Case(fault: "older-versions", call: .changes, code: .badAnswer),
      Case(fault: "cursor-stands", call: .changes, code: .badAnswer),
      Case(fault: "cursor-back", call: .changes, code: .badAnswer),
      Case(fault: "endless-more", call: .changes, code: .badAnswer),
    ]
    + [
      "other-account-body", "other-account-header", "cut-body", "drop-after-commit", "throttle=1",
      "unauthorized-at-page=2", "repeat-page", "older-versions", "cursor-stands", "cursor-back",
      "endless-more",
    ].map { fault in
      let code = cases(of: fault)
      return Case(fault: fault, call: .changes, code: code, replay: true)
    }

  private static func cases(of fault: String) -> SyncError.Code {
    switch fault {
    case "other-account-body", "other-account-header": .accountMismatch
    case "cut-body", "drop-after-commit": .hubUnreachable
    case "throttle=1": .hubUnavailable
    case "unauthorized-at-page=2": .needsAuthentication
    default: .badAnswer
    }
  }

  @Test(
    "leads to its typed error; nothing is lost, and the next pass recovers", arguments: cases)
  func recovers(_ example: Case) async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let person = try await Person.withRecords(hub, ids(1...3))
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      // Versions with gaps between them, so that older ones can be told.
      try await other.send(ids(1...1) + ids(4...8), "theirs")
      try await other.send(ids(4...4), "again")
      try await person.write(ids(11...13), "mine")
      let before = try person.standing()
      person.device.wire.clear()
      person.device.wire.ask(for: example.fault, at: example.call)
      let error = await expect(example.code) {
        try await person.profile.synchronize(
          account: person.account, replayFromStart: example.replay)
      }
      #expect(error?.retryAfter == (example.fault == "throttle=1" ? .seconds(1) : nil))
      let after = try person.standing()
      // The outbox is as it was, or what was sent is acknowledged and waits to be pulled.
      #expect(example.replay || example.call == .changes || after.outbox == before.outbox)
      #expect(after.cursor?.sequence ?? 0 >= before.cursor?.sequence ?? 0)
      #expect(Set(try person.texts().keys).isSuperset(of: ids(1...3) + ids(11...13)))
      person.device.wire.clear()
      let isNewEpoch = example.code == .epochChanged
      try await person.profile.synchronize(
        account: person.account, replayFromStart: isNewEpoch)
      try await other.profile.synchronize(account: other.account, replayFromStart: isNewEpoch)
      #expect(try person.texts() == other.texts())
      #expect(try person.texts().keys.sorted() == ids(1...8) + ids(11...13))
      #expect(try person.texts()[ids(1...1)[0]] == "theirs")
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a lost answer is harmless: the same mutation again changes nothing at the hub")
  func lostAnswer() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["a", "b"], "second")
      person.device.wire.ask(for: "drop-after-commit", at: .mutations)
      for _ in 1...3 {
        await expect(.hubUnreachable) {
          try await person.profile.synchronize(account: person.account)
        }
      }
      let sent = try person.device.wire.requests.compactMap { try $0.push }
      #expect(Set(sent.map { $0.mutations.map(\.mutation) }).count == 1)
      #expect(Set(sent.flatMap(\.mutations).map(\.firstSent)) == [1])
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      // Applied once: two versions for two mutations.
      #expect(try person.profile.cursor()?.sequence == 3)
      #expect(try person.profile.acknowledged().map(\.version).suffix(2) == [2, 3])
    }
  }

  @Test("purged tombstones lead to a scan from zero within the pass")
  func purged() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...4))
      let other = try await Device(hub).signIn()
      try await other.profile.synchronize(account: other.account)
      try await other.delete(ids(2...3))
      try await other.profile.synchronize(account: other.account)
      person.device.wire.clear()
      person.device.wire.ask(for: "purged-tombstones", at: .changes)
      try await person.profile.synchronize(account: person.account)
      #expect(
        person.device.wire.calls == [.session, .changes, .session, .changes, .changes])
      #expect(try person.texts().keys.sorted() == [ids(1...1)[0], ids(4...4)[0]])
    }
  }

  @Test("verdicts park, settle or keep each mutation by itself, and followers wait")
  func verdicts() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ids(1...4))
      try await person.write(ids(1...4), "second")
      try await person.write(ids(1...4), "third")
      person.device.wire.clear()
      person.device.wire.ask(for: "verdicts=conflict,rejected,deferred", at: .mutations)
      let report = try await person.profile.synchronize(account: person.account)
      // The first of record 4 and the second of it were applied.
      #expect(report.sent == 8 && report.acknowledged == 2)
      #expect(report.parked == 2 && report.deferred == 4)
      let outbox = try person.profile.outbox()
      #expect(outbox.map(\.record) == ids(1...3) + ids(1...3))
      #expect(outbox.map { $0.parked?.reason } == [.conflict, .rejected, nil, nil, nil, nil])
      #expect(outbox[0].parked?.current?.payload == Data("first".utf8))
      #expect(outbox[1].parked?.code == "bad_base")
      // The deferred one goes with its follower; those behind parked ones wait.
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.outbox().map(\.record) == ids(1...2) + ids(1...2))
      #expect(try person.texts()[ids(3...3)[0]] == "third")
    }
  }

  @Test("what waits behind a deferred mutation of its record waits with it, in later batches too")
  func deferredBatches() async throws {
    try await TestHub.run(HubLimits(pushMutations: 2)) { hub in
      let person = try await Person.withRecords(hub, ["a"])
      for text in ["second", "third", "fourth"] { try await person.write(["a", "b"], text) }
      person.device.wire.clear()
      person.device.wire.before { number, request throws(TransportError) in
        if number == 2 { request.headers.append(HeaderField(HubHeader.fault, "verdicts=deferred")) }
        return nil
      }
      let report = try await person.profile.synchronize(account: person.account)
      let pushes = try person.device.wire.requests.compactMap { try $0.push }
      #expect(pushes.map { $0.mutations.map(\.id) } == [["a", "b"], ["b"], ["b"]])
      #expect(report.deferred == 1)
      #expect(try person.profile.outbox().map(\.record) == ["a", "a", "a"])
    }
  }

  @Test("a token that ends within a pass is refreshed once, and the pass goes on where it was")
  func refresh() async throws {
    try await TestHub.run(HubLimits(pullRecords: 2)) { hub in
      let refreshed = Log<Bool>()
      let session = AppSession { session in
        refreshed.add(true)
        session.replaceToken(
          try hub.server.token(
            for: AccountID("alice"), lifetimeSeconds: 3_000 + Int64(refreshed.entries.count)))
      }
      let person = try await Device(hub, session: session).signIn()
      try await person.profile.synchronize(account: person.account)
      let other = try await Person.withRecords(hub, ids(1...6))
      for replay in [false, true] {
        person.device.wire.clear()
        person.device.wire.ask(for: "unauthorized-at-page=\(replay ? 3 : 2)", at: .changes)
        try await person.profile.synchronize(
          account: person.account, replayFromStart: replay)
        #expect(refreshed.entries.count == (replay ? 2 : 1))
        let pages = person.device.wire.requests.filter { $0.call == .changes }
        // One request was sent twice, none from the beginning.
        #expect(
          pages.map { $0.query("after") }
            == (replay ? ["0", "2", "4", "4", "6"] : ["0", "2", "2", "4"]))
        #expect(try person.texts() == other.texts())
      }
    }
  }

  @Test("401 twice is needsAuthentication: outbox and cursor are kept, no more requests")
  func unauthorized() async throws {
    try await TestHub.run { hub in
      let refreshed = Log<Bool>()
      let session = AppSession { session in
        refreshed.add(true)
        // New, and ended already.
        session.replaceToken(
          try hub.server.token(
            for: AccountID("alice"), lifetimeSeconds: -Int64(refreshed.entries.count)))
      }
      let person = try await Device(hub, session: session).signIn()
      try await person.send(["a"], "first")
      try await person.write(["b"], "second")
      let before = try person.standing()
      session.replaceToken(
        try hub.server.token(for: AccountID("alice"), lifetimeSeconds: -100))
      person.device.wire.clear()
      let error = await expect(.needsAuthentication) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(error?.hubCode == "token_expired" && error?.retryClass == .needsTheApp)
      #expect(refreshed.entries.count == 1)
      #expect(person.device.wire.calls == [.session, .session])
      #expect(try person.standing() == before)
      session.replaceToken(try hub.token(for: "alice"))
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a session without a token, or that cannot get one, is needsAuthentication")
  func noToken() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      person.device.session.replaceToken(nil)
      person.device.wire.clear()
      await expect(.needsAuthentication) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(person.device.wire.calls.isEmpty)
      let failing = AppSession { _ in throw AppFailure() }
      failing.restore(account: person.account.bytes, token: "no token at all")
      await expect(.needsAuthentication) {
        try await person.profile.synchronize(account: person.account, session: failing)
      }
      #expect(person.device.wire.calls == [.session])
      // One that asks for its first token when it is needed.
      let lazy = AppSession { $0.replaceToken(try hub.token(for: "alice")) }
      lazy.restore(account: person.account.bytes, token: nil)
      try await person.profile.synchronize(account: person.account, session: lazy)
    }
  }

  @Test("an account that is disabled at the hub stops the pass; enabled again, it goes on")
  func disabled() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      try await hub.server.disable(person.account.id)
      let error = await expect(.accountDisabled) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(error?.retryClass == .never)
      #expect(try person.profile.pendingSummary().count == 1)
      try await hub.server.enable(person.account.id)
      try await person.profile.synchronize(account: person.account)
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("an account that is erased at the hub freezes the profile; its data is kept")
  func erased() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      try await hub.server.erase(person.account.id)
      await expect(.accountErased) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(try person.texts() == ["a": "first", "b": "second"])
      // Made again by an administrator, it is another history: nothing is sent into it.
      try await hub.server.recreate(person.account.id)
      person.device.wire.clear()
      for replay in [false, true] {
        await expect(.accountErased) {
          try await person.profile.synchronize(account: person.account, replayFromStart: replay)
        }
      }
      #expect(person.device.wire.calls.isEmpty)
      #expect(try person.profile.pendingSummary().count == 1)
      // Until the app erases it.
      try await person.device.registry.erase(person.account, discardingPending: true)
      let again = try await person.device.signIn()
      try await again.send(["c"], "third")
      #expect(try again.texts() == ["c": "third"])
    }
  }

  @Test("a client that belongs to another account at the hub stops the pass")
  func clientBoundElsewhere() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await person.write(["b"], "second")
      person.device.wire.clear()
      person.device.wire.before { _, request throws(TransportError) in
        request.call == .mutations
          ? .made(403, hub: hub.id, account: "alice", code: .clientBoundElsewhere) : nil
      }
      await expect(.clientBoundElsewhere) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(person.device.wire.calls == [.session, .mutations])
      #expect(try person.profile.pendingSummary().count == 1)
    }
  }
}
