import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("E: an answer that is lost, or comes too late")
struct LostAnswerTests {
  private func device(_ hub: TestHub) async throws -> Person {
    let alice = try await Device(hub).signIn()
    try await alice.sync()
    return alice
  }

  /// The verdicts that come over the wire.
  private func noteVerdicts(on wire: Wire) -> Log<MutationStatus> {
    let verdicts = Log<MutationStatus>()
    wire.after { _, request, response throws(TransportError) in
      guard request.call == .mutations else { return }
      response.change(PushAnswer.self) { for result in $0.results { verdicts.add(result.status) } }
    }
    return verdicts
  }

  @Test("E1: the hub commits and drops the connection: the effect is there once")
  func dropped() async throws {
    try await TestHub.run { hub in
      let alice = try await device(hub)
      try await alice.write(["counter"], "1")
      alice.device.wire.ask(for: "drop-after-commit", at: .mutations)
      await expect(.hubUnreachable) { try await alice.sync() }
      #expect(try await hub.highWater(of: "alice") == 1)
      #expect(try alice.profile.outbox().count == 1)
      alice.device.wire.clear()
      let verdicts = noteVerdicts(on: alice.device.wire)
      try await alice.sync()
      #expect(verdicts.entries == [.duplicate])
      #expect(try await hub.highWater(of: "alice") == 1)
      #expect(try alice.profile.outbox().isEmpty)
      #expect(try alice.profile.record("counter")?.version == 1)
    }
  }

  @Test("E2: a hub that is slower than the client's patience three times: one effect, acknowledged")
  func slow() async throws {
    try await TestHub.run { hub in
      let alice = try await device(hub)
      try await alice.write(["r"], "new")
      let pushes = Log<Void>()
      alice.device.wire.before { _, request throws(TransportError) in
        if request.call == .mutations, pushes.add(()) <= 3 {
          request.headers.append(HeaderField(HubHeader.fault, "delay=600000"))
          request.timeout = .milliseconds(100)
        }
        return nil
      }
      for _ in 1...3 {
        let error = await expect(.hubUnreachable) { try await alice.sync() }
        #expect(error?.cause?.code == .timedOut)
        #expect(error?.retryClass == .later)
      }
      try await alice.sync()
      #expect(pushes.entries.count == 4)
      #expect(try await hub.highWater(of: "alice") == 1)
      #expect(try alice.profile.outbox().isEmpty)
    }
  }

  @Test("E3: a batch that has grown since its answer was lost: its first ten are duplicates")
  func grownBatch() async throws {
    try await TestHub.run { hub in
      let alice = try await device(hub)
      try await alice.write(ids(1...10), "new")
      alice.device.wire.ask(for: "drop-after-commit", at: .mutations)
      await expect(.hubUnreachable) { try await alice.sync() }
      try await alice.write(ids(11...13), "new")
      alice.device.wire.clear()
      let verdicts = noteVerdicts(on: alice.device.wire)
      try await alice.sync()
      #expect(
        verdicts.entries == Array(repeating: .duplicate, count: 10)
          + Array(repeating: .applied, count: 3))
      #expect(try alice.pushes().count == 1)
      #expect(try await hub.records(of: "alice").map(\.id) == ids(1...13))
      #expect(try await hub.highWater(of: "alice") == 13)
    }
  }

  @Test("E5: two registries and another process on one area: every mutation once, in order")
  func twoSenders() async throws {
    try await TestHub.run(HubLimits(pushMutations: 3)) { hub in
      let directory = try TemporaryDirectory()
      let device = try Device(hub, keeping: .app, in: directory)
      let alice = try await device.signIn()
      let second = try ProfileRegistry(
        directory: directory.url, session: device.session,
        configuration: .init(recordKeeping: .app))
      second.connect(to: device.wire)
      let beside = try await second.profile(for: alice.account)
      // One record only: any other order would be seen.
      for number in 1...40 { try await alice.write(["r"], "\(number)") }
      let app = directory.url.appending(path: "app.json").path
      async let child = CaseChild.run(
        "pass", hub, directory.url, as: "alice", ["ordinary", app, "-"])
      try await withThrowingTaskGroup { group in
        for number in 0..<8 {
          group.addTask {
            let profile = number.isMultiple(of: 2) ? alice.profile : beside
            try await profile.synchronize(account: alice.account) { batch in
              _ = try batch.changes(localOwner: alice.account.bytes)
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await child.ending == .exited(0))
      #expect(try alice.profile.outbox().isEmpty)
      #expect(try await hub.highWater(of: "alice") == 40)
      #expect(try await hub.texts(of: "alice") == ["r": "40"])
      // What went over this process's wire was sent once, and grew.
      let orders = try alice.pushes().joined().map(\.order)
      #expect(orders == orders.sorted())
      #expect(Set(orders).count == orders.count)
    }
  }
}
