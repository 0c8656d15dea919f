import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

@Suite("C: an outbox when the hub, or this device, fails")
struct UnavailableHubTests {
  @Test("C5: a 5xx that nobody knows is for later, and parks nothing", arguments: [520, 524, 598])
  func unknownStatus(_ status: Int) async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(ids(1...3), "new")
      alice.device.wire.before { _, request throws(TransportError) in
        request.call == .mutations ? HubResponse.made(status, contentType: "text/html") : nil
      }
      for _ in 0..<3 {
        let error = await expect(.hubUnavailable) { try await alice.sync() }
        #expect(error?.retryClass == .later)
      }
      #expect(try alice.profile.parked().isEmpty)
      alice.device.wire.clear()
      try await alice.sync()
      #expect(try await hub.records(of: "alice").map(\.id) == ids(1...3))
    }
  }

  @Test(
    "C7: a settlement that cannot be stored is unknown: sent again under the same ID, a duplicate")
  func unsettled() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(ids(1...3), "new")
      let mutations = try alice.profile.outbox().map(\.mutation)
      let area = alice.profile.area
      alice.device.wire.after { _, request, _ throws(TransportError) in
        guard request.call == .mutations else { return }
        area.onCommit.withLock { $0 = { if $0 == .commits { throw AppFailure() } } }
      }
      await #expect(throws: AppFailure.self) { try await alice.sync() }
      area.onCommit.withLock { $0 = nil }
      #expect(try alice.profile.outbox().map(\.mutation) == mutations)
      #expect(try alice.profile.parked().isEmpty)
      alice.device.wire.clear()
      let answers = Log<PushAnswer>()
      alice.device.wire.after { _, request, response throws(TransportError) in
        guard request.call == .mutations else { return }
        response.change(PushAnswer.self) { answers.add($0) }
      }
      try await alice.sync()
      #expect(try alice.pushes().joined().map(\.mutation) == mutations)
      #expect(
        answers.entries.flatMap(\.results).map(\.status) == Array(repeating: .duplicate, count: 3))
      #expect(try alice.profile.outbox().isEmpty)
      #expect(try await hub.highWater(of: "alice") == 3)
    }
  }

  @Test("C10: fifty refusals of the whole hub count against no mutation")
  func outage() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      try await alice.write(ids(1...5), "new")
      // As they are once they have been sent: what was first sent when is noted only once.
      let outage: @Sendable (HubRequest) -> HubResponse? = { request in
        request.call != .mutations
          ? nil
          : HubResponse.made(
            503, hub: hub.id, account: "alice", code: .unavailable, retryAfter: "1")
      }
      alice.device.wire.before { _, request throws(TransportError) in outage(request) }
      await expect(.hubUnavailable) { try await alice.sync() }
      let before = try alice.profile.outbox()
      for _ in 0..<49 { await expect(.hubUnavailable) { try await alice.sync() } }
      #expect(try alice.profile.outbox() == before)
      #expect(before.allSatisfy { $0.parked == nil })
      alice.device.wire.clear()
      let report = try await alice.sync()
      #expect(report.acknowledged == 5)
      #expect(try await hub.records(of: "alice").map(\.id) == ids(1...5))
    }
  }

  @Test("C11: a full outbox says so, loses nothing, and drains")
  func quota() async throws {
    try await TestHub.run { hub in
      var limits = StoreLimits()
      limits.outboxCountMax = 10_000
      let alice = try await Device(hub, limits: limits).signIn()
      try await alice.sync()
      try await alice.profile.enqueue(
        (1...10_000).map { .put(RecordID("r\($0)"), Data("x".utf8)) }, account: alice.account)
      do {
        try await alice.write(["one more"], "x")
        Issue.record("the outbox took more than its limit")
      } catch let error as StoreError {
        #expect(error.code == .outboxFull)
        #expect(error.pending?.count == 10_000)
      }
      #expect(try alice.profile.pendingSummary().count == 10_000)
      #expect(try alice.profile.area.violations() == [])
      try await alice.sync()
      #expect(try alice.profile.pendingSummary().isEmpty)
      #expect(try await hub.highWater(of: "alice") == 10_000)
      try await alice.send(["one more"], "x")
      #expect(try await hub.highWater(of: "alice") == 10_001)
    }
  }
}
