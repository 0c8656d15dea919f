import Foundation
import HubProtocol
import ProfileStore
import Simulation
import Testing

@Suite("A check of the simulator")
struct ChecksTests {
  private let first = UUID()
  private let second = UUID()

  private func standing(
    _ cursor: Cursor? = nil, position: UInt64 = 0, applied: [RecordID: AreaStanding.Mark] = [:]
  ) -> AreaStanding {
    AreaStanding(
      owner: nil, state: .active, cursor: cursor, position: position, outbox: [],
      applied: applied, isScanning: false)
  }

  private func monotony(
    _ before: AreaStanding, _ after: AreaStanding, left: Set<UUID> = []
  ) -> [Violation.Check] {
    Checks.monotony(before: before, after: after, left: left, place: "here").map(\.check)
  }

  @Test("finds a stranger's canary, and only that")
  func isolation() {
    let own = CanarySet([Canary(1), Canary(200)])
    #expect(Checks.isolation(found: own, allowed: own, place: "here").isEmpty)
    #expect(Checks.isolation(found: CanarySet(), allowed: CanarySet(), place: "here").isEmpty)
    let found = Checks.isolation(
      found: CanarySet([Canary(1), Canary(2)]), allowed: own, place: "here")
    #expect(found == [Violation(.isolation, "here has bytes of 2")])
  }

  @Test("misses an accepted mutation that waits nowhere")
  func keeping() {
    #expect(Checks.keeping(accepted: [first], waiting: [first, second], place: "here").isEmpty)
    let found = Checks.keeping(accepted: [first, second], waiting: [second], place: "here")
    #expect(found.map(\.check) == [.keeping])
    #expect(found[0].detail.contains(first.uuidString))
  }

  @Test("finds a refused mutation")
  func refusing() {
    #expect(Checks.refusing(refused: [first], found: [second], place: "here").isEmpty)
    #expect(
      Checks.refusing(refused: [first], found: [second, first], place: "here").map(\.check)
        == [.refusing])
  }

  @Test("sees a cursor that goes back, is lost, or returns to a left epoch")
  func cursor() {
    let (low, high) = (Cursor(epoch: first, sequence: 3), Cursor(epoch: first, sequence: 4))
    let other = Cursor(epoch: second, sequence: 1)
    #expect(monotony(standing(nil), standing(low)).isEmpty)
    #expect(monotony(standing(low), standing(low)).isEmpty)
    #expect(monotony(standing(low), standing(high)).isEmpty)
    #expect(monotony(standing(high), standing(other)).isEmpty)
    #expect(monotony(standing(high), standing(low)) == [.monotony])
    #expect(monotony(standing(high), standing(nil)) == [.monotony])
    #expect(monotony(standing(other), standing(high), left: [first]) == [.monotony])
  }

  @Test("sees a version, or a position, that goes back")
  func metadata() {
    func marked(_ epoch: UUID, _ version: UInt64) -> AreaStanding {
      standing(applied: ["a": AreaStanding.Mark(epoch: epoch, version: version)])
    }
    #expect(monotony(marked(first, 1), marked(first, 2)).isEmpty)
    #expect(monotony(marked(first, 2), marked(second, 1)).isEmpty)
    #expect(monotony(marked(first, 2), marked(first, 1)) == [.monotony])
    #expect(monotony(standing(position: 1), standing(position: 2)).isEmpty)
    #expect(monotony(standing(position: 2), standing(position: 1)) == [.monotony])
  }

  @Test("sees an owner that changes or goes, and one who has two areas")
  func ownership() {
    let (ada, bob) = (Data(repeating: 1, count: 20), Data(repeating: 2, count: 20))
    func checks(_ before: Data?, _ after: Data?) -> [Violation.Check] {
      Checks.ownership(before: before, after: after, place: "here").map(\.check)
    }
    #expect(checks(nil, nil).isEmpty)
    #expect(checks(nil, ada).isEmpty)
    #expect(checks(ada, ada).isEmpty)
    #expect(checks(ada, bob) == [.ownership])
    #expect(checks(ada, nil) == [.ownership])
    #expect(Checks.oneArea(owners: [ada, bob], place: "here").isEmpty)
    #expect(Checks.oneArea(owners: [ada, bob, ada], place: "here").map(\.check) == [.ownership])
  }

  @Test("finds each record that a caught-up device has otherwise")
  func catchingUp() {
    let hub: [RecordID: Data] = ["a": Data([1]), "b": Data([2])]
    #expect(Checks.catchingUp(device: hub, hub: hub, place: "here").isEmpty)
    #expect(
      Checks.catchingUp(device: ["a": Data([1])], hub: hub, place: "here").map(\.check)
        == [.catchingUp])
    #expect(
      Checks.catchingUp(
        device: ["a": Data([9]), "b": Data([2]), "c": Data()], hub: hub, place: "here"
      ).map(\.check) == [.catchingUp, .catchingUp])
  }
}
