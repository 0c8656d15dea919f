import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("C, G, H: what goes on by itself")
struct KeepingSynchronizedTests {
  @Test("C4: after one failure the next attempt comes by itself, with no further write")
  func retried() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(["a"], "new")
      let pushes = Log<Void>()
      alice.device.wire.before { _, request throws(TransportError) in
        guard request.call == .mutations, pushes.add(()) == 1 else { return nil }
        return HubResponse.made(503, hub: hub.id, account: "alice", code: .unavailable)
      }
      try await keeping(alice) { clock in
        try await clock.advance(by: .seconds(1)) { try alice.profile.outbox().isEmpty }
        #expect(pushes.entries.count == 2)
        #expect(try await hub.texts(of: "alice") == ["a": "new"])
      }
    }
  }

  @Test("G5: launched without a network, and offline for ten minutes, it goes when there is one")
  func launchedOffline() async throws {
    try await TestHub.run { hub in
      let directory = try TemporaryDirectory()
      _ = try await makeAreas(of: ["alice"], at: directory.url, hub)
      let device = try Device(hub, in: directory)
      let attempts = Log<Void>()
      let network = Gate()
      device.wire.before { _, _ throws(TransportError) in
        attempts.add(())
        guard network.isOpen else {
          throw TransportError(code: .unreachable, description: "no network")
        }
        return nil
      }
      let stored = try #require(try await device.registry.profiles().first?.owner)
      // The token of that time has ended long ago.
      let session = device.session
      session.restore(account: stored.bytes, token: try hub.token(for: "alice"))
      let profile = try await device.registry.currentProfile()
      let alice = Person(account: stored, profile: profile, device: device)
      try await keeping(alice) { clock in
        // It tries again and again all the while.
        await clock.advance(by: .seconds(5)) {
          clock.now.offset >= .seconds(600) && attempts.entries.count >= 8
        }
        #expect(try profile.pendingSummary().count == 1)
        network.open()
        try await clock.advance(by: .seconds(5)) { try profile.outbox().isEmpty }
        #expect(try await hub.texts(of: "alice") == ["mine": "of alice"])
      }
    }
  }

  @Test("H1: refused credentials: one refresh, then no request until there are others")
  func refusedCredentials() async throws {
    try await TestHub.run { hub in
      let refreshes = Log<Void>()
      let session = AppSession { session in
        session.replaceToken("token \(refreshes.add(()))")
      }
      let alice = try await Device(hub, session: session).signIn()
      try await alice.sync()
      try await alice.write(ids(1...3), "new")
      alice.device.wire.clear()
      alice.device.wire.before { _, request throws(TransportError) in
        let isValid = request.headers.contains {
          $0.name == HubHeader.authorization && !$0.value.hasPrefix("Bearer token")
        }
        return isValid && !refreshes.entries.isEmpty
          ? nil : HubResponse.made(401, hub: hub.id, code: .tokenInvalid)
      }
      try await keeping(alice, stopping: .reporting) { clock in
        await clock.advance(by: .seconds(5)) { alice.device.wire.requests.count == 2 }
        await clock.advance(by: .seconds(30)) { clock.now.offset >= .seconds(3_600) }
        #expect(alice.device.wire.requests.count == 2)
        #expect(refreshes.entries.count == 1)
        #expect(try alice.profile.pendingSummary().count == 3)
        session.replaceToken(try freshToken(for: "alice"))
        try await clock.advance(by: .seconds(5)) { try alice.profile.outbox().isEmpty }
        #expect(try await hub.records(of: "alice").map(\.id) == ids(1...3))
      }
    }
  }

  @Test("H3: what the hub asks to wait is waited", arguments: [429, 503])
  func waits(_ status: Int) async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      let clock = ManualClock()
      let times = Log<Duration>()
      alice.device.wire.before { _, _ throws(TransportError) in
        guard times.add(clock.now.offset) == 1 else { return nil }
        return HubResponse.made(
          status, hub: hub.id, account: "alice",
          code: status == 429 ? .rateLimited : .unavailable, retryAfter: "7")
      }
      try await keeping(alice, by: clock) { clock in
        await clock.advance(by: .milliseconds(500)) { times.entries.count >= 2 }
        #expect(times.entries[1] - times.entries[0] >= .seconds(7))
      }
    }
  }

  @Test("A15: a change for an account that is not the active one is brought to its area, unseen")
  func backgroundLoop() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      let bob = try await device.signIn("bob")
      let background = AppSession()
      background.signIn(alice.account, token: try hub.token(for: "alice"))
      let profile = try await device.registry.profile(for: alice.account, session: background)
      let watching = Person(account: alice.account, profile: profile, device: device)
      let state = device.session.state
      try await keeping(watching) { clock in
        try await clock.advance(by: .seconds(5)) { try profile.cursor() != nil }
        let desk = try await Person.withRecords(hub, ["a"], "news")
        try await clock.advance(by: .seconds(5)) { try !profile.records().isEmpty }
        #expect(device.session.state == state)
        #expect(try await device.registry.currentProfile().id == bob.profile.id)
        #expect(try bob.texts().isEmpty)
        // Signed out in the background, it sends nothing.
        background.signOut()
        try await desk.send(["b"], "more")
        device.wire.clear()
        await clock.advance(by: .seconds(60)) { clock.now.offset >= .seconds(3_600) }
        #expect(device.wire.requests.isEmpty)
        background.signIn(alice.account, token: try freshToken(for: "alice"))
        try await clock.advance(by: .seconds(5)) { try profile.records().count == 2 }
      }
      #expect(device.session.state == state)
    }
  }

  /// Runs the loop beside a body, and ends it.
  private func keeping(
    _ person: Person, by clock: ManualClock = ManualClock(),
    stopping: SyncPace.Stopping = .throwing, _ body: (ManualClock) async throws -> Void
  ) async throws {
    let loop = Task {
      try await person.profile.keepSynchronized(
        account: person.account,
        pace: SyncPace(stopping: stopping, clock: clock, chance: { 0.5 }))
    }
    do { try await body(clock) } catch {
      loop.cancel()
      throw error
    }
    loop.cancel()
    await #expect(throws: CancellationError.self) { try await loop.value }
  }
}

extension ManualClock {
  /// Lets time pass until something has come about.
  func advance(
    by step: Duration, sourceLocation: SourceLocation = #_sourceLocation,
    until holds: () throws -> Bool
  ) async rethrows {
    try await eventually("time has passed", sourceLocation: sourceLocation) {
      if try holds() { return true }
      advance(by: step)
      return false
    }
  }
}
