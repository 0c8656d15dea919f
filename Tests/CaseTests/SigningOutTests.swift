import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("B: signing out with something pending")
struct SigningOutTests {
  @Test("B1: it is said how much waits; erasing refuses with the number unless told otherwise")
  func erasingWhilePending() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn()
      try await alice.send(["sent"], "first")
      try await alice.write(ids(1...5), "waits")
      device.session.signOut()
      #expect(try alice.profile.pendingSummary().count == 5)
      let before = try contents(of: alice.profile.area.directory)
      do {
        try await device.registry.erase(alice.account)
        Issue.record("an area with pending mutations was erased")
      } catch let error as StoreError {
        #expect(error.code == .pendingMutations)
        #expect(error.pending?.count == 5)
      }
      #expect(try contents(of: alice.profile.area.directory) == before)
      try device.switchTo(alice)
      #expect(try alice.texts().count == 6)
      try await device.registry.erase(alice.account, discardingPending: true)
      #expect(try await device.registry.profiles().isEmpty)
      #expect(try await hub.records(of: "alice").map(\.id) == ["sent"])
    }
  }

  @Test("B2: what was enqueued offline survives a sign-out and a killed process, and goes once")
  func survives() async throws {
    try await TestHub.run { hub in
      let directory = try TemporaryDirectory()
      let child = try await CaseChild.run(
        "enqueue", hub, directory.url, as: "alice", ["5", "r", "end"])
      #expect(child.lines.last == "stored 5")
      #expect(child.ending == .signal(SIGKILL))
      let device = try Device(hub, in: directory)
      #expect(try await device.registry.profiles().map(\.pending.count) == [5])
      let owner = try #require(try await device.registry.profiles().first?.owner)
      let closed = try await device.registry.profileForMaintenance(of: owner)
      #expect(try closed.pendingSummary().count == 5)
      await expect(.notSignedIn) { _ = try closed.outbox() }
      let alice = try await device.signIn()
      #expect(try alice.profile.outbox().count == 5)
      try await alice.sync()
      #expect(try await hub.records(of: "alice").map(\.version) == [1, 2, 3, 4, 5])
      device.session.signOut()
      let again = try await device.signIn()
      try await again.sync()
      #expect(try await hub.highWater(of: "alice") == 5)
    }
  }

  @Test("B5: 200 switches without a pause: who reads sees the own records, or is refused")
  func switchingFast() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let people = [try await device.signIn("alice"), try await device.signIn("bob")]
      for person in people {
        try device.switchTo(person)
        try await person.write(ids(1...3), person.account.id.text)
      }
      let tokens = try people.map { try hub.token(for: $0.account.id.text) }
      try await withThrowingTaskGroup { group in
        let isOver = Gate()
        for person in people {
          for _ in 0..<2 {
            group.addTask {
              while !isOver.isOpen {
                Self.read(person)
                await Task.yield()
              }
            }
          }
        }
        for number in 0..<200 {
          device.session.signOut()
          let next = number % 3 == 2 ? 1 : 0
          device.session.signIn(people[next].account, token: tokens[next])
          let profile = try await device.registry.currentProfile()
          #expect(profile.id == people[next].profile.id)
          #expect(try profile.records().map(\.payload) == Self.payloads(people[next]))
          if number % 10 == 0 {
            try await profile.enqueue(
              .put("r0001", Data(people[next].account.id.text.utf8)), account: people[next].account)
          }
        }
        isOver.open()
        try await group.waitForAll()
      }
    }
  }

  private static func payloads(_ person: Person) -> [Data] {
    Array(repeating: Data(person.account.id.text.utf8), count: 3)
  }

  private static func read(_ person: Person) {
    do {
      #expect(try person.profile.records().map(\.payload) == payloads(person))
    } catch let error as StoreError {
      #expect([.notSignedIn, .anotherAccountSignedIn].contains(error.code))
    } catch { Issue.record(error) }
  }
}
