import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("erasing a profile")
  struct Erasing {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let adas: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      ada = try verified("ada")
      adas = try await registry.profile(for: ada)
      store.signIn(ada)
    }

    @Test(
      "is a call of its own that names the account; pending and parked refuse it with their counts")
    func pendingRefuses() async throws {
      let mutations = ["a", "b"].map { Mutation.put(RecordID($0), Data([1, 2])) }
      try await adas.enqueue(mutations, account: ada)
      try await adas.park(mutations[0].id)
      let before = try adas.dump()
      let error = try await #require(throws: StoreError.self) { try await registry.erase(ada) }
      #expect(error.code == .pendingMutations)
      #expect(error.pending?.count == 2)
      #expect(error.pending?.parked == 1)
      #expect(error.pending?.payloadByteCount == 4)
      #expect(error.pending?.oldest == store.clock.now)
      #expect(try adas.dump() == before)
      #expect(try registry.index.snapshot().intents.isEmpty)
      #expect(await code { try await registry.erase(verified("bob")) } == .unknownAccount)
    }

    @Test("a mutation enqueued while it asks is not erased unseen")
    func enqueuedMeanwhile() async throws {
      let racing = try store.registry { [adas, ada] in
        guard $0 == .eraseIntended else { return }
        let written = DispatchSemaphore(value: 0)
        Task {
          defer { written.signal() }
          try await adas.enqueue(.put("late", Data()), account: ada)
        }
        written.wait()
      }
      #expect(await code { try await racing.erase(ada) } == .pendingMutations)
      #expect(try adas.outbox().map(\.record) == ["late"])
      #expect(try registry.index.snapshot().intents.isEmpty)
    }

    @Test("with discardingPending everything goes together: files, scratch and tool backups")
    func everythingGoes() async throws {
      try await adas.enqueue(.put("a", Data("canary-erased".utf8)), account: ada)
      let directory = registry.directory(of: adas.id)
      for place in ["scratch", "backups/2026"] {
        try FileManager.default.createDirectory(
          atPath: directory + "/" + place, withIntermediateDirectories: true)
        try Data("canary-erased".utf8).write(
          to: URL(fileURLWithPath: directory + "/" + place + "/file"))
      }
      let scratch = try Scratch(
        area: adas.area, account: ada.bytes, epoch: Hub.epoch, until: 5, place: 0,
        byteCountMax: 1 << 20)
      try await registry.erase(ada, discardingPending: true)
      #expect(try await store.hasOnly([], in: registry))
      #expect(try bytes(under: store.path).range(of: Data("canary-erased".utf8)) == nil)
      withExtendedLifetime(scratch) {}
    }

    @Test("every later transaction of a handle throws erased")
    func handlesThrow() async throws {
      try await registry.erase(ada)
      #expect(await code { try await adas.enqueue(.put("a", Data()), account: ada) } == .erased)
      #expect(await code { _ = try adas.record("a") } == .erased)
      #expect(await code { _ = try adas.owner } == .erased)
      #expect(await code { _ = try adas.pendingSummary() } == .erased)
      #expect(await code { try await adas.discard(UUID(), account: ada) } == .erased)
      #expect(await code { try await adas.bindAccount(ada) } == .erased)
      #expect(
        await code { _ = try adas.table("t", key: TextCodec.self, value: TextCodec.self) }
          == .erased)
      #expect(await code { try await registry.erase(ada) } == .unknownAccount)
    }

    @Test("first writes erased into the area, and the files go once nobody holds it")
    func heldFilesGoLater() async throws {
      let directory = registry.directory(of: adas.id)
      do {
        // As another process that has it open.
        let holder = try FileLock.shared(directory + "/holders.lock")
        try await registry.erase(ada)
        #expect(await code { _ = try adas.owner } == .erased)
        #expect(try await registry.profiles().first { $0.area == adas.id }?.state == .erased)
        #expect(try store.entries() == [adas.id.description])
        // It counts as none: a fresh area is provisioned beside it.
        let second = try await registry.profile(for: ada)
        #expect(second.id != adas.id)
        #expect(try registry.index.area(of: ada.bytes) == second.id)
        try await registry.erase(ada)
        withExtendedLifetime(holder) {}
      }
      // At the next open it goes.
      #expect(try await store.hasOnly([], in: try store.registry()))
    }

    @Test("an area that says erased is removed also when the registry is lost")
    func erasedAndRegistryLost() async throws {
      let other = try TemporaryStore()
      do {
        let registry = try other.registry()
        let profile = try await registry.profile(for: ada)
        try profile.area.markErased()
      }
      try FileManager.default.removeItem(atPath: other.path + "/registry")
      let registry = try other.registry()
      #expect(try await other.hasOnly([], in: registry))
      #expect(try await registry.profile(for: ada).owner == ada)
    }

    @Test("an area that says erased counts as none: profile(for:) needs the hub's word again")
    func countsAsNone() async throws {
      try await registry.erase(ada)
      #expect(await code { _ = try await registry.profile(for: ada.remembered) } == .proofRequired)
      let second = try await registry.profile(for: ada)
      #expect(second.id != adas.id)
      #expect(try second.waiting().isEmpty)
    }

    @Test(
      "unowned areas are erased by name, the current one, one set aside and one that was adopted")
    func unownedByName() async throws {
      let adopted = try await store.guest(in: registry, puts: ["a"])
      try await adopted.bindAccount(ada, adoptingUnownedData: true)
      let aside = try await store.guest(in: registry, puts: ["b"])
      try await registry.setAsideUnowned(decidedBy: ada)
      let current = try await store.guest(in: registry, puts: ["c"])
      try await registry.eraseUnowned(adopted.id)
      for area in [aside.id, current.id] {
        #expect(await code { try await registry.eraseUnowned(area) } == .pendingMutations)
        try await registry.eraseUnowned(area, discardingPending: true)
        #expect(await code { try await registry.eraseUnowned(area) } == .unknownArea)
      }
      #expect(try await store.hasOnly([adas.id], in: registry))
      #expect(
        await code { try await registry.eraseUnowned(adas.id, discardingPending: true) }
          == .ownedByAnotherAccount)
    }

    @Test("entries of the app's own tables are not erased with an unowned area unless it is said")
    func appEntriesRefuse() async throws {
      let guest = try await store.guest(in: registry, puts: [])
      let table = try guest.table("notes", key: TextCodec.self, value: TextCodec.self)
      try await guest.area.write { try $0.put("v", for: "k", in: table) }
      let error = try await #require(throws: StoreError.self) {
        try await registry.eraseUnowned(guest.id)
      }
      #expect(error.code == .pendingMutations)
      #expect(error.unowned?.appEntries == 1)
      #expect(try await registry.unownedProfile().id == guest.id)
      try await registry.eraseUnowned(guest.id, discardingPending: true)
      #expect(await code { try await registry.eraseUnowned(guest.id) } == .unknownArea)
    }

    @Test("an unowned area whose adoption is open is not erased")
    func frozenIsNotErased() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      try guest.area.freeze(for: AreaState.Adoption(account: ada.bytes, id: UUID()))
      #expect(
        await code { try await registry.eraseUnowned(guest.id, discardingPending: true) }
          == .alreadyAdopted)
    }
  }
}
