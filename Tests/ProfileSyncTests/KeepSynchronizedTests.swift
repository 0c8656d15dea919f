import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

/// A session of an app's own, which tells nobody of its changes.
private final class OwnSession: AccountSession {
  private let content: Mutex<SessionState>
  init(_ state: SessionState) { content = Mutex(state) }
  var state: SessionState { content.withLock { $0 } }
  func set(_ state: SessionState) { content.withLock { $0 = state } }
}

@Suite("Keep synchronized")
struct KeepSynchronizedTests {
  /// A hub that takes long polls, as the client sees it: they are held until the test lets them go.
  private static func longPoll(_ person: Person, _ mayGoOn: Gate, _ polls: Log<String>) {
    person.device.wire.clear()
    person.device.wire.before { _, request throws(TransportError) in
      if request.call == .changes, let wait = request.query("wait") {
        polls.add(wait)
        await mayGoOn.wait()
        request.target = request.target.replacing("&wait=\(wait)", with: "")
      }
      return nil
    }
    person.device.wire.after { _, request, response throws(TransportError) in
      guard request.call == .session else { return }
      response.change(SessionAnswer.self) { $0.limits.waitSeconds = 55 }
    }
  }

  private static func offline(_ person: Person) {
    person.device.wire.clear()
    person.device.wire.before { _, _ throws(TransportError) in
      throw TransportError(code: .unreachable, description: "offline")
    }
  }

  private static func refuse(
    _ person: Person, _ status: Int, _ code: HubCode, retryAfter: String? = nil
  ) {
    let hub = person.device.hub.id
    person.device.wire.clear()
    person.device.wire.before { _, _ throws(TransportError) in
      .made(status, hub: hub, account: "alice", code: code, retryAfter: retryAfter)
    }
  }

  @Test("begun offline it goes on by itself, without another write")
  func offline() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.write(["a"], "first")
      Self.offline(person)
      let running = await Running(person)
      // Ten minutes of virtual time, in whatever pauses it chooses.
      var passed = Duration.zero
      while passed < .seconds(600) {
        await eventually("a pause") {
          if case .toTryAgain = running.waiting { !running.clock.sleeping.isEmpty } else { false }
        }
        let next = running.clock.sleeping[0]
        let count = running.passCount
        passed += next
        running.clock.advance(by: next)
        await eventually("the next try") { running.passCount > count }
      }
      await eventually("a pause") {
        running.clock.sleeping.first.map { $0 < .seconds(1_000) } ?? false
      }
      person.device.wire.clear()
      running.clock.advance(by: .seconds(300))
      try await eventually("everything is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("an enqueue is sent at once, also one that came while a pass ran")
  func enqueue() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let running = await Running(person)
      await running.waits(.forChanges)
      try await person.write(["a"], "first")
      try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
      await running.waits(.forChanges, passes: 2)

      let (isThere, mayGoOn) = (Gate(), Gate())
      person.device.wire.clear()
      person.device.wire.before { _, request throws(TransportError) in
        if request.call == .changes {
          isThere.open()
          await mayGoOn.wait()
        }
        return nil
      }
      try await person.write(["b"], "second")
      await isThere.wait()
      try await person.write(["c"], "third")
      mayGoOn.open()
      try await eventually("all is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("a long poll brings what another device has written; it holds neither pass nor lock")
  func longPoll() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub).signIn()
      let (mayGoOn, polls) = (Gate(), Log<String>())
      Self.longPoll(person, mayGoOn, polls)
      let running = await Running(person)
      await eventually("a poll is out") { polls.entries == ["55"] }
      #expect(person.profile.area.passes.count == 0)
      // A pass of the app's own goes on meanwhile.
      try await person.profile.synchronize(account: person.account, waiting: .notAtAll)
      try await other.send(["b"], "second")
      mayGoOn.open()
      try await eventually("it is here") { try person.texts()["b"] == "second" }
      await running.end()
    }
  }

  @Test("two devices that keep synchronized over a hub's long polls have each other's writes")
  func twoDevices() async throws {
    try await TestHub.run(HubLimits(waitSeconds: 55)) { hub in
      let (one, two) = (try await Device(hub).signIn(), try await Device(hub).signIn())
      let (first, second) = (await Running(one), await Running(two))
      await first.waits(.forChanges)
      await second.waits(.forChanges)
      // No time goes by: neither looks at the hub by itself.
      for round in 1...3 {
        try await one.write(["from one"], "\(round)")
        try await eventually("two has it") { try two.texts()["from one"] == "\(round)" }
        try await two.write(["from two"], "\(round)")
        try await eventually("one has it") { try one.texts()["from two"] == "\(round)" }
      }
      await first.end()
      await second.end()
    }
  }

  @Test("without a long poll the hub is looked at from time to time, with one request each")
  func intervals() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub).signIn()
      let running = await Running(person)
      await running.waits(.forChanges)
      for _ in 0..<3 {
        person.device.wire.clear()
        await running.sleeps(.seconds(60))
        running.clock.advance(by: .seconds(60))
        await eventually("one request") { person.device.wire.calls == [.changes] }
        await running.sleeps(.seconds(60))
      }
      #expect(running.passCount == 1)
      try await other.send(["b"], "second")
      running.clock.advance(by: .seconds(60))
      try await eventually("it is here") { try person.texts()["b"] == "second" }
      await running.end()
    }
  }

  @Test("what another process enqueues is seen by a look at the outbox")
  func otherProcess() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let running = await Running(person, lookInterval: .seconds(5))
      await running.waits(.forChanges)
      // Another process raises no signal in this one.
      _ = try await person.profile.area.write {
        try person.profile.area.insert(
          [.put("a", Data("first".utf8))], stamp: person.account.bytes,
          policy: person.profile.registry.policy, &$0)
      }
      await running.sleeps(.seconds(5))
      #expect(running.passCount == 1)
      running.clock.advance(by: .seconds(5))
      try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("what another process decides is seen by a look at the outbox, too")
  func otherProcessDecides() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let running = await Running(person, lookInterval: .seconds(5))
      await running.waits(.forChanges)
      // As a retry of another process does, which raises no signal in this one.
      try await person.profile.area.write { try person.profile.area.noteDecision(&$0) }
      await running.sleeps(.seconds(5))
      #expect(running.passCount == 1)
      running.clock.advance(by: .seconds(5))
      await running.waits(.forChanges, passes: 2)
      await running.end()
    }
  }

  @Test("what the hub wants later waits for its pause; whatever else wakes it sends only the rest")
  func deferred() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .mutations, let push = try? request.push else { return }
        response.change(PushAnswer.self) { answer in
          for (index, mutation) in push.mutations.enumerated() where mutation.id == "later" {
            answer.results[index].status = .deferred
            answer.results[index].version = nil
            answer.results[index].code = HubCode.busy.rawValue
          }
        }
      }
      func pushed() throws -> [[RecordID]] {
        try person.device.wire.requests.compactMap { try $0.push }.map { $0.mutations.map(\.id) }
      }
      try await person.write(["later", "a"], "first")
      let running = await Running(person)
      await running.waits(.forChanges)
      await running.sleeps(.seconds(0.5))
      for (round, record) in ["b", "c", "later"].enumerated() {
        try await person.write([RecordID(record)], "second")
        await running.waits(.forChanges, passes: 2 + round)
      }
      #expect(try pushed() == [["later", "a"], ["b"], ["c"]])
      // Its time has come; it is put off again, for longer.
      running.clock.advance(by: .seconds(0.5))
      await running.waits(.forChanges, passes: 5)
      #expect(try pushed().last == ["later", "later"])
      await running.sleeps(.seconds(1))
      person.device.wire.clear()
      running.clock.advance(by: .seconds(1))
      try await eventually("all is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("a suspended store is waited for, whatever went on, and it goes on by itself")
  func suspended() async throws {
    for isInPass in [false, true] {
      try await TestHub.run { hub in
        let other = try await Person.withRecords(hub, ["a"])
        let person = try await Device(hub).signIn()
        let registry = person.profile.registry
        registry.connect(to: person.device.wire.listening)
        let isThere = Gate()
        if isInPass {
          person.device.wire.before { _, request throws(TransportError) in
            guard request.call == .changes else { return nil }
            isThere.open()
            // A transport lets go of a cancelled call.
            while !Task.isCancelled { await Task.yield() }
            throw TransportError(code: .cancelled, description: "cancelled")
          }
        }
        let running = await Running(person)
        if isInPass { await isThere.wait() } else { await running.waits(.forChanges) }
        try await registry.suspend()
        await running.waits(.forResume)
        person.device.wire.clear()
        try await other.send(["b"], "second")
        running.clock.advance(by: .seconds(100_000))
        await expect(StoreError.Code.suspended) { try await person.write(["c"], "third") }
        #expect(person.device.wire.calls.isEmpty)
        #expect(running.waiting == .forResume)
        try await registry.resume()
        try await eventually("it is here") { try person.texts()["b"] == "second" }
        try await person.write(["c"], "third")
        try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
        await running.end()
      }
    }
  }

  @Test("begun while the store is suspended it waits for it; a pause of before goes on after it")
  func begunSuspended() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let registry = person.profile.registry
      try await registry.suspend()
      let running = await Running(person)
      await running.waits(.forResume, passes: 0)
      Self.refuse(person, 503, .unavailable, retryAfter: "7")
      try await registry.resume()
      await running.waits(.toTryAgain(after: .seconds(7)))
      try await registry.suspend()
      await running.waits(.forResume)
      running.clock.advance(by: .seconds(3))
      try await registry.resume()
      await running.waits(.toTryAgain(after: .seconds(7)))
      #expect(running.passCount == 1)
      await running.sleeps(.seconds(4))
      person.device.wire.clear()
      running.clock.advance(by: .seconds(4))
      await running.waits(.forChanges, passes: 2)
      await running.end()
    }
  }

  @Test("a refused token: refreshed once, then no request until there is another one")
  func needsToken() async throws {
    try await TestHub.run { hub in
      let refreshes = Log<String>()
      let session = AppSession { session in
        // Each refresh brings another token, and none of them is any good.
        session.replaceToken("bad \(refreshes.add("refresh"))")
      }
      let person = try await Device(hub, session: session).signIn()
      try await person.write(["a"], "first")
      session.replaceToken("bad 0")
      let running = await Running(person)
      await running.waits(.forNewToken)
      let count = person.device.wire.calls.count
      #expect(count == 2 && refreshes.entries.count == 1)
      running.clock.advance(by: .seconds(100_000))
      try await person.write(["b"], "second")
      #expect(person.device.wire.calls.count == count)
      #expect(try person.profile.pendingSummary().count == 2)
      session.replaceToken(try hub.token(for: "alice"))
      try await eventually("everything is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("a token that cannot be sent, and none at all, are waited out like a refused one")
  func unsendableToken() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.write(["a"], "first")
      for token in ["two\nlines", nil] as [String?] {
        person.device.session.replaceToken(token)
        person.device.wire.clear()
        let running = await Running(person)
        await running.waits(.forNewToken)
        let count = (person.device.wire.calls.count, running.passCount)
        running.clock.advance(by: .seconds(100_000))
        #expect((person.device.wire.calls.count, running.passCount) == count)
        #expect(running.passCount == 1)
        await running.end()
      }
      let running = await Running(person)
      await running.waits(.forNewToken)
      person.device.session.replaceToken(try hub.token(for: "alice"))
      try await eventually("everything is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("a new sign-in after a refused token goes on, also with the same token")
  func signInAgain() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.write(["a"], "first")
      let session = person.device.session
      let token = try hub.token(for: "alice")
      Self.refuse(person, 401, .tokenExpired)
      let running = await Running(person)
      await running.waits(.forNewToken)
      person.device.wire.clear()
      session.signIn(person.account, token: token)
      try await eventually("everything is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("while signed out, or with another account signed in, it sends nothing; then it goes on")
  func signedOut() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let (session, wire) = (person.device.session, person.device.wire)
      let token = try hub.token(for: "alice")
      let bobs = try hub.token(for: "bob")
      let bob = try await person.profile.registry.verify(token: bobs)
      let running = await Running(person)
      await running.waits(.forChanges)
      for isOther in [false, true] {
        if isOther { session.signIn(bob, token: bobs) } else { session.signOut() }
        await running.waits(.forSignIn)
        let count = (wire.calls.count, running.passCount)
        running.clock.advance(by: .seconds(100_000))
        #expect((wire.calls.count, running.passCount) == count)
        session.signIn(person.account, token: token)
        await eventually("it goes on") { running.passCount > count.1 }
        await running.waits(.forChanges)
        guard case .account(let now) = session.state else { return }
        #expect(now.account == person.account.bytes)
      }
      await running.end()
    }
  }

  @Test("signing out ends a long poll that the hub holds")
  func signOutWhilePolling() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let (polls, wasCancelled) = (Log<String>(), Gate())
      person.device.wire.clear()
      person.device.wire.before { _, request throws(TransportError) in
        guard request.call == .changes, let wait = request.query("wait") else { return nil }
        polls.add(wait)
        // A transport lets go of a cancelled call.
        while !Task.isCancelled { await Task.yield() }
        wasCancelled.open()
        throw TransportError(code: .cancelled, description: "cancelled")
      }
      person.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .session else { return }
        response.change(SessionAnswer.self) { $0.limits.waitSeconds = 55 }
      }
      let running = await Running(person)
      await eventually("a poll is out") { polls.entries.count == 1 }
      person.device.session.signOut()
      await wasCancelled.wait()
      await running.waits(.forSignIn)
      await running.end()
    }
  }

  @Test("a session of the app's own is looked at from time to time")
  func ownSession() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let state = person.device.session.state
      let session = OwnSession(.nobody)
      let running = await Running(person, session: session, lookInterval: .seconds(5))
      await running.waits(.forSignIn, passes: 0)
      await running.sleeps(.seconds(5))
      #expect(person.device.wire.calls.isEmpty)
      session.set(state)
      running.clock.advance(by: .seconds(5))
      await running.waits(.forChanges)
      await running.end()
    }
  }

  @Test("Retry-After is waited for, whatever is enqueued meanwhile")
  func retryAfter() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      Self.refuse(person, 429, .rateLimited, retryAfter: "7")
      let running = await Running(person)
      await running.waits(.toTryAgain(after: .seconds(7)))
      let count = person.device.wire.calls.count
      try await person.write(["a"], "first")
      await running.sleeps(.seconds(7))
      running.clock.advance(by: .seconds(6.9))
      #expect(person.device.wire.calls.count == count)
      person.device.wire.clear()
      running.clock.advance(by: .seconds(0.1))
      try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("what only the app can help with is thrown")
  func throwing() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await hub.backUp()
      try await hub.restore()
      let running = await Running(person)
      await expect(.epochChanged) { try await running.task.value }
      #expect(running.passCount == 1)
    }
  }

  @Test("or it is reported, and nothing is sent until the app has done it")
  func reporting() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      try await hub.backUp()
      try await hub.restore()
      let running = await Running(person, stopping: .reporting)
      await running.waits(.forTheApp(.epochChanged))
      let count = person.device.wire.calls.count
      running.clock.advance(by: .seconds(100_000))
      try await person.write(["b"], "second")
      #expect(person.device.wire.calls.count == count)
      try await person.profile.synchronize(account: person.account, replayFromStart: true)
      await running.waits(.forChanges, passes: 2)
      try await person.write(["c"], "third")
      try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("an answer that names another account stops it, in a pass and in a look for changes")
  func security() async throws {
    for isPoll in [false, true] {
      try await TestHub.run { hub in
        let person = try await Device(hub).signIn()
        if !isPoll {
          person.device.wire.ask(for: "other-account-body", at: .changes)
        }
        let running = await Running(person)
        if isPoll {
          await running.waits(.forChanges)
          person.device.wire.ask(for: "other-account-body", at: .changes)
          await running.sleeps(.seconds(60))
          running.clock.advance(by: .seconds(60))
        }
        await expect(.accountMismatch) { try await running.task.value }
        await eventually("it was told") {
          running.events.entries.contains { if case .securityEvent = $0 { true } else { false } }
        }
        let count = person.device.wire.calls.count
        running.clock.advance(by: .seconds(100_000))
        #expect(person.device.wire.calls.count == count)
      }
    }
  }

  @Test("cancelled while the hub holds a pass's request it ends, and its place is free")
  func cancel() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      person.device.wire.ask(for: "delay=30000", at: .changes)
      let running = await Running(person)
      await eventually("the request is out") { person.device.wire.calls.contains(.changes) }
      await running.end()
      person.device.wire.clear()
      try await person.profile.synchronize(account: person.account, waiting: .notAtAll)
    }
  }

  @Test("what applyChanges throws ends it, or the same batch comes again after a pause")
  func applying() async throws {
    for stopping in [SyncPace.Stopping.throwing, .reporting] {
      try await TestHub.run { hub in
        _ = try await Person.withRecords(hub, ["a"])
        let person = try await Device(hub, keeping: .app).signIn()
        let tries = Log<Int>()
        let running = await Running(person, stopping: stopping) { batch in
          if tries.add(batch.count) == 1 { throw AppFailure() }
          try person.app.save(batch)
        }
        if stopping == .throwing {
          await #expect(throws: AppFailure.self) { try await running.task.value }
          return
        }
        await running.waits(.toTryAgain(after: .seconds(0.5)))
        await running.sleeps(.seconds(0.5))
        running.clock.advance(by: .seconds(0.5))
        await eventually("the batch is saved") { person.app.texts["a"] == "first" }
        await running.waits(.forChanges, passes: 2)
        #expect(tries.entries == [1, 1])
        await running.end()
      }
    }
  }

  @Test("work of the app's own that was cancelled is tried again like anything else that it throws")
  func cancelledInClosure() async throws {
    try await TestHub.run { hub in
      let other = try await Device(hub).signIn()
      try await other.send(["a"], "first")
      let person = try await Device(hub, keeping: .app).signIn()
      let tries = Log<Int>()
      let running = await Running(person, stopping: .reporting) { batch in
        if tries.add(batch.count) == 1 { throw CancellationError() }
        try person.app.save(batch)
      }
      await running.waits(.toTryAgain(after: .seconds(0.5)))
      await running.sleeps(.seconds(0.5))
      running.clock.advance(by: .seconds(0.5))
      await eventually("the batch is saved") { person.app.texts["a"] == "first" }
      await running.waits(.forChanges, passes: 2)
      await running.end()
    }
  }

  @Test("a held mutation is tried when its time has come")
  func held() async throws {
    try await TestHub.run { hub in
      let time = TestTime()
      let person = try await Device(hub, now: { time.now }).signIn()
      try await person.write(["a"], "poison")
      let id = hub.id
      person.device.wire.before { _, request throws(TransportError) in
        guard let push = try? request.push, !push.mutations.isEmpty else { return nil }
        return .made(500, hub: id, account: "alice", code: .internal)
      }
      let running = await Running(person, pollInterval: .seconds(20))
      for count in 1...2 {
        await eventually("pass \(count) has failed") {
          if case .toTryAgain = running.waiting { running.passCount == count } else { false }
        }
        await eventually("a pause") { running.clock.sleeping.contains { $0 <= .seconds(2) } }
        running.clock.advance(by: .seconds(2))
      }
      await running.waits(.forChanges, passes: 3)
      let due = try #require(try person.profile.nextTryOfHeld()).timeIntervalSince(time.now)
      person.device.wire.clear()
      // The hub is looked at meanwhile, which does not put it off.
      await running.sleeps(.seconds(20))
      running.clock.advance(by: .seconds(20))
      await eventually("a look at the hub") { person.device.wire.calls == [.changes] }
      await running.sleeps(.seconds(20))
      #expect(running.passCount == 3)
      time.advance(by: due)
      running.clock.advance(by: .seconds(due - 20))
      try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
      await running.end()
    }
  }

  @Test("it cannot be called where a pass cannot, and says what the call lacks")
  func calls() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub, keeping: .app).signIn()
      await expect(SyncError.Code.closureRequired) {
        try await person.profile.keepSynchronized(account: person.account)
      }
      try await person.profile.synchronize(account: person.account) { batch in
        try person.app.save(batch)
        await expect(.insideApplyClosure) {
          try await person.profile.keepSynchronized(account: person.account) { _ in }
        }
      }
      let bob = try await person.profile.registry.verify(token: try hub.token(for: "bob"))
      await expect(StoreError.Code.ownedByAnotherAccount) {
        try await person.profile.keepSynchronized(account: bob) { _ in }
      }
    }
  }
}
