import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

/// Contract section 3.
@Suite("Areas and registry")
enum AreasAndRegistry {}

extension AreasAndRegistry {
  @Suite("opening and binding")
  struct Opening {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    @Test("profile(for:) opens the account's own area, or provisions a fresh one")
    func opensOrProvisions() async throws {
      let ada = try verified("ada")
      let id: AreaID
      do {
        let registry = try store.registry()
        id = try await registry.profile(for: ada).id
        #expect(try await registry.profile(for: ada).id == id)
        #expect(try await registry.profile(for: verified("bob")).id != id)
      }
      #expect(try await store.registry().profile(for: ada).id == id)
      #expect(try store.entries().count == 2)
    }

    @Test("profile(for:) never returns another owner's area or the unowned one")
    func neverAnothers() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["r"])
      let bob = try await registry.profile(for: verified("bob"))
      let ada = try await registry.profile(for: verified("ada"))
      #expect(Set([guest.id, bob.id, ada.id]).count == 3)
      #expect(try ada.owner == verified("ada"))
      #expect(try guest.owner == nil)
      #expect(try ada.waiting().isEmpty)
    }

    @Test("profile(for:) called at once by many makes one area")
    func manyAtOnce() async throws {
      let ada = try verified("ada")
      let registries = try [store.registry(), store.registry()]
      let ids = try await withThrowingTaskGroup(of: AreaID.self) { group in
        for number in 0..<8 {
          group.addTask { try await registries[number % 2].profile(for: ada).id }
        }
        return try await group.reduce(into: Set<AreaID>()) { $0.insert($1) }
      }
      #expect(ids.count == 1)
      #expect(try store.entries().count == 1)
    }

    @Test("unownedProfile() opens the signed-out area, made on demand; at most one is active")
    func unownedOnDemand() async throws {
      let registries = try [store.registry(), store.registry()]
      #expect(try store.entries().isEmpty)
      let ids = try await withThrowingTaskGroup(of: AreaID.self) { group in
        for number in 0..<8 {
          group.addTask { try await registries[number % 2].unownedProfile().id }
        }
        return try await group.reduce(into: Set<AreaID>()) { $0.insert($1) }
      }
      #expect(ids.count == 1)
      #expect(try await registries[0].profiles().filter { $0.state == .unowned }.count == 1)
    }

    @Test("bindAccount binds an unowned area for ever and returns the profile to use from now on")
    func bindsInPlace() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["r"])
      let ada = try verified("ada")
      let bound = try await guest.bindAccount(ada, adoptingUnownedData: true)
      #expect(bound.id == guest.id)
      #expect(try bound.owner == ada)
      #expect(try await registry.profile(for: ada).id == guest.id)
      #expect(
        await code { try await guest.enqueue(.put("x", Data()), account: nil) }
          == .accountRequired)
      #expect(try await registry.unownedProfile().id != guest.id)
    }

    @Test("bindAccount needs no flag where there is nothing")
    func bindsEmpty() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: [])
      let ada = try verified("ada")
      #expect(try await guest.bindAccount(ada).id == guest.id)
    }

    @Test("the same account again: no change, success")
    func sameAccountAgain() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["r"])
      let ada = try verified("ada")
      let bound = try await guest.bindAccount(ada, adoptingUnownedData: true)
      let before = try bound.dump()
      let again = try verified("ada")
      #expect(try await bound.bindAccount(again).id == bound.id)
      #expect(try await guest.bindAccount(ada.remembered, adoptingUnownedData: true).id == bound.id)
      #expect(try await registry.adopt(guest.id, by: ada).id == bound.id)
      #expect(try bound.dump() == before)
    }

    @Test("another account: ownedByAnotherAccount, and nothing changed")
    func anotherAccount() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["r"])
      try await guest.bindAccount(verified("ada"), adoptingUnownedData: true)
      let before = try guest.dump()
      let bob = try verified("bob")
      for adopting in [false, true] {
        #expect(
          await code { try await guest.bindAccount(bob, adoptingUnownedData: adopting) }
            == .ownedByAnotherAccount)
      }
      #expect(
        await code { _ = try await registry.adopt(guest.id, by: bob) }
          == .ownedByAnotherAccount)
      #expect(try guest.dump() == before)
      #expect(try store.entries().count == 1)
      #expect(try registry.index.area(of: bob.bytes) == nil)
    }

    @Test("unowned data present without the flag: an error that says how much, and nothing changed")
    func unownedDataPresent() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["a", "b", "c"])
      try await guest.enqueue(.delete("b"), account: nil)
      let table = try guest.table("notes", key: TextCodec.self, value: TextCodec.self)
      try await guest.enqueue([], account: nil) { try $0.put("v", for: "k", in: table) }
      let before = try guest.dump()
      let error = try await #require(throws: StoreError.self) {
        try await guest.bindAccount(verified("ada"))
      }
      #expect(error.code == .unownedDataPresent)
      let unowned = try #require(error.unowned)
      #expect(unowned.area == guest.id)
      #expect(unowned.records == 2)
      #expect(unowned.mutations == 4)
      #expect(unowned.appEntries == 1)
      #expect(unowned.payloadByteCount == 3 * "guest x".utf8.count)
      #expect(try guest.dump() == before)
      #expect(try registry.index.snapshot().intents.isEmpty)
      #expect(try await registry.unownedSummary() == unowned)
    }

    @Test("if the account has an area already, nothing is bound a second time")
    func notBoundTwice() async throws {
      let registry = try store.registry()
      let ada = try verified("ada")
      let own = try await registry.profile(for: ada)
      let guest = try await store.guest(in: registry, puts: [])
      #expect(try await guest.bindAccount(ada).id == own.id)
      #expect(try guest.owner == nil)
      try await guest.enqueue(.put("r", Data()), account: nil)
      #expect(try await guest.bindAccount(ada, adoptingUnownedData: true).id == own.id)
      #expect(try await registry.profiles().filter { $0.owner == ada }.count == 1)
    }

    @Test("binding takes a closure that runs in the same write transaction: the choice is atomic")
    func closureOfBinding() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["r"])
      let ada = try verified("ada")
      struct Refused: Error {}
      let before = try guest.dump()
      await #expect(throws: Refused.self) {
        try await guest.bindAccount(ada, adoptingUnownedData: true) { transaction, binding in
          let table = try binding.table("choice", key: TextCodec.self, value: TextCodec.self)
          try transaction.put("adopt", for: "asked", in: table)
          throw Refused()
        }
      }
      var after = try guest.dump()
      #expect(after.removeValue(forKey: "app.choice") == [:])
      after[""] = before[""]
      #expect(after == before)
      #expect(try registry.index.snapshot().intents.isEmpty)
      let bound = try await guest.bindAccount(ada, adoptingUnownedData: true) {
        transaction, binding in
        #expect(binding.source == nil)
        let table = try binding.table("choice", key: TextCodec.self, value: TextCodec.self)
        try transaction.put("adopt", for: "asked", in: table)
      }
      store.signIn(ada)
      let table = try bound.table("choice", key: TextCodec.self, value: TextCodec.self)
      #expect(try bound.read { try $0.value(of: "asked", in: table) } == "adopt")
    }

    @Test("a closure that swallows the request for a new table is run again with the table")
    func swallowedRequest() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["r"])
      let bound = try await guest.bindAccount(verified("ada"), adoptingUnownedData: true) {
        transaction, binding in
        do {
          let table = try binding.table("late", key: TextCodec.self, value: TextCodec.self)
          try transaction.put("v", for: "k", in: table)
        } catch {}
      }
      #expect(try bound.dump()["app.late"] == [Array("k".utf8): Array("v".utf8)])
    }

    @Test("a sign-in is never blocked by unowned data, also of an interrupted adoption")
    func neverBlocked() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["r"])
      let ada = try verified("ada")
      let own = try await registry.profile(for: ada)
      try guest.area.freeze(for: AreaState.Adoption(account: ada.bytes, id: UUID()))
      store.signIn(ada)
      #expect(try await registry.profile(for: ada.remembered).id == own.id)
      try await own.enqueue(.put("r", Data()), account: ada)
      let bob = try await registry.profile(for: verified("bob"))
      #expect(try bob.owner == verified("bob"))
    }

    @Test("nothing is deleted, reassigned or changed in order to let a sign-in succeed")
    func nothingChanges() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["r"])
      let (ada, adas) = try await store.signedInProfile("ada", in: registry)
      try await adas.enqueue(.put("secret", Data("ada".utf8)), account: ada)
      let before = try [guest.dump(), adas.dump()]
      let (bob, bobs) = try await store.signedInProfile("bob", in: registry)
      try await bobs.enqueue(.put("secret", Data("bob".utf8)), account: bob)
      _ = try await registry.currentProfile()
      store.session.signOut()
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
      #expect(try [guest.dump(), adas.dump()] == before)
    }

    @Test("one environment is opened once per process, however many callers and paths hold it")
    func openedOnce() async throws {
      let registry = try store.registry()
      let ada = try verified("ada")
      let profile = try await registry.profile(for: ada)
      let link = store.path + ".link"
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: store.path)
      defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: link) } }
      let second = try store.registry(at: link)
      let same = try await second.profile(for: ada)
      #expect(same.area === profile.area)
      // Through either path, erasing closes it for all.
      try await second.erase(ada)
      #expect(throws: StoreError.self) { try profile.owner }
      #expect(try await store.hasOnly([], in: registry))
    }

    @Test("currentProfile() opens the area of whoever is signed in, or the signed-out area")
    func currentProfile() async throws {
      let registry = try store.registry()
      #expect(await code { _ = try await registry.currentProfile() } == .sessionUnknown)
      store.session.restore(account: nil, token: nil)
      let guest = try await registry.currentProfile()
      #expect(try guest.owner == nil)
      let (_, adas) = try await store.signedInProfile("ada", in: registry)
      #expect(try await registry.currentProfile().id == adas.id)
      store.signIn(try verified("stranger"))
      #expect(await code { _ = try await registry.currentProfile() } == .unknownAccount)
      #expect(try store.entries().count == 2)
    }

    @Test("the nearest session counts for a profile, and the registry's decides nobody")
    func nearestSession() async throws {
      let registry = try store.registry()
      store.session.signOut()
      let ada = try verified("ada")
      let own = AppSession()
      let profile = try await registry.profile(for: ada, session: own)
      #expect(
        await code { try await profile.enqueue(.put("r", Data()), account: ada) }
          == .sessionUnknown)
      own.signIn(ada, token: "token")
      try await profile.enqueue(.put("r", Data()), account: ada)
      #expect(try profile.record("r") != nil)
      // The registry's session still says nobody.
      let guest = try await registry.unownedProfile()
      try await guest.enqueue(.put("g", Data()), account: nil)
      store.signIn(ada)
      #expect(
        await code { try await guest.enqueue(.put("g", Data()), account: nil) }
          == .accountRequired)
      own.signOut()
      #expect(
        await code { try await profile.enqueue(.put("r", Data()), account: ada) }
          == .notSignedIn)
    }

    @Test("a pass's session counts for an enqueue inside its closure")
    func passSession() async throws {
      let registry = try store.registry()
      let ada = try verified("ada")
      let profile = try await registry.profile(for: ada)
      store.session.signOut()
      let pass = PassContext.Pass(area: profile.id, session: ScriptedSession(ada.signedIn()))
      try await PassContext.$passes.withValue([pass]) {
        try await profile.enqueue(.put("r", Data()), account: ada)
        #expect(try profile.record("r") != nil)
      }
      #expect(
        await code { try await profile.enqueue(.put("r", Data()), account: ada) }
          == .notSignedIn)
    }
  }
}
