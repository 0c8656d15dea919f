import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("deciding about unowned data")
  struct Deciding {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    @Test(
      "setAsideUnowned declines: set aside untouched, and the next signed-out person gets a fresh one"
    )
    func setAside() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["a", "b"])
      let before = try guest.dump()
      let ada = try verified("ada")
      #expect(try await registry.setAsideUnowned(decidedBy: ada) == guest.id)
      let fresh = try await registry.unownedProfile()
      #expect(fresh.id != guest.id)
      try await fresh.enqueue(.put("c", Data()), account: nil)
      #expect(try guest.dump() == before)
      #expect(try fresh.outbox().map(\.record) == ["c"])
      #expect(try await registry.setAsideAreas().map(\.area) == [guest.id])
      #expect(try await registry.setAsideAreas().first?.records == 2)
    }

    @Test("areas set aside are adopted only by name, and their earlier handles are refused")
    func setAsideByName() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["a"])
      let ada = try verified("ada")
      try await registry.setAsideUnowned(decidedBy: ada)
      #expect(await code { try await guest.enqueue(.put("x", Data()), account: nil) } == .setAside)
      #expect(await code { _ = try guest.record("a") } == .setAside)
      let fresh = try await registry.unownedProfile()
      #expect(try await fresh.bindAccount(ada).id == fresh.id)
      #expect(try fresh.waiting().isEmpty)
      #expect(try await registry.adopt(guest.id, by: ada).id == fresh.id)
      #expect(try fresh.waiting().map(\.record) == ["a"])
      #expect(try await registry.setAsideAreas().isEmpty)
    }

    @Test("an area set aside is bound in place by an account that has none")
    func setAsideBound() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["a"])
      let ada = try verified("ada")
      try await registry.setAsideUnowned(decidedBy: ada)
      #expect(try await registry.adopt(guest.id, by: ada).id == guest.id)
      #expect(try guest.owner == ada)
    }

    @Test(
      "after a sign-in that decided nothing, unownedProfile() throws adoptionUndecided until decided",
      arguments: ["adopted", "bound", "set aside", "kept", "erased"])
    func undecided(_ decision: String) async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["a"])
      let before = try guest.dump()
      let ada = try verified("ada")
      if decision != "bound" { _ = try await registry.profile(for: ada) }
      if decision == "bound" {
        // Another account came in, and this one has no area yet.
        _ = try await registry.profile(for: verified("bob"))
      }
      store.session.signOut()
      let error = try await #require(throws: StoreError.self) {
        _ = try await registry.unownedProfile()
      }
      #expect(error.code == .adoptionUndecided)
      #expect(error.unowned?.mutations == 1)
      #expect(error.unowned?.area == guest.id)
      // Nor through a profile that was opened earlier.
      #expect(
        await code { try await guest.enqueue(.put("x", Data()), account: nil) }
          == .adoptionUndecided)
      #expect(await code { _ = try guest.records() } == .adoptionUndecided)
      #expect(try guest.dump() == before)
      switch decision {
      case "adopted", "bound": _ = try await registry.adopt(guest.id, by: ada)
      case "set aside": try await registry.setAsideUnowned(decidedBy: ada)
      case "kept": try await registry.keepUnowned(decidedBy: ada)
      default: try await registry.eraseUnowned(guest.id, discardingPending: true)
      }
      let next = try await registry.unownedProfile()
      #expect((next.id == guest.id) == (decision == "kept"))
      try await next.enqueue(.put("x", Data()), account: nil)
      #expect(try next.outbox().count == (decision == "kept" ? 2 : 1))
    }

    @Test(
      "a sign-in is noticed however the account comes in",
      arguments: ["opening", "enqueueing", "reading", "a nearer session"])
    func noticed(_ way: String) async throws {
      let registry = try store.registry()
      let ada = try verified("ada")
      let own = AppSession()
      let adas = try await registry.profile(
        for: ada, session: way == "a nearer session" ? own : nil)
      let guest = try await store.guest(in: registry, puts: ["a"])
      (way == "a nearer session" ? own : store.session).signIn(ada, token: "token")
      switch way {
      case "opening": _ = try await registry.profile(for: ada.remembered)
      case "reading": _ = try adas.records()
      default: try await adas.enqueue(.put("r", Data()), account: ada)
      }
      store.session.signOut()
      #expect(
        await code { try await guest.enqueue(.put("x", Data()), account: nil) }
          == .adoptionUndecided)
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
      // It is on disk, too.
      let later = try store.registry()
      #expect(await code { _ = try await later.unownedProfile() } == .adoptionUndecided)
    }

    @Test("a sign-in of an app's own session is noticed, also if its generation begins at 0")
    func generationZero() async throws {
      let ada = try verified("ada")
      let adas = try await store.registry().profile(for: ada)
      try await store.guest(in: try store.registry(), puts: ["a"])
      let registry = try store.registry(
        session: ScriptedSession(ada.signedIn(generation: 0)))
      _ = try Profile.handle(to: adas.area, of: registry).records()
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
    }

    @Test("a sign-in decides nothing where there is no unowned data")
    func nothingToDecide() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: [])
      let (ada, adas) = try await store.signedInProfile("ada", in: registry)
      try await adas.enqueue(.put("r", Data()), account: ada)
      store.session.signOut()
      #expect(try await registry.unownedProfile().id == guest.id)
      try await guest.enqueue(.put("a", Data()), account: nil)
    }

    @Test("explicitly kept data stays kept for that sign-in, and is asked about when there is more")
    func keptStaysKept() async throws {
      let ada = try verified("ada")
      let bob = try verified("bob")
      do {
        let registry = try store.registry()
        try await store.guest(in: registry, puts: ["a"])
        _ = try await registry.profile(for: ada)
        try await registry.keepUnowned(decidedBy: ada)
        store.signIn(ada)
        try await registry.profile(for: ada).enqueue(.put("r", Data()), account: ada)
      }
      // The same account again, with nothing new: decided.
      let registry = try store.registry()
      store.session.restore(account: ada.bytes, token: nil)
      _ = try await registry.currentProfile()
      store.session.signOut()
      let guest = try await registry.unownedProfile()
      // More was enqueued since: asked again.
      try await guest.enqueue(.put("b", Data()), account: nil)
      store.signIn(ada)
      _ = try await registry.currentProfile()
      store.session.signOut()
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
      // Another account: asked in any case.
      try await registry.keepUnowned(decidedBy: ada)
      _ = try await registry.unownedProfile()
      _ = try await registry.profile(for: bob)
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
    }

    @Test("adopting by name what was set aside decides nothing about the current unowned data")
    func byNameDecidesNothingElse() async throws {
      let registry = try store.registry()
      let first = try await store.guest(in: registry, puts: ["a"])
      let ada = try verified("ada")
      try await registry.setAsideUnowned(decidedBy: ada)
      let second = try await store.guest(in: registry, puts: ["b"])
      let adas = try await registry.profile(for: ada)
      _ = try await registry.adopt(first.id, by: ada)
      store.session.signOut()
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
      #expect(try adas.waiting().map(\.record) == ["a"])
      #expect(try second.waiting().map(\.record) == ["b"])
    }

    @Test("two guests' data never mix unasked, whatever order they and an account come in")
    func guestsNeverMix() async throws {
      let registry = try store.registry()
      let ada = try verified("ada")
      _ = try await registry.profile(for: ada)
      try await store.guest(in: registry, puts: ["first"], payload: "canary-one")
      store.signIn(ada)
      _ = try await registry.profile(for: ada)
      store.session.signOut()
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
      try await registry.setAsideUnowned(decidedBy: ada)
      let second = try await store.guest(in: registry, puts: ["second"], payload: "canary-two")
      let files = try bytes(under: registry.directory(of: second.id))
      #expect(files.range(of: Data("canary-one".utf8)) == nil)
      #expect(files.range(of: Data("canary-two".utf8)) != nil)
    }
  }
}
