import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("adopting into an area that the account has")
  struct Adopting {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let adas: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      ada = try verified("ada")
      adas = try await registry.profile(for: ada)
    }

    private func adopt(_ guest: Profile) async throws {
      #expect(try await guest.bindAccount(ada, adoptingUnownedData: true).id == adas.id)
    }

    @Test(
      "freezes the source, copies records and outbox with their UUIDs, and marks the source moved")
    func wholeWay() async throws {
      let guest = try await store.guest(in: registry, puts: ["a", "b"])
      try await guest.enqueue(.put("a", Data("newer".utf8)), account: nil)
      try await guest.enqueue(.delete("b"), account: nil)
      let mutations = try guest.outbox().map(\.mutation)
      try await adopt(guest)
      #expect(try adas.waiting().map(\.mutation) == mutations)
      #expect(try adas.waiting().map(\.stamp) == Array(repeating: ada.bytes, count: 4))
      store.signIn(ada)
      #expect(try adas.text("a") == "newer")
      #expect(try adas.record("b") == nil)
      #expect(try await registry.profiles().first { $0.area == guest.id }?.state == .moved)
      store.session.signOut()
      #expect(await code { try await guest.enqueue(.put("x", Data()), account: nil) } == .moved)
      #expect(await code { _ = try guest.records() } == .moved)
      #expect(try await registry.unownedProfile().id != guest.id)
    }

    @Test("a receipt stays, and the source's directory until it is erased by name")
    func receiptStays() async throws {
      let guest = try await store.guest(in: registry, puts: ["a", "b"])
      let source = try guest.waiting()
      try await adopt(guest)
      let receipt = try #require(try adas.adoptionReceipts().first)
      #expect(receipt.source == guest.id)
      #expect(receipt.adoptedAt == store.clock.now)
      #expect(receipt.mutations == 2)
      #expect(receipt.records == 2)
      #expect(try guest.waiting() == source)
      try await registry.eraseUnowned(guest.id)
      #expect(try await store.hasOnly([adas.id], in: registry))
      #expect(try adas.adoptionReceipts().count == 1)
    }

    @Test("an app that keeps its records itself adopts the outbox alone")
    func appStore() async throws {
      let other = try TemporaryStore()
      let registry = try other.registry(keeping: .app)
      let own = try await registry.profile(for: ada)
      let guest = try await other.guest(in: registry, puts: ["a"])
      try await guest.bindAccount(ada, adoptingUnownedData: true)
      #expect(try own.waiting().map(\.record) == ["a"])
      #expect(try own.adoptionReceipts().map(\.records) == [0])
      other.signIn(ada)
      #expect(try own.records().isEmpty)
    }

    @Test("a frozen area's enqueues throw moved, and another account gets alreadyAdopted")
    func frozen() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      try guest.area.freeze(for: AreaState.Adoption(account: ada.bytes, id: UUID()))
      let before = try guest.dump()
      #expect(await code { try await guest.enqueue(.put("x", Data()), account: nil) } == .moved)
      #expect(await code { try await guest.enqueue(.put("x", Data()), account: ada) } == .moved)
      let bob = try verified("bob")
      _ = try await registry.profile(for: bob)
      for stranger in [bob, try verified("carol")] {
        for adopting in [false, true] {
          #expect(
            await code { try await guest.bindAccount(stranger, adoptingUnownedData: adopting) }
              == .alreadyAdopted)
        }
        #expect(
          await code { try await registry.withdrawAdoption(of: guest.id, by: stranger) }
            == .alreadyAdopted)
      }
      #expect(try guest.dump() == before)
    }

    @Test("a second adoption: by another account alreadyAdopted, by the same one no change")
    func secondTime() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      try await adopt(guest)
      let before = try adas.dump()
      let bob = try verified("bob")
      _ = try await registry.profile(for: bob)
      for stranger in [bob, try verified("carol")] {
        #expect(
          await code { _ = try await registry.adopt(guest.id, by: stranger) } == .alreadyAdopted)
      }
      try await adopt(guest)
      #expect(try await guest.bindAccount(ada).id == adas.id)
      #expect(try await registry.adopt(guest.id, by: ada.remembered).id == adas.id)
      #expect(try adas.dump() == before)
    }

    @Test("the first adopted mutation of a record goes up as must not exist, each later one on it")
    func bases() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      try await guest.enqueue(
        [
          .put("b", Data(), base: .version(7)), .put("a", Data()),
          .delete("a", base: .mustNotExist),
        ], account: nil)
      try await adopt(guest)
      let entries = try adas.sendable()
      #expect(entries.map(\.record) == ["a", "b", "a", "a"])
      #expect(
        entries.map(\.base) == [
          .mustNotExist, .mustNotExist, .mutation(entries[0].mutation),
          .mutation(entries[2].mutation),
        ])
    }

    @Test("where the account's area has a pending edit of the record, the adopted one is parked")
    func parkedBesidePending() async throws {
      store.signIn(ada)
      try await adas.enqueue(.put("a", Data("ada".utf8)), account: ada)
      store.session.signOut()
      let guest = try await registry.unownedProfile()
      try await guest.enqueue(
        [.put("a", Data("guest".utf8)), .put("a", Data("again".utf8)), .put("b", Data())],
        account: nil)
      try await adopt(guest)
      store.signIn(ada)
      let entries = try adas.outbox()
      #expect(entries.map(\.parked?.reason) == [nil, .adopted, nil, nil])
      #expect(entries[2].base == .mutation(entries[1].mutation))
      #expect(try adas.sendable().map(\.order) == [entries[0].order, entries[3].order])
      #expect(try adas.text("a") == "ada")
      // The person keeps the adopted one: it follows the account's own.
      try await adas.decide(entries[1].mutation, account: ada, .keepLocal)
      #expect(try adas.outbox()[1].base == .mutation(entries[0].mutation))
      #expect(try adas.sendable().count == 4)
      // What goes up last is what is shown.
      #expect(try adas.text("a") == "again")
    }

    @Test(
      "what is adopted into an account's area is something to send: whoever waits for that is told")
    func tellsOutbox() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      let before = (adas.area.signals.outbox.count, try adas.area.outboxMark())
      try await adopt(guest)
      #expect(adas.area.signals.outbox.count > before.0)
      #expect(try adas.area.outboxMark() != before.1)
    }

    @Test("adopting never overwrites what the account already has: its record stays shown")
    func hubRecordStaysShown() async throws {
      try await adas.pull("a", version: 5, "hub")
      let guest = try await store.guest(in: registry, puts: ["a"])
      try await adopt(guest)
      store.signIn(ada)
      #expect(try adas.text("a") == "hub")
      let mutation = try #require(try adas.outbox().first)
      #expect(mutation.base == .mustNotExist)
      // A newer version of the hub is shown as well, and a refusal leaves it.
      try await adas.pull("a", version: 6, "hub, newer")
      #expect(try adas.text("a") == "hub, newer")
      try await adas.park(mutation.mutation, Parked(reason: .conflict))
      #expect(try adas.text("a") == "hub, newer")
      try await adas.decide(mutation.mutation, account: ada, .keepLocal)
      #expect(try adas.text("a") == "guest a")
      #expect(try adas.outbox().first?.base == .version(6))
    }

    @Test("giving an adopted edit up leaves the hub's version in place, followers or not")
    func discardAdopted() async throws {
      try await adas.pull("a", version: 5, "hub")
      let guest = try await store.guest(in: registry, puts: ["a", "a"])
      try await adopt(guest)
      store.signIn(ada)
      let mutations = try adas.outbox().map(\.mutation)
      try await adas.park(mutations[0], Parked(reason: .conflict))
      try await adas.discard(mutations[0], account: ada)
      #expect(try adas.text("a") == "hub")
      try await adas.park(mutations[1], Parked(reason: .conflict))
      try await adas.discard(mutations[1], account: ada)
      #expect(try adas.text("a") == "hub")
      #expect(try adas.record("a")?.isPending == false)
    }

    @Test(
      "a mutation that the app enqueued in both areas is there once; a reused UUID loses nothing")
    func sameUUID() async throws {
      let same = Mutation.put("same", Data("s".utf8), mutation: UUID())
      let reused = UUID()
      store.signIn(ada)
      try await adas.enqueue(
        [same, .put("x", Data("ada".utf8), mutation: reused)], account: ada)
      store.session.signOut()
      let guest = try await registry.unownedProfile()
      try await guest.enqueue(
        [same, .put("y", Data("guest".utf8), mutation: reused)], account: nil)
      try await adopt(guest)
      let entries = try adas.waiting()
      #expect(entries.map(\.record) == ["same", "x", "y"])
      #expect(entries[1].mutation == reused)
      #expect(entries[2].mutation != reused)
      #expect(entries[2].parked?.code == HubCode.mutationReused.rawValue)
      #expect(entries[2].payload == Data("guest".utf8))
    }

    @Test("a freeze that carried nothing over is repeated by the same account's next call")
    func repeatedFreeze() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      let adoption = AreaState.Adoption(account: ada.bytes, id: UUID())
      try guest.area.freeze(for: adoption)
      let before = try guest.dump()
      let again = try store.registry()
      #expect(try guest.dump() == before, "opening finishes nothing but the last step")
      #expect(try await again.adopt(guest.id, by: ada.remembered).id == adas.id)
      #expect(try adas.waiting().map(\.record) == ["a"])
      #expect(try await registry.profiles().first { $0.area == guest.id }?.state == .moved)
    }

    @Test("a freeze that carried nothing over is withdrawn by name; one carried out is not")
    func withdrawn() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      try await adopt(guest)
      let second = try await store.guest(in: registry, puts: ["b"])
      try second.area.freeze(for: AreaState.Adoption(account: ada.bytes, id: UUID()))
      try await registry.withdrawAdoption(of: second.id, by: ada.remembered)
      try await second.enqueue(.put("c", Data()), account: nil)
      #expect(try second.outbox().map(\.record) == ["b", "c"])
      for area in [guest.id, second.id] {
        #expect(
          await code { try await registry.withdrawAdoption(of: area, by: ada) } == .alreadyAdopted)
      }
      #expect(
        await code { try await registry.withdrawAdoption(of: adas.id, by: ada) } == .alreadyAdopted)
    }

    @Test("the closure reads the frozen source's own tables and carries them over, atomically")
    func closureCarriesOver() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      let table = try guest.table("notes", key: TextCodec.self, value: TextCodec.self)
      try await guest.enqueue([], account: nil) { try $0.put("text", for: "note", in: table) }
      let receipt = try await guest.bindAccount(ada, adoptingUnownedData: true) {
        transaction, binding in
        let source = try #require(binding.source)
        let old = try source.table("notes", key: TextCodec.self, value: TextCodec.self)
        let new = try binding.table("notes", key: TextCodec.self, value: TextCodec.self)
        let text = try source.read { try $0.value(of: "note", in: old) }
        try transaction.put(try #require(text), for: "note", in: new)
      }
      #expect(receipt.id == adas.id)
      store.signIn(ada)
      let carried = try adas.table("notes", key: TextCodec.self, value: TextCodec.self)
      #expect(try adas.read { try $0.value(of: "note", in: carried) } == "text")
    }

    @Test("the app's own entries are not left behind unseen: without a closure it is refused")
    func closureRequired() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      let table = try guest.table("notes", key: TextCodec.self, value: TextCodec.self)
      try await guest.enqueue([], account: nil) { try $0.put("text", for: "note", in: table) }
      let before = try [guest.dump(), adas.dump()]
      let error = try await #require(throws: StoreError.self) { try await adopt(guest) }
      #expect(error.code == .closureRequired)
      #expect(error.unowned?.appEntries == 1)
      #expect(try [guest.dump(), adas.dump()] == before)
    }

    @Test("a closure that throws changes nothing: the source is not frozen, nothing was copied")
    func closureThrows() async throws {
      struct Refused: Error {}
      let guest = try await store.guest(in: registry, puts: ["a"])
      let before = try [guest.dump(), adas.dump()]
      await #expect(throws: Refused.self) {
        try await guest.bindAccount(ada, adoptingUnownedData: true) { _, _ in throw Refused() }
      }
      #expect(try guest.dump()["outbox"] == before[0]["outbox"])
      #expect(try adas.dump() == before[1])
      #expect(try registry.index.snapshot().intents.isEmpty)
      try await guest.enqueue(.put("b", Data()), account: nil)
      try await adopt(guest)
      #expect(try adas.waiting().map(\.record) == ["a", "b"])
    }

    @Test("erasing an account first withdraws open freezes that name it")
    func eraseWithdraws() async throws {
      let guest = try await store.guest(in: registry, puts: ["a"])
      let adoption = AreaState.Adoption(account: ada.bytes, id: UUID())
      try registry.index.write {
        $0.setIntent(
          guest.id,
          Intent(kind: .adopt, account: ada.bytes, adoption: adoption.id, target: adas.id))
      }
      try guest.area.freeze(for: adoption)
      try await registry.erase(ada)
      try await guest.enqueue(.put("b", Data()), account: nil)
      #expect(try guest.outbox().map(\.record) == ["a", "b"])
      #expect(try registry.index.intent(guest.id) == nil)
      #expect(try await store.hasOnly([guest.id], in: registry))
      #expect(try registry.index.snapshot().intents.isEmpty)
    }

    @Test("an erase that is refused leaves an open freeze as it was")
    func refusedEraseWithdrawsNothing() async throws {
      store.signIn(ada)
      try await adas.enqueue(.put("r", Data()), account: ada)
      let guest = try await store.guest(in: try store.registry(), puts: [])
      let adoption = AreaState.Adoption(account: ada.bytes, id: UUID())
      try registry.index.write {
        $0.setIntent(
          guest.id,
          Intent(kind: .adopt, account: ada.bytes, adoption: adoption.id, target: adas.id))
      }
      try guest.area.freeze(for: adoption)
      let before = try guest.dump()
      #expect(await code { try await registry.erase(ada) } == .pendingMutations)
      #expect(try guest.dump() == before)
      #expect(try registry.index.intent(guest.id) != nil)
    }
  }
}
