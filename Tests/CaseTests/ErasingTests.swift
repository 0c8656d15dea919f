import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

@Suite("K: erasing, and taking over what a guest made")
struct ErasingTests {
  @Test(
    "K1: an erase cut off anywhere is finished, leaves no path of the area, and touches no other",
    arguments: [OwnershipStep.eraseIntended, .eraseMarked, .eraseRenamed])
  func erasing(_ step: OwnershipStep) async throws {
    try await TestHub.run { hub in
      let directory = try TemporaryDirectory()
      let areas = try await makeAreas(of: ["alice", "bob", "carol"], at: directory.url, hub)
      let others = try areas.dropFirst().map { try contents(of: $0.path) }
      let child = try await CaseChild.run(
        "step", hub, directory.url, as: "alice", [step.rawValue, "erase"])
      #expect(child.ending == .signal(SIGKILL), "\(child.lines)")
      let registry = try ProfileRegistry(directory: directory.url, session: AppSession())
      let alice = try AccountID("alice")
      let hers = try await registry.profiles().first { $0.owner?.id == alice }
      if step == .eraseIntended {
        // It was not begun for good: everything of hers is there, and the call can be repeated.
        let owner = try #require(hers?.owner)
        #expect(hers?.pending.count == 1)
        try await registry.erase(owner, discardingPending: true)
      } else {
        #expect(hers == nil)
      }
      let id = areas[0].id.description
      let left = try FileManager.default.subpathsOfDirectory(atPath: directory.url.path)
        .filter { $0.contains(id) }
      #expect(left == [])
      #expect(try files(under: directory.url.path, with: "of alice") == 0)
      for (area, before) in zip(areas.dropFirst(), others) {
        #expect(try contents(of: area.path) == before)
      }
      #expect(try await registry.profiles().count == 2)
    }
  }

  @Test("K2: a sign-in takes over nothing unless it is said")
  func notUnasked() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let guest = try await device.registry.unownedProfile()
      try await guest.enqueue(.put("draft", Data("guest's".utf8)), account: nil)
      let token = try hub.token(for: "alice")
      let account = try await device.registry.verify(token: token)
      do {
        try await guest.bindAccount(account)
        Issue.record("unowned data was taken over unasked")
      } catch let error as StoreError {
        #expect(error.code == .unownedDataPresent)
        #expect(error.unowned?.mutations == 1)
      }
      #expect(try guest.records().map(\.id) == ["draft"])
      #expect(try guest.owner == nil)
    }
  }

  @Test(
    "K2: cut off anywhere, all of the guest's data is taken over or nothing, and then all of it once",
    arguments: [
      OwnershipStep.bindIntended, .bindWritten, .adoptIntended, .adoptFrozen, .adoptCopied,
      .adoptMoved,
    ])
  func takingOver(_ step: OwnershipStep) async throws {
    let isBinding = [OwnershipStep.bindIntended, .bindWritten].contains(step)
    try await TestHub.run { hub in
      let directory = try TemporaryDirectory()
      if !isBinding { _ = try await makeAreas(of: ["alice"], at: directory.url, hub) }
      try await makeGuest(ids(1...20), at: directory.url)
      let child = try await CaseChild.run(
        "step", hub, directory.url, as: "alice",
        [step.rawValue, isBinding ? "bind" : "adopt"])
      #expect(child.ending == .signal(SIGKILL), "\(child.lines)")
      let device = try Device(hub, in: directory)
      let states = try await device.registry.profiles()
      let isDone = [OwnershipStep.bindWritten, .adoptCopied, .adoptMoved].contains(step)
      let own = states.first { $0.owner != nil }
      let ofAlice = isBinding ? 0 : 1
      #expect((own?.pending.count ?? 0) == (isDone ? 20 + ofAlice : ofAlice))
      let source = states.first { $0.owner == nil }
      if !isDone { #expect(source?.pending.count == 20) }
      let token = try hub.token(for: "alice")
      let account = try await device.registry.verify(token: token)
      device.session.signIn(account, token: token)
      if let source { _ = try await device.registry.adopt(source.area, by: account) }
      let alice = try await device.signIn()
      #expect(try alice.texts().count == 20 + ofAlice)
      try await alice.sync()
      #expect(try await hub.highWater(of: "alice") == UInt64(20 + ofAlice))
      #expect(try alice.profile.outbox().isEmpty)
    }
  }

  @Test("K2: what the account has at the hub is a conflict for each record, and nothing is lost")
  func conflicts() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ids(1...3), "hub's")
      let device = try Device(hub)
      let guest = try await device.registry.unownedProfile()
      for id in ids(2...5) { try await guest.enqueue(.put(id, Data("guest's".utf8)), account: nil) }
      let alice = try await device.signIn()
      _ = try await device.registry.adopt(guest.id, by: alice.account)
      try await alice.sync()
      #expect(
        try await hub.texts(of: "alice") == [
          "r0001": "hub's", "r0002": "hub's", "r0003": "hub's", "r0004": "guest's",
          "r0005": "guest's",
        ])
      let parked = try alice.profile.parked()
      #expect(parked.map(\.record) == ids(2...3))
      #expect(parked.allSatisfy { $0.parked?.reason == .conflict })
      #expect(parked.allSatisfy { $0.payload == Data("guest's".utf8) })
      // Each is decided for itself.
      for (entry, resolution) in zip(parked, [Resolution.keepLocal, .keepHub]) {
        try await alice.profile.resolve(
          entry.mutation, seen: entry.parked?.current?.version, account: alice.account, resolution)
      }
      try await alice.sync()
      #expect(try await hub.texts(of: "alice")["r0002"] == "guest's")
      #expect(try await hub.texts(of: "alice")["r0003"] == "hub's")
      #expect(try alice.texts() == (try await hub.texts(of: "alice")))
      #expect(try alice.profile.outbox().isEmpty)
    }
  }
}
