import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension Outbox {
  @Suite("numbers and keys that a broken disk has changed")
  struct DamagedNumbers {
    let store: TemporaryStore
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      store.expectDamage()
      var limits = StoreLimits()
      limits.acknowledgedAgeMax = .infinity
      (ada, profile) = try await store.signedInProfile(
        "ada", in: try store.registry(limits: limits))
    }

    private func write(_ bytes: [UInt8], for key: [UInt8], in table: String) async throws {
      let table = try profile.area.environment.table(
        table, key: BytesCodec.self, value: BytesCodec.self)
      try await profile.area.environment.write { try $0.put(bytes, for: key, in: table) }
    }

    private func put() async throws -> UUID {
      try await profile.enqueue(.put("a", Data("p".utf8)), account: ada).mutation
    }

    @Test("sums below what is taken out: an error, and nothing changes")
    func sumsTooSmall() async throws {
      let mutation = try await put()
      try await profile.park(mutation)
      // As if nothing were parked and no byte there, up to an order behind that of the mutation.
      let sums = Array(repeating: 0, count: 16) + [0, 0, 0, 0, 0, 0, 0, 9] as [UInt8]
      try await write(
        sums + Array(repeating: 0, count: 8), for: Array("totals".utf8), in: "values")
      let before = try profile.dump()
      #expect(
        await code {
          try await profile.decide(mutation, account: ada, .merged(Data()))
        } == .damaged)
      #expect(await code { try await profile.retry(mutation, account: ada) } == .damaged)
      #expect(await code { try await profile.acknowledge(mutation, version: 1) } == .damaged)
      #expect(try profile.dump() == before)
    }

    @Test("sums and counters at their end: an error, and nothing changes")
    func countersAtEnd() async throws {
      let mutation = try await put()
      let end = Array(repeating: UInt8.max, count: 8)
      try await write(end, for: Array("lastAcknowledged".utf8), in: "values")
      #expect(await code { try await profile.acknowledge(mutation, version: 1) } == .damaged)
      let none = Array(repeating: 0, count: 8) as [UInt8]
      try await write(none + none + end + none, for: Array("totals".utf8), in: "values")
      #expect(await code { _ = try await put() } == .damaged)
      try await write(none + none + none + end, for: Array("totals".utf8), in: "values")
      #expect(await code { _ = try await put() } == .damaged)
      try await write(end + end + end + end, for: Array("totals".utf8), in: "values")
      #expect(await code { _ = try await put() } == .outboxFull)
      #expect(try profile.outbox().map(\.mutation) == [mutation])
    }

    @Test("a key of the outbox that is too short: an error", arguments: [1, 7, 9])
    func shortKey(_ count: Int) async throws {
      _ = try await put()
      try await write([1], for: Array(repeating: UInt8.max, count: count), in: "outbox")
      #expect(await code { _ = try profile.outbox() } == .damaged)
      #expect(await code { _ = try profile.sendable() } == .damaged)
      #expect(await code { _ = try profile.area.violations() } == .damaged)
    }

    @Test("a row of a record that is none: an error", arguments: [0, 1, 23, 25, 39, 41])
    func badRow(_ byteCount: Int) async throws {
      try await write(
        Array(repeating: 0xff, count: byteCount), for: Array("a".utf8), in: "known")
      #expect(await code { _ = try profile.record("a") } == .damaged)
      #expect(await code { _ = try profile.records() } == .damaged)
      #expect(await code { try await profile.pull("a", version: 1, "hub") } == .damaged)
    }

    @Test("a payload that is none, or is not there: an error")
    func badBody() async throws {
      try await profile.pull("a", version: 1, "hub")
      try await write([0, 0, 0], for: [0, 0, 0, 0, 0, 0, 0, 1], in: "bodies")
      #expect(await code { _ = try profile.record("a") } == .damaged)
      let bodies = try profile.area.environment.table(
        "bodies", key: UInt64Codec.self, value: BytesCodec.self)
      try await profile.area.environment.write { _ = try $0.delete(1, in: bodies) }
      #expect(await code { _ = try profile.record("a") } == .damaged)
      #expect(await code { _ = try profile.records() } == .damaged)
    }

    @Test("sums of the payloads below what is taken out: an error, and nothing changes")
    func bodySumsTooSmall() async throws {
      try await profile.pull("a", version: 1, "hub")
      try await write(Array(repeating: 0, count: 32), for: Array("bodies".utf8), in: "values")
      let before = try profile.dump()
      #expect(await code { try await profile.pull("a", version: 2, nil) } == .damaged)
      #expect(await code { try await profile.pull("a", version: 2, "next") } == .damaged)
      #expect(try profile.dump() == before)
    }

    @Test("sums of the payloads at their end, and more epochs than there are: an error")
    func bodySumsAtEnd() async throws {
      let end = Array(repeating: UInt8.max, count: 8)
      let none = Array(repeating: 0, count: 8) as [UInt8]
      for sums in [end + none + none + none, none + end + end + none, end + end + end + end] {
        try await write(sums, for: Array("bodies".utf8), in: "values")
        #expect(await code { try await profile.pull("a", version: 1, "hub") } == .damaged)
        #expect(await code { _ = try profile.area.violations() } == .damaged)
      }
      try await write(none, for: Array("bodies".utf8), in: "values")
      #expect(await code { try await profile.pull("a", version: 1, "hub") } == .damaged)
      let count: [UInt8] = [0, 1, 0, 1]
      let epoch = withUnsafeBytes(of: Hub.epoch.uuid) { Array($0) }
      try await write(
        count + Array(repeating: 7, count: 16 * 65_536) + epoch, for: Array("epochs".utf8),
        in: "values")
      #expect(await code { try await profile.pull("a", version: 1, "hub") } == .damaged)
    }

    @Test("a time beyond every stored number is stored as the last one")
    func lateTime() async throws {
      let mutation = try await put()
      store.clock.advance(by: 1e18)
      try await profile.acknowledge(mutation, version: 1)
      #expect(try profile.acknowledged().map(\.entry.mutation) == [mutation])
    }
  }
}
