import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("C: a mutation that the hub refuses")
struct RefusedMutationTests {
  @Test("C1: it is parked with the hub's code, and those of other records go on")
  func parked() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(ids(1...5), "new")
      alice.device.wire.ask(for: "verdicts=applied,rejected", at: .mutations)
      let report = try await alice.sync()
      #expect(report.parked == 1)
      #expect(try await hub.records(of: "alice").map(\.id) == ["r0001", "r0003", "r0004", "r0005"])
      let parked = try alice.profile.parked()
      #expect(parked.map(\.record) == ["r0002"])
      #expect(parked.first?.parked?.reason == .rejected)
      #expect(parked.first?.parked?.code == "bad_base")
      #expect(try alice.profile.outbox().count == 1)
    }
  }

  @Test("C2, C9: nothing of it is deleted: it stays readable, and goes by retry once it is allowed")
  func retained() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(["created"], "mine")
      alice.device.wire.ask(for: "verdicts=rejected", at: .mutations)
      try await alice.sync()
      for _ in 0..<3 { try await alice.sync() }
      #expect(try await hub.records(of: "alice").isEmpty)
      let record = try #require(try alice.profile.record("created"))
      #expect(String(decoding: record.payload, as: UTF8.self) == "mine")
      #expect(record.isPending)
      let entry = try #require(try alice.profile.parked().first)
      #expect(entry.parked?.reason == .rejected)
      #expect(entry.payload == Data("mine".utf8))
      // A parked mutation is not sent by itself.
      alice.device.wire.clear()
      try await alice.sync()
      #expect(try await hub.records(of: "alice").isEmpty)
      try await alice.profile.retry(entry.mutation, account: alice.account)
      try await alice.sync()
      #expect(try await hub.texts(of: "alice") == ["created": "mine"])
      #expect(try alice.profile.outbox().isEmpty)
      #expect(try alice.profile.record("created")?.isPending == false)
    }
  }

  @Test("C3: a payload beyond the hub's limit is refused when it is enqueued, and leaves no trace")
  func oversized() async throws {
    try await TestHub.run(HubLimits(payloadBytes: 10_000)) { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(["fits"], String(repeating: "x", count: 10_000))
      let before = try alice.standing()
      await expect(.payloadTooLarge) {
        try await alice.write(["small", "large"], String(repeating: "x", count: 10_001))
      }
      await expect(.payloadTooLarge) {
        let large = Data(count: StoreLimits.payloadByteCountCeiling + 1)
        try await alice.profile.enqueue(.put("huge", large), account: alice.account)
      }
      #expect(try alice.standing() == before)
      try await alice.sync()
      #expect(try await hub.records(of: "alice").map(\.id) == ["fits"])
    }
  }

  @Test("C3: a batch that is larger than a push may be is sent in parts, all in order")
  func splitting() async throws {
    try await TestHub.run(HubLimits(pushBytes: 200_000, payloadBytes: 10_000)) { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(ids(1...100), String(repeating: "x", count: 9_000))
      try await alice.sync()
      let bodies = alice.device.wire.requests.filter { $0.call == .mutations }
        .compactMap { $0.body?.count }
      #expect(bodies.count >= 5)
      #expect(bodies.allSatisfy { $0 <= 200_000 })
      let records = try await hub.records(of: "alice")
      #expect(records.map(\.id) == ids(1...100))
      #expect(records.map(\.version) == Array(1...100))
    }
  }

  @Test("C5: what follows it on the same record waits with it, and other records flow")
  func followersWait() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(["r"], "first")
      try await alice.write(["other"], "one")
      try await alice.write(["r"], "second")
      alice.device.wire.ask(for: "verdicts=rejected", at: .mutations)
      try await alice.sync()
      alice.device.wire.clear()
      try await alice.write(["r"], "third")
      try await alice.write(["other"], "two")
      try await alice.sync()
      #expect(try await hub.texts(of: "alice") == ["other": "two"])
      let waiting = try alice.profile.outbox()
      #expect(
        waiting.map { $0.payload.map { String(decoding: $0, as: UTF8.self) } } == [
          "first", "second", "third",
        ])
      #expect(waiting.map { $0.parked != nil } == [true, false, false])
      // Decided, they follow in their order.
      try await alice.profile.retry(waiting[0].mutation, account: alice.account)
      alice.device.wire.clear()
      try await alice.sync()
      #expect(try alice.pushes().joined().map(\.id) == ["r", "r", "r"])
      #expect(try await hub.texts(of: "alice") == ["other": "two", "r": "third"])
    }
  }
}
