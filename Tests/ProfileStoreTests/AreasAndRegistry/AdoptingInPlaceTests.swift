import Dispatch
import Foundation
import HubProtocol
import ProfileStore
import Synchronization
import Testing

extension AreasAndRegistry {
  @Suite("adopting by binding the area itself")
  struct AdoptingInPlace {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    @Test(
      "the first mutation of each record goes up as must not exist yet, each later one based on the one before"
    )
    func bases() async throws {
      let registry = try store.registry()
      store.session.signOut()
      let guest = try await registry.unownedProfile()
      try await guest.enqueue(
        [
          .put("a", Data("1".utf8)), .put("b", Data("1".utf8), base: .version(7)),
          .put("a", Data("2".utf8)), .delete("b"), .delete("c"),
        ], account: nil)
      let ada = try verified("ada")
      let bound = try await guest.bindAccount(ada, adoptingUnownedData: true)
      #expect(bound.id == guest.id)
      let waiting = try bound.waiting()
      #expect(
        waiting.map(\.base) == [
          .mustNotExist, .mustNotExist, .mutation(waiting[0].mutation),
          .mutation(waiting[1].mutation), .mustNotExist,
        ])
    }

    /// Enqueues as the signed-out person, from within a step of the registry.
    private static func enqueue(in guest: Profile) {
      let done = DispatchSemaphore(value: 0)
      Task {
        do {
          try await guest.enqueue(.put("late", Data("1".utf8)), account: nil)
        } catch {
          Issue.record(error)
        }
        done.signal()
      }
      done.wait()
    }

    @Test(
      "unowned data that comes in while an account is being bound without the flag is not bound")
    func lateEnqueue() async throws {
      let profile = Mutex<Profile?>(nil)
      let registry = try store.registry(onStep: { step in
        guard step == .bindIntended, let guest = profile.withLock({ $0 }) else { return }
        Self.enqueue(in: guest)
      })
      store.session.signOut()
      let guest = try await registry.unownedProfile()
      profile.withLock { $0 = guest }
      let ada = try verified("ada")
      let error = try await #require(throws: StoreError.self) {
        try await guest.bindAccount(ada)
      }
      #expect(error.code == .unownedDataPresent)
      #expect(error.unowned?.mutations == 1)
      #expect(try guest.owner == nil)
      #expect(try guest.waiting().count == 1)
      profile.withLock { $0 = nil }
      #expect(try await guest.bindAccount(ada, adoptingUnownedData: true).owner == ada)
    }
  }
}
