import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("a copy of an area's data file")
  struct Copies {
    let store: TemporaryStore
    let copy: TemporaryStore
    let ada: VerifiedAccount

    init() throws {
      store = try TemporaryStore()
      copy = try TemporaryStore()
      ada = try verified("ada")
    }

    /// An area with one mutation that was sent and one that was not, and its copy elsewhere.
    private func copied(highWater: UInt64?) async throws -> (id: AreaID, client: UUID) {
      let registry = try store.registry()
      let profile = try await registry.profile(for: ada)
      store.signIn(ada)
      try await profile.enqueue([.put("sent", Data()), .put("new", Data())], account: ada)
      try await profile.area.markFirstSent([1], highWater: 3)
      if let highWater {
        try await profile.area.settle(
          [], epoch: Hub.epoch, highWater: highWater, policy: registry.policy)
      }
      let client = try profile.area.facts().client.id
      return (profile.id, client)
    }

    @Test("takes a new client ID, and gives what was never sent the high water that the file knew")
    func newClient() async throws {
      let (id, client) = try await copied(highWater: 40)
      try copyArea(id, from: store.path, to: copy.path)
      let original = try store.registry()
      let originals = try await original.profile(for: ada)
      #expect(try originals.area.facts().client.id == client)
      #expect(try originals.waiting().map(\.firstSent) == [3, nil])

      let registry = try copy.registry()
      let copies = try await registry.profile(for: ada)
      #expect(copies.id == id)
      #expect(try copies.area.facts().client.id != client)
      #expect(try copies.area.facts().client.isRegistered == false)
      #expect(try copies.waiting().map(\.firstSent) == [3, 40])
      #expect(try copies.waiting().map(\.mutation) == originals.waiting().map(\.mutation))
    }

    @Test("that knew no high water takes 0")
    func noHighWater() async throws {
      let (id, _) = try await copied(highWater: nil)
      try copyArea(id, from: store.path, to: copy.path)
      let copies = try await copy.registry().profile(for: ada)
      #expect(try copies.waiting().map(\.firstSent) == [3, 0])
    }

    @Test("is noticed once: what is enqueued afterwards was never sent")
    func noticedOnce() async throws {
      let (id, _) = try await copied(highWater: 40)
      try copyArea(id, from: store.path, to: copy.path)
      let client: UUID
      do {
        let copies = try await copy.registry().profile(for: ada)
        client = try copies.area.facts().client.id
        copy.signIn(ada)
        try await copies.enqueue(.put("later", Data()), account: ada)
      }
      let copies = try await copy.registry().profile(for: ada)
      #expect(try copies.area.facts().client.id == client)
      #expect(try copies.waiting().map(\.firstSent) == [3, 40, nil])
    }

    @Test("and a second one at the same time are three clients, each with what it has")
    func twoAtOnce() async throws {
      let (id, client) = try await copied(highWater: 40)
      let second = try TemporaryStore()
      try copyArea(id, from: store.path, to: copy.path)
      try copyArea(id, from: store.path, to: second.path)
      var clients = [client]
      for place in [store, copy, second] {
        let profile = try await place.registry().profile(for: ada)
        place.signIn(ada)
        try await profile.enqueue(.put(RecordID("later \(clients.count)"), Data()), account: ada)
        clients.append(try profile.area.facts().client.id)
        let isOriginal = place === store
        #expect(try profile.waiting().map(\.firstSent) == [3, isOriginal ? nil : 40, nil])
        #expect(try profile.area.violations() == [])
      }
      #expect(clients[1] == client)
      #expect(Set(clients).count == 3)
    }

    @Test("restored over the original is one: what was enqueued in between cannot come back")
    func restored() async throws {
      let (id, client) = try await copied(highWater: 40)
      try copyArea(id, from: store.path, to: copy.path)
      do {
        let profile = try await store.registry().profile(for: ada)
        try await profile.enqueue([.put("x", Data()), .put("y", Data())], account: ada)
      }
      let place = "/areas/\(id.description.prefix(2))/\(id)/data.mdb"
      try FileManager.default.removeItem(atPath: store.path + place)
      try FileManager.default.moveItem(atPath: copy.path + place, toPath: store.path + place)
      try FileManager.default.removeItem(atPath: copy.path + "/areas")
      let restored = try await store.registry().profile(for: ada)
      #expect(try restored.area.facts().client.id != client)
      try await restored.enqueue(.put("new", Data()), account: ada)
      #expect(try restored.waiting().map(\.record) == ["sent", "new", "new"])
      #expect(try restored.waiting().map(\.firstSent) == [3, 40, nil])
    }

    @Test("made while the app writes is whole, and the original stays the client that it was")
    func whileWriting() async throws {
      let registry = try store.registry()
      let (ada, profile) = try await store.signedInProfile("ada", in: registry)
      let client = try profile.area.facts().client.id
      let writer = Task {
        for number in 0..<200 {
          try await profile.enqueue(.put(RecordID("\(number)"), Data()), account: ada)
        }
      }
      let place = "/areas/\(profile.id.description.prefix(2))"
      try FileManager.default.createDirectory(
        atPath: copy.path + place, withIntermediateDirectories: true)
      try await profile.area.environment.copy(to: copy.path + place + "/\(profile.id)")
      let copies = try await copy.registry().profile(for: ada)
      try await writer.value
      #expect(try copies.area.facts().client.id != client)
      #expect(try copies.area.violations() == [])
      let waiting = try copies.waiting()
      #expect(waiting.allSatisfy { $0.firstSent == 0 })
      #expect(
        waiting.map(\.mutation) == (try profile.waiting().prefix(waiting.count).map(\.mutation)))
      #expect(try profile.area.facts().client.id == client)
      #expect(try profile.waiting().allSatisfy { $0.firstSent == nil })
    }

    @Test("is not taken for another area: its directory must have its name")
    func ofAnotherName() async throws {
      copy.expectDamage()
      let (id, _) = try await copied(highWater: nil)
      let other: AreaID
      do { other = try await copy.registry().profile(for: verified("bob")).id }
      let place = "\(copy.path)/areas/\(other.description.prefix(2))/\(other)"
      try FileManager.default.removeItem(atPath: place)
      try copyArea(id, from: store.path, to: copy.path)
      try FileManager.default.moveItem(
        atPath: "\(copy.path)/areas/\(id.description.prefix(2))/\(id)", toPath: place)
      let registry = try copy.registry()
      #expect(await code { _ = try await registry.profile(for: verified("bob")) } == .damaged)
    }
  }
}
