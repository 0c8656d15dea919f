import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("Synchronize: a refresh of the token")
struct TokenRefreshesTests {
  enum Stop: CaseIterable { case cancelled, suspended }

  @Test(
    "goes on to its end when its pass is stopped, and the next pass waits for it",
    arguments: Stop.allCases)
  func goesOn(stop: Stop) async throws {
    try await TestHub.run { hub in
      let (isThere, mayGoOn) = (Gate(), Gate())
      let renewed = try hub.server.token(for: AccountID("alice"), lifetimeSeconds: 1_000)
      let ended = Log<Bool>()
      let session = AppSession { session in
        isThere.open()
        await mayGoOn.wait()
        // The authority has changed the refresh token by now.
        ended.add(Task.isCancelled)
        session.replaceToken(renewed)
      }
      let person = try await Device(hub, session: session).signIn()
      try await person.write(["a"], "first")
      session.replaceToken("bad")
      let first = Task { try await person.profile.synchronize(account: person.account) }
      await isThere.wait()
      switch stop {
      case .cancelled:
        first.cancel()
        await #expect(throws: CancellationError.self) { _ = try await first.value }
      case .suspended:
        try await person.profile.registry.suspend()
        await expect(StoreError.Code.suspended) { _ = try await first.value }
        try await person.profile.registry.resume()
      }
      #expect(ended.entries.isEmpty)
      person.device.wire.clear()
      let next = Task { try await person.profile.synchronize(account: person.account) }
      await eventually("it is refused, too") { person.device.wire.calls.count == 1 }
      mayGoOn.open()
      #expect(try await next.value.acknowledged == 1)
      #expect(ended.entries == [false])
    }
  }

  @Test("is none where another request has brought a new token since")
  func alreadyNew() async throws {
    try await TestHub.run { hub in
      let refreshes = Log<Void>()
      let session = AppSession { _ in refreshes.add(()) }
      let renewed = try hub.server.token(for: AccountID("alice"), lifetimeSeconds: 1_000)
      let person = try await Device(hub, session: session).signIn()
      session.replaceToken("bad")
      person.device.wire.after { number, _, _ throws(TransportError) in
        if number == 1 { session.replaceToken(renewed) }
      }
      try await person.profile.synchronize(account: person.account)
      #expect(refreshes.entries.isEmpty)
      #expect(person.device.wire.calls.prefix(2) == [.session, .session])
    }
  }
}
