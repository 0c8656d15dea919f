import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

/// Counts what is under way at the same time.
private final class Crowd: Sendable {
  private let counts = Mutex((now: 0, most: 0))

  func enter() {
    counts.withLock { counts in
      counts.now += 1
      counts.most = max(counts.most, counts.now)
    }
  }

  func leave() { counts.withLock { $0.now -= 1 } }
  var most: Int { counts.withLock(\.most) }
}

@Suite("G: passes at the same time, cancelled, and within each other")
struct ConcurrencyTests {
  @Test("G1: fifty calls at once all succeed, and their requests never overlap")
  func fiftyCalls() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.write(ids(1...20), "new")
      let crowd = Crowd()
      alice.device.wire.before { _, _ throws(TransportError) in
        crowd.enter()
        return nil
      }
      alice.device.wire.after { _, _, _ throws(TransportError) in crowd.leave() }
      try await withThrowingTaskGroup { group in
        for _ in 0..<50 { group.addTask { try await alice.sync() } }
        try await group.waitForAll()
      }
      #expect(crowd.most == 1)
      #expect(try await hub.highWater(of: "alice") == 20)
      #expect(try alice.profile.outbox().isEmpty)
    }
  }

  @Test("G1: a pass of one account does not wait for one of another account")
  func twoAccounts() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let bob = try await device.signIn("bob")
      try await bob.write(["b"], "his")
      let alice = try await device.signIn("alice")
      try await alice.write(["a"], "hers")
      let (held, mayGo) = (Gate(), Gate())
      let names = [alice, bob].map { PercentEncoding.encode(bytes: $0.account.id.bytes) }
      device.wire.before { _, request throws(TransportError) in
        let isAlices = request.headers.contains {
          $0.name == HubHeader.account && $0.value == names[0]
        }
        if isAlices {
          held.open()
          await mayGo.wait()
        }
        return nil
      }
      let hers = Task { try await alice.sync() }
      await held.wait()
      let background = AppSession()
      background.signIn(bob.account, token: try hub.token(for: "bob"))
      // Hers is under way all the while.
      try await bob.profile.synchronize(account: bob.account, session: background)
      #expect(try await hub.highWater(of: "bob") == 1)
      mayGo.open()
      _ = try await hers.value
      #expect(try await hub.highWater(of: "alice") == 1)
    }
  }

  @Test(
    "G2: cancelled while the hub holds the socket, it gives its place to the next",
    arguments: Call.held)
  func cancelled(at call: Call) async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(["a"], "new")
      let held = Gate()
      alice.device.wire.before { _, request throws(TransportError) in
        if request.call == call {
          request.headers.append(HeaderField(HubHeader.fault, "delay=600000"))
          held.open()
        }
        return nil
      }
      let pass = Task { try await alice.sync() }
      await held.wait()
      let next = Task { try await alice.sync() }
      pass.cancel()
      await #expect(throws: CancellationError.self) { try await pass.value }
      alice.device.wire.clear()
      // The one behind it may still have met the slow hub.
      next.cancel()
      _ = await next.result
      try await alice.sync()
      #expect(try await hub.highWater(of: "alice") == 1)
      #expect(try alice.profile.outbox().isEmpty)
    }
  }

  @Test("G3: a pass within an apply closure is refused at once, enqueue works there")
  func within() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub, keeping: .app).signIn()
      try await alice.pass()
      _ = try await Person.withRecords(hub, ["a"])
      try await alice.profile.synchronize(account: alice.account) { batch in
        await expect(.insideApplyClosure) { try await alice.pass() }
        await withTaskGroup { group in
          group.addTask { await expect(.insideApplyClosure) { try await alice.pass() } }
        }
        async let child = expect(.insideApplyClosure) { try await alice.pass() }
        _ = await child
        try await alice.write(["within"], "new")
        try alice.app.save(batch)
      }
      #expect(try alice.profile.outbox().map(\.record) == ["within"])
      try await alice.pass()
      #expect(try await hub.texts(of: "alice") == ["a": "first", "within": "new"])
    }
  }
}

extension Call {
  /// Where a pass of an area that has pulled before can be held up.
  static let held = [Call.session, .mutations, .changes]
}
