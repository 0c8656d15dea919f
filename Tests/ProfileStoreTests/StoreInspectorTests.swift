import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

@Suite("StoreInspector, beside a store that an app has open")
struct StoreInspectorTests {
  let store: TemporaryStore

  init() throws { store = try TemporaryStore() }

  private func inspector() throws -> StoreInspector {
    try StoreInspector(directory: URL(fileURLWithPath: store.path))
  }

  @Test("lists every profile with what it is, whoever is signed in")
  func lists() async throws {
    let registry = try store.registry()
    let (ada, adas) = try await store.signedInProfile("ada", in: registry)
    let mutation = Mutation.put("r", Data([1, 2, 3]))
    try await adas.enqueue([mutation, .put("s", Data())], account: ada)
    try await adas.park(mutation.id)
    let moved = try await store.guest(in: registry, puts: ["m"])
    try await moved.bindAccount(ada, adoptingUnownedData: true)
    let aside = try await store.guest(in: registry, puts: ["a"])
    try await registry.setAsideUnowned(decidedBy: ada)
    let current = try await store.guest(in: registry, puts: [])
    let profiles = try inspector().profiles()
    #expect(profiles.map(\.area) == profiles.map(\.area).sorted { "\($0)" < "\($1)" })
    let states = Dictionary(uniqueKeysWithValues: profiles.map { ($0.area, $0.state) })
    #expect(
      states == [
        adas.id: .owned, moved.id: .moved, aside.id: .setAside, current.id: .unowned,
      ])
    let info = try inspector().profile(adas.id)
    #expect(info.owner == ada)
    #expect(info.records == 3)
    #expect(info.pending.count == 3)
    #expect(info.pending.parked == 1)
    #expect(info.pending.payloadByteCount == 3 + "guest m".utf8.count)
    #expect(info.failure == nil)
    #expect(try inspector().outbox(adas.id).map(\.record) == ["r", "s", "m"])
    #expect(try inspector().outbox(adas.id, limit: 1).map(\.mutation) == [mutation.id])
    #expect(await code { _ = try inspector().outbox(AreaID(uuid: UUID())) } == .unknownArea)
  }

  @Test("sees what the app does meanwhile, and changes nothing")
  func besideAnApp() async throws {
    let registry = try store.registry()
    let (ada, adas) = try await store.signedInProfile("ada", in: registry)
    let inspector = try inspector()
    #expect(try inspector.profile(adas.id).pending.count == 0)
    try await adas.enqueue(.put("r", Data()), account: ada)
    let before = try adas.dump()
    let files = try store.entries()
    #expect(try inspector.profile(adas.id).pending.count == 1)
    _ = try inspector.profiles()
    #expect(try adas.dump() == before)
    #expect(try store.entries() == files)
  }

  @Test("in one process with the app it is refused to write through what was opened for reading")
  func firstOpenerDecides() async throws {
    let id: AreaID
    do { id = try await store.registry().profile(for: verified("ada")).id }
    do {
      let inspector = try inspector()
      _ = try inspector.profile(id)
      let error = try #require(throws: StoreError.self) { try store.registry() }
      #expect(error.message.contains("StoreInspector"))
    }
    _ = try store.registry()
  }

  @Test("a place that is no store is refused by name")
  func noStore() async throws {
    #expect(await code { _ = try inspector() } == .notAStore)
    let nowhere = URL(fileURLWithPath: store.path + "/nowhere")
    #expect(await code { _ = try StoreInspector(directory: nowhere) } == .notAStore)
    let file = URL(fileURLWithPath: store.path + "/file")
    try Data().write(to: file)
    #expect(await code { _ = try StoreInspector(directory: file) } == .notAStore)
  }

  @Test("an unreadable area is listed as such, and the others as they are")
  func unreadable() async throws {
    store.expectDamage()
    let ids: [AreaID]
    do {
      let registry = try store.registry()
      ids = [
        try await registry.profile(for: verified("ada")).id,
        try await registry.profile(for: verified("bob")).id,
      ]
    }
    let file = "\(store.path)/areas/\(ids[0].description.prefix(2))/\(ids[0])/data.mdb"
    try Data("garbage".utf8).write(to: URL(fileURLWithPath: file))
    let profiles = try inspector().profiles()
    #expect(profiles.first { $0.area == ids[0] }?.state == .unreadable)
    #expect(profiles.first { $0.area == ids[0] }?.failure?.cause?.code == .damaged)
    #expect(profiles.first { $0.area == ids[1] }?.state == .owned)
    // The app goes on with the other one, and the damaged one is a typed error.
    let registry = try store.registry()
    #expect(try await registry.profile(for: verified("bob")).id == ids[1])
    #expect(await code { _ = try await registry.profile(for: verified("ada")) } == .storage)
    #expect(try await registry.profile(for: verified("carol")).owner == verified("carol"))
  }
}
