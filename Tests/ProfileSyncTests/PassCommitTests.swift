import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

/// What a pass costs: durable commits, counted.
@Suite("Synchronize: durable commits")
struct PassCommitTests {
  private static func commits(
    _ person: Person, of pass: () async throws -> Void
  ) async throws -> Int {
    let commits = Log<Bool>()
    person.profile.area.onCommit.withLock { hook in
      hook = { if $0 == .committed { commits.add(true) } }
    }
    try await pass()
    person.profile.area.onCommit.withLock { $0 = nil }
    return commits.entries.count
  }

  @Test("a pass with nothing to do commits nothing; how it ended is noted every five minutes")
  func nothing() async throws {
    try await TestHub.run { hub in
      let time = TestTime()
      let person = try await Device(hub, now: { time.now }).signIn()
      try await person.send(["a"], "first")
      for (seconds, count) in [(0.0, 0), (299, 0), (1, 1), (0, 0), (-10, 1), (5, 0)] {
        time.advance(by: seconds)
        #expect(try await Self.commits(person) { try await person.pass() } == count)
      }
      // One that ends otherwise is noted at once, and once.
      person.device.wire.before { _, _ throws(TransportError) in
        throw TransportError(code: .unreachable, description: "offline")
      }
      for count in [1, 0, 0] {
        #expect(
          try await Self.commits(person) {
            await expect(.hubUnreachable) { try await person.pass() }
          } == count)
      }
      person.device.wire.clear()
      #expect(try await Self.commits(person) { try await person.pass() } == 1)
    }
  }

  @Test("of several batches each costs one at most: it settles some, and remembers the next ones")
  func batches() async throws {
    try await TestHub.run(HubLimits(pushMutations: 5)) { hub in
      let person = try await Device(hub).signIn()
      try await person.send(["a"], "first")
      try await person.write(ids(1...20), "mine")
      // One before the first, one after each of the four, and one page of them all; those that are
      // answered while one is settled share the next.
      #expect((4...6).contains(try await Self.commits(person) { try await person.pass() }))
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a verdict that holds others back costs no commit more")
  func refusedBetween() async throws {
    try await TestHub.run(HubLimits(pushMutations: 5)) { hub in
      let person = try await Device(hub).signIn()
      try await person.send(["a"], "first")
      try await person.write(ids(1...30), "mine")
      person.device.wire.clear()
      person.device.wire.before { number, request throws(TransportError) in
        if [2, 4].contains(number) {
          request.headers.append(HeaderField(HubHeader.fault, "verdicts=rejected"))
        }
        return nil
      }
      // One before the first, one after each of the six, and one page of them all.
      #expect((5...8).contains(try await Self.commits(person) { try await person.pass() }))
      #expect(try person.profile.pendingSummary().parked == 2)
      #expect(try person.profile.pendingSummary().count == 2)
    }
  }

  @Test("what was remembered before it was sent is sent with that number")
  func remembered() async throws {
    try await TestHub.run(HubLimits(pushMutations: 5)) { hub in
      let person = try await Device(hub).signIn()
      try await person.send(["a"], "first")
      try await person.write(ids(1...25), "mine")
      person.device.wire.clear()
      person.device.wire.before { number, request throws(TransportError) in
        // The third batch does not get through.
        if number == 4 { throw TransportError(code: .unreachable, description: "offline") }
        return nil
      }
      await expect(.hubUnreachable) { try await person.pass() }
      // The first commit has remembered all five: one that goes and four behind it.
      let numbers = [UInt64](repeating: 1, count: 15)
      #expect(try person.profile.outbox().map(\.firstSent) == numbers)
      person.device.wire.clear()
      try await person.pass()
      let pushed = try person.device.wire.requests.compactMap { try $0.push }
      #expect(pushed.flatMap(\.mutations).map(\.firstSent) == numbers)
    }
  }

  @Test("no more than seven batches are remembered before the first of them is settled")
  func rememberedAtMost() async throws {
    try await TestHub.run(HubLimits(pushMutations: 5)) { hub in
      let person = try await Device(hub).signIn()
      try await person.send(["a"], "first")
      try await person.write(ids(1...50), "mine")
      person.device.wire.clear()
      person.device.wire.before { number, request throws(TransportError) in
        if number == 2 { throw TransportError(code: .unreachable, description: "offline") }
        return nil
      }
      await expect(.hubUnreachable) { try await person.pass() }
      #expect(
        try person.profile.outbox().map(\.firstSent)
          == [UInt64?](repeating: 1, count: 35) + [UInt64?](repeating: nil, count: 15))
    }
  }

  @Test(
    "a page costs one at most; a batch costs one before it goes, one for its verdicts, and its page"
  )
  func work() async throws {
    try await TestHub.run(HubLimits(pullRecords: 5)) { hub in
      let person = try await Device(hub).signIn()
      try await person.send(["a"], "first")
      let other = try await Device(hub).signIn()
      try await other.send(ids(1...10), "other's")
      // Pages that come while one is committed share the next commit.
      #expect((1...2).contains(try await Self.commits(person) { try await person.pass() }))
      try await person.write(ids(1...5), "mine")
      #expect(try await Self.commits(person) { try await person.pass() } == 3)
      // What it has noted is what it knows: as far as it has pulled.
      let details = try person.profile.cursor()
      #expect(details?.sequence == 16)
    }
  }
}
