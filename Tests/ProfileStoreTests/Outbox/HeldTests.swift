import Foundation
import HubProtocol
import ProfileStore
import Testing

extension Outbox {
  @Suite("held mutations")
  struct HeldMutations {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      (ada, profile) = try await store.signedInProfile("ada", in: registry)
    }

    private func put(_ record: RecordID) async throws -> UUID {
      try await profile.enqueue(.put(record, Data("p".utf8)), account: ada).mutation
    }

    private func sendable(after order: UInt64 = 0) throws -> [UUID] {
      try profile.area.read {
        try profile.area.batch(after: order, countMax: 500, byteCountMax: 1 << 20, $0)
      }.map(\.mutation)
    }

    @Test("a held one and those behind it of its record are not sent with the others, on any page")
    func batch() async throws {
      let before = try await put("b")
      let held = try await put("a")
      let behind = try await put("a")
      let other = try await put("c")
      #expect(try await profile.hold(held, now: store.clock.now))
      #expect(try sendable() == [before, other])
      let place = try #require(try profile.outbox().first { $0.mutation == held }?.order)
      #expect(try sendable(after: place) == [other])
      // Another object of the same store reads the same.
      let again = try await store.registry().profile(for: ada)
      #expect(try again.outbox().map { $0.held?.attempts } == [nil, 1, nil, nil])
      #expect(try profile.outbox().map(\.mutation) == [before, held, behind, other])
    }

    @Test("its time comes after a pause that doubles from one minute to one hour")
    func pauses() async throws {
      let held = try await put("a")
      for (attempt, seconds) in [(1, 30.0), (2, 60), (3, 120), (7, 1_800), (40, 1_800)] {
        #expect(Held.pause(attempts: attempt, chance: 0) == seconds)
        #expect(Held.pause(attempts: attempt, chance: 1) == seconds * 2)
      }
      #expect(try await profile.hold(held, now: store.clock.now))
      let due = try #require(try profile.nextTryOfHeld())
      #expect(try profile.area.heldMutations(dueAt: due.addingTimeInterval(-1)).isEmpty)
      #expect(try profile.area.heldMutations(dueAt: due).map(\.mutation) == [held])
      // The clock was set back by more than any pause.
      #expect(
        try profile.area.heldMutations(dueAt: due.addingTimeInterval(-3_601)).map(\.mutation)
          == [held])
    }

    @Test("of one record only the first is tried, and none behind a parked one")
    func order() async throws {
      let first = try await put("a")
      let second = try await put("a")
      let parked = try await put("b")
      let behind = try await put("b")
      for mutation in [first, second, behind] {
        #expect(try await profile.hold(mutation, now: store.clock.now))
      }
      try await profile.park(parked)
      let due = store.clock.now.addingTimeInterval(100)
      #expect(try profile.area.heldMutations(dueAt: due).map(\.mutation) == [first])
    }

    @Test("one behind a parked one has no time of its own: no pass would send it")
    func behindParked() async throws {
      let parked = try await put("b")
      let behind = try await put("b")
      #expect(try await profile.hold(behind, now: store.clock.now))
      try await profile.park(parked)
      #expect(try profile.nextTryOfHeld() == nil)
      #expect(try profile.area.heldMutations(dueAt: .distantFuture).isEmpty)
    }

    @Test("counts passes for one first mutation, and from 1 again for another")
    func failing() async throws {
      let (first, second) = (UUID(), UUID())
      let counts = try await [
        profile.area.noteFailing(first), profile.area.noteFailing(first),
        profile.area.noteFailing(second), profile.area.noteFailing(first),
      ]
      #expect(counts == [1, 2, 1, 1])
    }

    @Test("verdicts of others leave the count, its own end it; what is gone is held no more")
    func settled() async throws {
      let held = try await put("a")
      let (failing, third) = (try await put("b"), try await put("c"))
      #expect(try await profile.hold(held, now: store.clock.now))
      let area = profile.area
      #expect(try await area.noteFailing(failing) == 1)
      // Another one that was held is tried in vain, and then taken; so is one behind it.
      #expect(try await profile.hold(held, now: store.clock.now))
      #expect(try await area.noteFailing(failing) == 2)
      try await profile.acknowledge(held, version: 1)
      #expect(try profile.nextTryOfHeld() == nil)
      try await profile.park(third)
      #expect(try await area.noteFailing(failing) == 3)
      #expect(try sendable() == [failing])
      // The hub has put it off, parked it, or has taken it: it did not fail.
      try await area.settle(
        [], epoch: Hub.epoch, highWater: 1, policy: profile.registry.policy, deferred: [failing])
      #expect(try await area.noteFailing(failing) == 1)
      try await profile.park(failing)
      #expect(try await area.noteFailing(failing) == 1)
      let again = try await profile.retry(failing, account: ada)
      #expect(try await area.noteFailing(again) == 1)
      #expect(try await profile.hold(again, now: store.clock.now))
      #expect(try await area.noteFailing(again) == 1)
    }

    @Test("no more are held than a list takes; one that is gone is passed over")
    func room() async throws {
      for number in 0..<PushTrouble.heldCountMax {
        let mutation = try await put(RecordID("r\(number)"))
        #expect(try await profile.hold(mutation, now: store.clock.now))
      }
      let more = try await put("more")
      #expect(try await !profile.hold(more, now: store.clock.now))
      let known = try #require(try profile.outbox().first?.mutation)
      #expect(try await profile.hold(known, now: store.clock.now))
      #expect(try profile.outbox().first?.held?.attempts == 2)
      #expect(try sendable() == [more])
      try await profile.discard(known, account: ada)
      #expect(try await profile.hold(known, now: store.clock.now))
      #expect(try await profile.hold(more, now: store.clock.now))
    }
  }
}

extension Profile {
  /// Holds a mutation as a pass does on which the hub has failed.
  fileprivate func hold(_ mutation: UUID, now: Date) async throws -> Bool {
    try await area.hold(mutation, at: try order(of: mutation) ?? 0, now: now, chance: 0)
  }
}
