import Foundation
import HoldfastTesting
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Protocol, "GET /v1/events": hints only, never data.
@Suite("Keep synchronized by the hub's events")
struct KeepSynchronizedEventsTests {
  /// Somebody whose device can listen.
  private func listener(_ hub: TestHub, _ device: Device? = nil) async throws -> Person {
    let person = try await (device ?? Device(hub)).signIn()
    person.device.registry.connect(to: person.device.wire.listening)
    return person
  }

  /// The hub takes long polls; they, and what else happens at a call, are the test's.
  private func polls(
    _ person: Person, _ before: @escaping Wire.Before = { _, _ throws(TransportError) in nil }
  ) {
    person.device.wire.before { number, request throws(TransportError) in
      if let answer = try await before(number, &request) { return answer }
      if let wait = request.query("wait") {
        request.target = request.target.replacing("&wait=\(wait)", with: "")
      }
      return nil
    }
    person.device.wire.after { _, request, response throws(TransportError) in
      guard request.call == .session else { return }
      response.change(SessionAnswer.self) { $0.limits.waitSeconds = 55 }
    }
  }

  private func waits(_ person: Person) -> [String] {
    person.device.wire.requests.compactMap { $0.query("wait") }
  }

  private func streams(_ person: Person) -> Int {
    person.device.wire.calls.count { $0 == .events }
  }

  /// Streams in the hub's place that the test fills; each begins with a hello.
  private func scripted(
    _ person: Person, hello: HubEvent? = nil, ended: Log<Void> = Log()
  ) throws -> Log<HubEvents.Continuation> {
    let filling = Log<HubEvents.Continuation>()
    let epoch = UUID()
    let cursor = try person.profile.cursor()
    let greeting = HubEvent.hello(
      HubGreeting(
        hub: person.device.hub.id, epoch: cursor?.epoch ?? epoch,
        account: person.account.id, highWater: cursor?.sequence ?? 0))
    person.device.wire.streams {
      let (events, continuation) = HubEvents.makeStream()
      continuation.onTermination = { _ in ended.add(()) }
      continuation.yield(hello ?? greeting)
      filling.add(continuation)
      return events
    }
    return filling
  }

  @Test("one stream, open over passes, brings each write of another device; nothing is polled")
  func hints() async throws {
    try await TestHub.run(HubLimits(waitSeconds: 55)) { hub in
      let other = try await Person.withRecords(hub, ["a"])
      let person = try await listener(hub)
      let running = await Running(person)
      await running.waits(.forChanges)
      for round in 1...3 {
        try await other.send(["b"], "\(round)")
        try await eventually("it is here") { try person.texts()["b"] == "\(round)" }
        // What this device has sent itself is no news to it.
        try await person.write(["mine"], "\(round)")
        try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
        await running.waits(.forChanges, passes: 1 + 2 * round)
      }
      try await other.send(["b"], "last")
      try await eventually("it is here") { try person.texts()["b"] == "last" }
      await running.waits(.forChanges, passes: 8)
      #expect(running.passCount == 8)
      #expect(streams(person) == 1)
      #expect(waits(person) == [])
      await running.end()
    }
  }

  @Test("two devices that listen have each other's writes, without any time going by")
  func twoDevices() async throws {
    try await TestHub.run { hub in
      let (one, two) = (try await listener(hub), try await listener(hub))
      let (first, second) = (await Running(one), await Running(two))
      await first.waits(.forChanges)
      await second.waits(.forChanges)
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

  @Test("an hour without a change costs one stream and six looks")
  func quietHour() async throws {
    try await TestHub.run { hub in
      let person = try await listener(hub)
      polls(person)
      try await person.profile.synchronize(account: person.account)
      let filling = try scripted(person)
      let running = await Running(person)
      await running.waits(.forChanges)
      await eventually("it listens") { filling.entries.count == 1 }
      let before = person.device.wire.calls.count
      for look in 1...6 {
        await running.sleeps(SyncLoop.streamSilenceMax)
        running.clock.advance(by: SyncLoop.streamSilenceMax)
        await eventually("a look") { person.device.wire.calls.count == before + look }
        await eventually("it listens on") {
          running.clock.sleeping.contains(SyncLoop.streamSilenceMax)
        }
      }
      #expect(filling.entries.count == 1)
      #expect(waits(person) == [])
      #expect(running.passCount == 1)
      await running.end()
    }
  }

  /// Why a stream does not come about, or is of no use.
  enum Trouble: CaseIterable {
    case unreachable, notFound, methodNotAllowed, ordinaryAnswer, captivePortal, unavailable
    case endsAtOnce, breaksAtOnce, noHello, silent

    func answer(_ hub: UUID) throws(TransportError) -> HubResponse? {
      switch self {
      case .unreachable: throw TransportError(code: .unreachable, description: "of a test")
      case .notFound: .made(404, hub: hub, account: "alice", code: .notFound)
      case .methodNotAllowed: .made(405, hub: hub, account: "alice", code: .methodNotAllowed)
      case .ordinaryAnswer: .made(200, hub: hub, account: "alice", body: Data("{}".utf8))
      case .captivePortal: .made(200, body: Data("<html>".utf8), contentType: "text/html")
      case .unavailable: .made(503, hub: hub, account: "alice", code: .unavailable)
      case .endsAtOnce, .breaksAtOnce, .noHello, .silent: nil
      }
    }

    func fill(_ continuation: HubEvents.Continuation) {
      switch self {
      case .endsAtOnce: continuation.finish()
      case .breaksAtOnce:
        continuation.finish(
          throwing: TransportError(code: .connectionLost, description: "of a test"))
      case .noHello: continuation.yield(.change(highWater: 1_000))
      default: break
      }
    }
  }

  @Test(
    "a stream that does not come about leads to long polls, at once", arguments: Trouble.allCases)
  func fallsBack(trouble: Trouble) async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["a"])
      let person = try await listener(hub)
      let (mayGoOn, id) = (Gate(), hub.id)
      polls(person) { _, request throws(TransportError) in
        if request.call == .events { return try trouble.answer(id) }
        if request.query("wait") != nil { await mayGoOn.wait() }
        return nil
      }
      person.device.wire.streams {
        let (events, continuation) = HubEvents.makeStream()
        trouble.fill(continuation)
        return events
      }
      let running = await Running(person)
      await running.waits(.forChanges)
      if trouble == .silent {
        // What stands between keeps an answer until it is whole.
        await running.sleeps(.seconds(20))
        #expect(waits(person) == [])
        running.clock.advance(by: .seconds(20))
      }
      await running.sleeps(.seconds(0.5))
      running.clock.advance(by: .seconds(0.5))
      await eventually("a poll is out") { waits(person) == ["55"] }
      try await other.send(["b"], "second")
      mayGoOn.open()
      try await eventually("it is here") { try person.texts()["b"] == "second" }
      #expect(streams(person) == 1)
      await running.end()
    }
  }

  @Test("what names another account or hub is no hint: it is reported, and nothing more is sent")
  func mismatch() async throws {
    for kind in ["hello's account", "hello's hub", "head's account", "head's hub"] {
      try await TestHub.run { hub in
        let person = try await listener(hub)
        try await person.profile.synchronize(account: person.account)
        let cursor = try #require(try person.profile.cursor())
        let isHello = kind.hasPrefix("hello")
        if isHello {
          _ = try scripted(
            person,
            hello: .hello(
              HubGreeting(
                hub: kind == "hello's hub" ? UUID() : hub.id, epoch: cursor.epoch,
                account: kind == "hello's hub" ? person.account.id : AccountID("bob"),
                highWater: 1_000)))
        } else {
          person.device.wire.after { _, request, response throws(TransportError) in
            guard request.call == .events else { return }
            let name = kind == "head's hub" ? HubHeader.hub : HubHeader.account
            response.headers.removeAll { $0.name.lowercased() == name.lowercased() }
            response.headers.append(
              HeaderField(name, kind == "head's hub" ? UUID().uuidString.lowercased() : "bob"))
          }
        }
        let running = await Running(person)
        await expect(.accountMismatch) { try await running.task.value }
        await eventually("it was told") {
          running.events.entries.contains { if case .securityEvent = $0 { true } else { false } }
        }
        let count = person.device.wire.calls.count
        running.clock.advance(by: .seconds(100_000))
        #expect(person.device.wire.calls.count == count)
        #expect(running.passCount == 1)
        #expect(person.device.wire.calls.last == .events)
        // Nobody was switched to anything.
        guard case .account(let now) = person.device.session.state else { return }
        #expect(now.account == person.account.bytes)
      }
    }
  }

  @Test("a hub that keeps a stream alive and loses its events is found out, and polled")
  func silentEvents() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["a"])
      let person = try await listener(hub)
      let mayGoOn = Gate()
      polls(person) { _, request throws(TransportError) in
        if request.call == .events {
          request.headers.append(HeaderField(HubHeader.fault, "silent-events"))
        }
        if request.query("wait") != nil { await mayGoOn.wait() }
        return nil
      }
      let running = await Running(person)
      await running.waits(.forChanges)
      await running.sleeps(SyncLoop.streamSilenceMax)
      await eventually("it listens") { streams(person) == 1 }
      try await other.send(["b"], "second")
      running.clock.advance(by: SyncLoop.streamSilenceMax)
      try await eventually("it is here") { try person.texts()["b"] == "second" }
      await eventually("a poll is out") { waits(person) == ["55"] }
      mayGoOn.open()
      await running.end()
    }
  }

  @Test("a stream that ends after a while is asked for again; what it missed its hello says")
  func again() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["a"])
      let person = try await listener(hub)
      polls(person)
      try await person.profile.synchronize(account: person.account)
      let filling = try scripted(person)
      let running = await Running(person)
      await running.waits(.forChanges)
      for (bye, number) in [(HubFarewell.tokenExpired, 0), (.shuttingDown, 1)] {
        await eventually("it listens") { filling.entries.count == number + 1 }
        running.clock.advance(by: .seconds(60))
        if bye == .shuttingDown {
          // The next one is the hub's own, and a change was made meanwhile.
          try await other.send(["b"], "second")
          person.device.wire.clear()
        }
        filling.entries[number].yield(.bye(code: bye.rawValue))
        filling.entries[number].finish()
        await running.sleeps(.seconds(0.5))
        running.clock.advance(by: .seconds(0.5))
      }
      try await eventually("it is here") { try person.texts()["b"] == "second" }
      #expect(person.device.wire.calls.count { $0 == .events } == 1)
      #expect(waits(person) == [])
      await running.end()
    }
  }

  @Test("signing out, and the end of the call, let go of the stream; a sign-in listens anew")
  func letsGo() async throws {
    try await TestHub.run { hub in
      let person = try await listener(hub)
      let session = person.device.session
      let token = try hub.token(for: "alice")
      try await person.profile.synchronize(account: person.account)
      let ended = Log<Void>()
      let filling = try scripted(person, ended: ended)
      let running = await Running(person)
      await eventually("it listens") { filling.entries.count == 1 }
      session.signOut()
      await running.waits(.forSignIn)
      await eventually("it was let go") { ended.entries.count == 1 }
      let count = person.device.wire.calls.count
      running.clock.advance(by: .seconds(100_000))
      #expect(person.device.wire.calls.count == count)
      session.signIn(person.account, token: token)
      await eventually("it listens again") { filling.entries.count == 2 }
      // A new sign-in of the same account listens with its own token; a new token is no reason to.
      session.replaceToken(token)
      session.signIn(person.account, token: token)
      await eventually("it listens again") { filling.entries.count == 3 }
      await eventually("it was let go") { ended.entries.count == 2 }
      await running.end()
      await eventually("it was let go") { ended.entries.count == 3 }
    }
  }

  @Test("a token that the stream's request refuses is refreshed once; then nothing is sent")
  func refusedToken() async throws {
    try await TestHub.run { hub in
      for isRefreshed in [true, false] {
        let id = hub.id
        let renewed = try hub.server.token(for: AccountID("alice"), lifetimeSeconds: 1_000)
        let session = AppSession { $0.replaceToken(isRefreshed ? renewed : "a bad one") }
        let person = try await listener(hub, Device(hub, session: session))
        let events = Log<Void>()
        person.device.wire.before { _, request throws(TransportError) in
          guard request.call == .events, events.add(()) == 1 || !isRefreshed else { return nil }
          return .made(401, hub: id, account: "alice", code: .tokenExpired)
        }
        let running = await Running(person)
        if isRefreshed {
          await eventually("asked twice") { streams(person) == 2 }
          let other = try await Device(hub).signIn()
          try await other.send(["a"], "first")
          try await eventually("it is here") { try person.texts() == ["a": "first"] }
        } else {
          await running.waits(.forNewToken)
          let count = person.device.wire.calls.count
          running.clock.advance(by: .seconds(100_000))
          #expect(person.device.wire.calls.count == count)
          #expect(streams(person) == 2)
        }
        await running.end()
      }
    }
  }

  @Test("a hub that refuses a stream with Retry-After is left alone for as long")
  func retryAfter() async throws {
    try await TestHub.run { hub in
      let person = try await listener(hub)
      let id = hub.id
      polls(person) { _, request throws(TransportError) in
        request.call == .events
          ? .made(429, hub: id, account: "alice", code: .rateLimited, retryAfter: "7") : nil
      }
      let running = await Running(person)
      await running.waits(.toTryAgain(after: .seconds(7)))
      let count = person.device.wire.calls.count
      try await person.write(["a"], "first")
      #expect(person.device.wire.calls.count == count)
      await running.sleeps(.seconds(7))
      running.clock.advance(by: .seconds(7))
      try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
      await eventually("it polls") { !waits(person).isEmpty }
      #expect(streams(person) == 1)
      await running.end()
    }
  }

  @Test("an epoch that was reset meanwhile stops it as a pass would")
  func epoch() async throws {
    try await TestHub.run { hub in
      let person = try await listener(hub)
      try await hub.backUp()
      try await person.send(["a"], "lost")
      let running = await Running(person)
      await eventually("it listens") { streams(person) == 1 }
      try await hub.restore()
      let ending = Task { await expect(.epochChanged) { try await running.task.value } }
      await eventually("it has stopped") {
        running.clock.advance(by: .seconds(1))
        return running.events.entries.contains {
          if case .passStopped(.epochChanged, _) = $0 { true } else { false }
        }
      }
      _ = await ending.value
      #expect(try person.texts() == ["a": "lost"])
    }
  }

  @Test("a stream of the sign-in before is not listened to, also where a pass has met the new one")
  func newSignInInPass() async throws {
    try await TestHub.run { hub in
      let person = try await listener(hub)
      polls(person)
      try await person.profile.synchronize(account: person.account)
      let ended = Log<Void>()
      let filling = try scripted(person, ended: ended)
      let running = await Running(person)
      await running.waits(.forChanges)
      await eventually("it listens") { filling.entries.count == 1 }
      let token = try hub.token(for: "alice")
      let pushes = Log<Bool>()
      polls(person) { _, request throws(TransportError) in
        guard request.call == .mutations, pushes.add(true) == 1 else { return nil }
        person.device.session.signOut()
        person.device.session.signIn(person.account, token: token)
        return nil
      }
      try await person.write(["mine"], "1")
      try await eventually("it is sent") { try person.profile.pendingSummary().isEmpty }
      await running.waits(.forChanges, passes: 3)
      await eventually("it listens anew") { filling.entries.count == 2 }
      await eventually("the old one is let go of") { ended.entries.count == 1 }
      await running.end()
    }
  }
}
