import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("H: credentials that end, and a hub that asks for patience")
struct CredentialTests {
  @Test("H1: 401 for ever: one refresh, then authentication is asked for, and nothing is lost")
  func refusedForEver() async throws {
    try await TestHub.run { hub in
      let refreshes = Log<Void>()
      let session = AppSession { session in
        session.replaceToken("token \(refreshes.add(()))")
      }
      let alice = try await Device(hub, session: session).signIn()
      try await alice.sync()
      try await alice.write(ids(1...3), "new")
      let before = try alice.standing()
      alice.device.wire.clear()
      alice.device.wire.before { _, _ throws(TransportError) in
        HubResponse.made(401, hub: hub.id, code: .tokenInvalid)
      }
      await expect(.needsAuthentication) { try await alice.sync() }
      #expect(refreshes.entries.count == 1)
      #expect(alice.device.wire.requests.count == 2)
      #expect(try alice.standing() == before)
      alice.device.wire.clear()
      // New credentials, and everything goes.
      session.replaceToken(try hub.token(for: "alice"))
      try await alice.sync()
      #expect(try await hub.records(of: "alice").map(\.id) == ids(1...3))
    }
  }

  @Test("H1: a token that ends between two batches costs no mutation")
  func endsBetween() async throws {
    try await TestHub.run(HubLimits(pushMutations: 2)) { hub in
      let session = AppSession { $0.replaceToken(try freshToken(for: "alice")) }
      let alice = try await Device(hub, session: session).signIn()
      try await alice.sync()
      try await alice.write(ids(1...9), "new")
      let pushes = Log<Void>()
      alice.device.wire.before { _, request throws(TransportError) in
        guard request.call == .mutations, pushes.add(()) == 3 else { return nil }
        return HubResponse.made(401, hub: hub.id, code: .tokenExpired)
      }
      let report = try await alice.sync()
      #expect(report.acknowledged == 9)
      #expect(try await hub.records(of: "alice").map(\.id) == ids(1...9))
      #expect(try await hub.highWater(of: "alice") == 9)
    }
  }

  @Test(
    "H3: what the hub asks to wait reaches whoever plans the next attempt", arguments: [429, 503])
  func asksToWait(_ status: Int) async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      alice.device.wire.before { _, _ throws(TransportError) in
        HubResponse.made(
          status, hub: hub.id, account: "alice",
          code: status == 429 ? .rateLimited : .unavailable, retryAfter: "7")
      }
      let error = try #require(
        await expect(.hubUnavailable) { try await alice.sync() })
      #expect(alice.device.wire.requests.count == 1)
      for failures in 1...10 {
        #expect(RetryPause.after(error, failureCount: failures) == .seconds(7))
      }
    }
  }

  @Test("H3: a thousand clients do not come back at the same moment")
  func spread() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      alice.device.wire.before { _, _ throws(TransportError) in
        throw TransportError(code: .unreachable, description: "an outage")
      }
      let error = try #require(await expect(.hubUnreachable) { try await alice.sync() })
      var generator = Counting()
      var seconds = Array(repeating: 0, count: 64)
      for _ in 0..<1_000 {
        let pause = try #require(
          RetryPause.after(error, failureCount: 7, using: &generator))
        #expect(pause < .seconds(64))
        seconds[Int(pause.components.seconds)] += 1
      }
      // Of 64 seconds each gets its share of some 16, none three times that.
      #expect(seconds.allSatisfy { (1...48).contains($0) })
    }
  }

  /// Chance that is the same in every run.
  private struct Counting: RandomNumberGenerator {
    var state: UInt64 = 1
    mutating func next() -> UInt64 {
      // The constants are those of a known generator: Steele, Lea and Flood, SplitMix64.
      state &+= 0x9E37_79B9_7F4A_7C15
      var bits = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
      bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
      return bits ^ (bits >> 31)
    }
  }
}
