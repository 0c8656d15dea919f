import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("a store of which a part is damaged, half done or opened otherwise")
  struct DamagedStore {
    let store: TemporaryStore
    let ada: VerifiedAccount
    let bob: VerifiedAccount

    init() throws {
      store = try TemporaryStore()
      ada = try verified("ada")
      bob = try verified("bob")
    }

    private func truncate(_ directory: String, to byteCount: UInt64) throws {
      let file = URL(fileURLWithPath: directory + "/data.mdb")
      try FileHandle(forWritingTo: file).truncate(atOffset: byteCount)
    }

    private func damage(_ area: AreaID) throws {
      store.expectDamage()
      try truncate("\(store.path)/areas/\(area.description.prefix(2))/\(area)", to: 8192)
    }

    @Test(
      "every process keeps the records where the store was made to keep them",
      arguments: [ProfileRegistry.RecordKeeping.area, .app], [false, true])
    func recordKeeping(_ keeping: ProfileRegistry.RecordKeeping, isRebuilt: Bool) async throws {
      let id: AreaID
      do { id = try await store.registry(keeping: keeping).profile(for: ada).id }
      if isRebuilt { try FileManager.default.removeItem(atPath: store.path + "/registry") }
      let other: ProfileRegistry.RecordKeeping = keeping == .area ? .app : .area
      #expect(await code { _ = try store.registry(keeping: other) } == .recordKeepingDiffers)
      #expect(try await store.registry(keeping: keeping).profile(for: ada).id == id)
    }

    @Test(
      "an unowned area that cannot be read stops no account, known or new",
      arguments: [false, true])
    func unreadableUnowned(isSetAside: Bool) async throws {
      let guest: AreaID
      do {
        let registry = try store.registry()
        _ = try await registry.profile(for: ada)
        guest = try await store.guest(in: registry, puts: ["g"]).id
        if isSetAside { try await registry.setAsideUnowned(decidedBy: ada) }
      }
      try damage(guest)
      let registry = try store.registry()
      let adas = try await registry.profile(for: ada)
      store.signIn(ada)
      try await adas.enqueue(.put("r", Data()), account: ada)
      #expect(try await registry.profile(for: bob).owner == bob)
      #expect(try await registry.profiles().first { $0.area == guest }?.state == .unreadable)
      // The signed-out person's data is neither replaced nor mixed with another's.
      store.session.signOut()
      let answer = await code { _ = try await registry.unownedProfile() }
      #expect(answer == (isSetAside ? nil : .storage))
    }

    @Test("an area that cannot be read does not keep a lost registry from being rebuilt")
    func rebuiltBesideUnreadable() async throws {
      let (adas, bobs): (AreaID, AreaID)
      do {
        let registry = try store.registry()
        adas = try await registry.profile(for: ada).id
        bobs = try await registry.profile(for: bob).id
      }
      try FileManager.default.removeItem(atPath: store.path + "/registry")
      try damage(bobs)
      let registry = try store.registry()
      #expect(try await registry.profile(for: ada).id == adas)
      #expect(try await registry.profiles().first { $0.area == bobs }?.state == .unreadable)
      // It may be anybody's who has none: nobody gets a second one.
      for account in [bob, try verified("carol")] {
        #expect(await code { _ = try await registry.profile(for: account) } == .storage)
      }
      #expect(Set(try store.entries()) == [adas.description, bobs.description])
    }

    @Test(
      "a registry that a killed process left before it was whole is made again",
      arguments: [0, 4096])
    func halfMadeRegistry(byteCount: UInt64) async throws {
      let id: AreaID
      do { id = try await store.registry().profile(for: ada).id }
      try truncate(store.path + "/registry", to: byteCount)
      #expect(try await store.registry().profile(for: ada).id == id)
    }

    @Test("what is being settled explains itself: an account is looked for again under the lock")
    func settledMeanwhile() async throws {
      let registry = try store.registry()
      let bobs = try await registry.profile(for: bob).id
      var row = try #require(try registry.index.row(bobs))
      row.owner = ada.bytes
      try registry.index.write { [row] writing in
        writing.set(bobs, row)
        writing.setIntent(bobs, Intent(kind: .bind, account: bob.bytes))
      }
      #expect(try await registry.profile(for: ada).id != bobs)
      #expect(try await registry.profile(for: bob).id == bobs)
    }

    @Test("a decision that is due ends with the area it is about, also when a crash came between")
    func undecidedEndsWithItsArea() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["g"])
      _ = try await store.signedInProfile("ada", in: registry)
      store.session.signOut()
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
      // As a process leaves it that is killed in `eraseUnowned`.
      try registry.index.write { $0.setIntent(guest.id, Intent(kind: .erase)) }
      try guest.area.markErased()
      let fresh = try await registry.unownedProfile()
      #expect(fresh.id != guest.id)
      try await fresh.enqueue(.put("f", Data()), account: nil)
    }
  }
}
