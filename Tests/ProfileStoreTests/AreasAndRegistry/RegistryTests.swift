import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("the registry against the areas")
  struct Registry {
    let store: TemporaryStore
    let ada: VerifiedAccount

    init() throws {
      store = try TemporaryStore()
      ada = try verified("ada")
    }

    /// How a registry gets lost: its directory, its file, or its content.
    enum Loss: CaseIterable {
      case directory, file, content

      func happen(to store: String) throws {
        let registry = store + "/registry"
        switch self {
        case .directory: try FileManager.default.removeItem(atPath: registry)
        case .file: try FileManager.default.removeItem(atPath: registry + "/data.mdb")
        case .content:
          try FileManager.default.removeItem(atPath: registry)
          try Environment.open(at: registry).close()
        }
      }
    }

    @Test(
      "a registry that is empty or missing while areas exist is rebuilt from their identity",
      arguments: Loss.allCases)
    func rebuilt(_ loss: Loss) async throws {
      var areas: [AreaID] = []
      do {
        let registry = try store.registry()
        let (ada, adas) = try await store.signedInProfile("ada", in: registry)
        try await adas.enqueue(.put("r", Data()), account: ada)
        areas = [adas.id, try await registry.profile(for: verified("bob")).id]
        let moved = try await store.guest(in: registry, puts: ["m"])
        try await moved.bindAccount(ada, adoptingUnownedData: true)
        areas.append(moved.id)
        areas.append(try await store.guest(in: registry, puts: ["g"]).id)
      }
      try loss.happen(to: store.path)
      let inspector = try StoreInspector(directory: URL(fileURLWithPath: store.path))
      #expect(inspector.registryFailure?.code == .registryDisagrees || loss == .content)
      #expect(try inspector.profiles().count == 4)
      try await reopened(areas)
    }

    private func reopened(_ areas: [AreaID]) async throws {
      let registry = try store.registry()
      // Nobody knows who the signed-out person was: asked before anybody goes on.
      store.session.signOut()
      #expect(await code { _ = try await registry.unownedProfile() } == .adoptionUndecided)
      #expect(try await registry.profile(for: ada).id == areas[0])
      #expect(try await registry.profile(for: verified("bob")).id == areas[1])
      #expect(try await registry.profile(for: ada).waiting().map(\.record) == ["r", "m"])
      #expect(try await registry.profiles().first { $0.area == areas[2] }?.state == .moved)
      #expect(try await registry.profiles().allSatisfy { $0.failure == nil })
      try await registry.keepUnowned(decidedBy: ada)
      #expect(try await registry.unownedProfile().id == areas[3])
    }

    @Test("a rebuilt registry mixes no guests: of several unowned areas none is current")
    func rebuiltSeveral() async throws {
      var areas: Set<AreaID> = []
      do {
        let registry = try store.registry()
        areas.insert(try await store.guest(in: registry, puts: ["a"]).id)
        try await registry.setAsideUnowned(decidedBy: ada)
        areas.insert(try await store.guest(in: registry, puts: ["b"]).id)
      }
      try Loss.directory.happen(to: store.path)
      let registry = try store.registry()
      #expect(Set(try await registry.setAsideAreas().map(\.area)) == areas)
      #expect(try await !areas.contains(registry.unownedProfile().id))
    }

    @Test("a rebuilt registry where nobody ever signed in lets the guest go on")
    func rebuiltGuestOnly() async throws {
      let id: AreaID
      do { id = try await store.guest(in: try store.registry(), puts: ["a"]).id }
      try Loss.directory.happen(to: store.path)
      let guest = try await store.registry().unownedProfile()
      #expect(guest.id == id)
      try await guest.enqueue(.put("b", Data()), account: nil)
    }

    @Test("a registry is not rebuilt over two areas that say the same owner")
    func rebuiltTwins() async throws {
      store.expectDamage()
      let id: AreaID
      do { id = try await store.registry().profile(for: ada).id }
      try Loss.directory.happen(to: store.path)
      // A second store made one more area of the same account, which came here by copying.
      let other = try TemporaryStore()
      let otherID: AreaID
      do { otherID = try await other.registry().profile(for: ada).id }
      try copyArea(otherID, from: other.path, to: store.path)
      let error = try #require(throws: StoreError.self) { try store.registry() }
      #expect(error.code == .registryDisagrees)
      #expect(Set(try store.entries()) == [id.description, otherID.description])
    }

    @Test("processes that open a fresh store at once fill its registry once")
    func freshAtOnce() async throws {
      let path = store.path
      let session = store.session
      session.signOut()
      let areas = try await withThrowingTaskGroup(of: AreaID.self) { group in
        for _ in 0..<4 {
          group.addTask {
            let registry = try ProfileRegistry(
              directory: URL(fileURLWithPath: path), session: session)
            let guest = try await registry.unownedProfile()
            try await guest.enqueue(.put("r", Data()), account: nil)
            return guest.id
          }
        }
        return try await group.reduce(into: Set<AreaID>()) { $0.insert($1) }
      }
      #expect(areas.count == 1)
    }

    /// Each way in which registry and area can disagree without an intent.
    enum Disagreement: CaseIterable {
      case rowOfAnotherOwner, rowOfNobody, rowMissing, areaMissing, unownedRowOfAnOwner
    }

    @Test(
      "only a disagreement that no intent explains fails closed; nothing is changed, and it is repaired",
      arguments: Disagreement.allCases)
    func disagreement(_ kind: Disagreement) async throws {
      let bob = try verified("bob")
      let registry = try store.registry()
      let id = try await registry.profile(for: ada).id
      var row = try #require(try registry.index.row(id))
      switch kind {
      case .rowOfAnotherOwner: row.owner = bob.bytes
      case .rowOfNobody, .unownedRowOfAnOwner:
        row.owner = nil
        row.state = kind == .rowOfNobody ? .setAside : .unowned
      case .rowMissing: break
      case .areaMissing:
        try await registry.locked {
          let path = registry.directory(of: id)
          try FileManager.default.moveItem(atPath: path, toPath: store.path + "/elsewhere")
        }
      }
      if kind != .areaMissing {
        try registry.index.write { $0.set(id, kind == .rowMissing ? nil : row) }
      }
      let before = try store.entries()
      let asked = kind == .rowOfAnotherOwner ? bob : ada
      #expect(
        await code { _ = try await registry.profile(for: asked) } == .registryDisagrees, "\(kind)")
      if kind == .unownedRowOfAnOwner {
        #expect(await code { _ = try await registry.unownedProfile() } == .registryDisagrees)
        #expect(
          await code { try await registry.setAsideUnowned(decidedBy: bob) } == .registryDisagrees)
      }
      #expect(try store.entries() == before)
      // The inspection tool explains it, and others are not affected.
      let info = try StoreInspector(directory: registry.directory).profiles().first {
        $0.area == id
      }
      #expect(info?.failure?.code == .registryDisagrees)
      #expect(try await registry.profile(for: verified("carol")).owner == verified("carol"))
      // Repaired: the area is the truth, and no owner has changed.
      #expect(try await registry.repairRegistry() == [id])
      let repaired = try await registry.profile(for: ada)
      #expect((repaired.id == id) == (kind != .areaMissing))
      #expect(try repaired.owner == ada)
      #expect(try await registry.profiles().allSatisfy { $0.failure == nil })
      #expect(try await registry.repairRegistry().isEmpty)
    }

    @Test("repairing sets an unknown area without an owner aside, and leaves twins as they are")
    func repairedLeftovers() async throws {
      let registry = try store.registry()
      let guest = try await store.guest(in: registry, puts: ["a"])
      let adas = try await registry.profile(for: ada)
      try registry.index.write { $0.set(guest.id, nil) }
      let other = try TemporaryStore()
      let twin: AreaID
      do { twin = try await other.registry().profile(for: ada).id }
      try copyArea(twin, from: other.path, to: store.path)
      #expect(try await registry.repairRegistry() == [guest.id])
      #expect(try await registry.setAsideAreas().map(\.area) == [guest.id])
      #expect(try await registry.profile(for: ada).id == adas.id)
      let info = try await registry.profiles().first { $0.area == twin }
      #expect(info?.failure?.code == .registryDisagrees)
    }

    @Test("profile(for:) reads intents before it provisions: what a crash left is found")
    func readsIntents() async throws {
      let registry = try store.registry()
      let adas = try await registry.profile(for: ada)
      // The registry of another process, at work while this one opened: the row is not there yet.
      try registry.index.write { writing in
        writing.set(adas.id, nil)
        writing.setIntent(adas.id, Intent(kind: .provision, account: ada.bytes))
      }
      #expect(try await registry.profile(for: ada).id == adas.id)
      #expect(try registry.index.snapshot().intents.isEmpty)
      #expect(try store.entries().count == 1)
    }

    @Test("an intent that cannot be settled stops its own account only, and is listed")
    func unsettled() async throws {
      store.expectDamage()
      let registry = try store.registry()
      let bob = try verified("bob")
      let bobs = try await registry.profile(for: bob)
      try registry.index.write { writing in
        writing.set(bobs.id, nil)
        // It names an account that the area does not.
        writing.setIntent(bobs.id, Intent(kind: .provision, account: ada.bytes))
      }
      let again = try store.registry()
      #expect(await code { _ = try await again.profile(for: ada) } == .registryDisagrees)
      #expect(await code { _ = try await again.profile(for: bob) } == .registryDisagrees)
      #expect(try await again.profile(for: verified("carol")).owner == verified("carol"))
      #expect(
        try await again.profiles().first { $0.area == bobs.id }?.failure?.code
          == .registryDisagrees)
      #expect(try bobs.owner == bob)
    }

    @Test("the intent of an erase that was never marked removes nothing")
    func unmarkedErase() async throws {
      let registry = try store.registry()
      let adas = try await registry.profile(for: ada)
      try registry.index.write {
        $0.setIntent(adas.id, Intent(kind: .erase, account: ada.bytes))
      }
      #expect(try await registry.profile(for: ada).id == adas.id)
      _ = try await registry.unownedSummary()
      #expect(try registry.index.snapshot().intents.isEmpty)
      #expect(try store.entries() == [adas.id.description])
    }

    @Test("a store or an area of a newer format is refused, and nothing is written to it")
    func newerFormat() async throws {
      let id: AreaID
      do { id = try await store.registry().profile(for: ada).id }
      let area = "\(store.path)/areas/\(id.description.prefix(2))/\(id)"
      for (path, key) in [(area, "identity"), (store.path + "/registry", "format")] {
        let old = try rewrite(path, key) { [0, 0, 0, 9] + $0.dropFirst(4) }
        let before = try bytes(under: path)
        if key == "identity" {
          let registry = try store.registry()
          #expect(await code { _ = try await registry.profile(for: ada) } == .newerFormat)
        } else {
          #expect(await code { _ = try store.registry() } == .newerFormat)
        }
        #expect(try bytes(under: path) == before)
        _ = try rewrite(path, key) { _ in old }
      }
      #expect(try await store.registry().profile(for: ada).id == id)
    }

    @Test("a registry of a format before finds its owners again", arguments: [2, 3] as [UInt8])
    func earlierFormat(_ format: UInt8) async throws {
      var ids: [AreaID] = []
      let accounts = try (0..<3).map { try verified("earlier-\($0)") }
      do {
        let registry = try store.registry()
        for account in accounts { ids.append(try await registry.profile(for: account).id) }
      }
      let path = store.path + "/registry"
      _ = try rewrite(path, "format") { _ in [0, 0, 0, format] }
      do {
        let environment = try Environment.open(at: path)
        let groups = try environment.table(
          "accounts", key: UInt16Codec.self, value: BytesCodec.self)
        try environment.writeBlocking { transaction in
          try transaction.deleteAll(in: groups)
          guard format == 3 else { return }
          // Groups of another form; what they say is not looked at.
          for group in 0..<UInt16(128) {
            try transaction.put([UInt8](repeating: 0xa5, count: 24), for: group, in: groups)
          }
        }
        try environment.close()
      }
      let registry = try store.registry()
      for (account, id) in zip(accounts, ids) {
        #expect(try registry.index.area(of: account.bytes) == id)
        #expect(try await registry.profile(for: account).id == id)
      }
    }

    @Test("a foreign LMDB file in an area's place is refused, and nothing is written to it")
    func foreignArea() async throws {
      store.expectDamage()
      let id: AreaID
      do { id = try await store.registry().profile(for: ada).id }
      let area = "\(store.path)/areas/\(id.description.prefix(2))/\(id)"
      try FileManager.default.removeItem(atPath: area)
      do {
        let foreign = try Environment.open(at: area)
        let table = try foreign.table("theirs", key: TextCodec.self, value: TextCodec.self)
        try await foreign.write { try $0.put("v", for: "k", in: table) }
        try foreign.close()
      }
      let before = try bytes(under: area)
      let registry = try store.registry()
      #expect(await code { _ = try await registry.profile(for: ada) } == .damaged)
      #expect(try bytes(under: area) == before)
      #expect(try await registry.profile(for: verified("bob")).owner == verified("bob"))
    }

    private func rewrite(
      _ path: String, _ key: String, _ change: ([UInt8]) -> [UInt8]
    ) throws -> [UInt8] {
      let environment = try Environment.open(at: path)
      let values = try environment.table("values", key: TextCodec.self, value: BytesCodec.self)
      let old = try #require(try environment.read { try $0.value(of: key, in: values) })
      try environment.writeBlocking { try $0.put(change(old), for: key, in: values) }
      try environment.close()
      return old
    }
  }
}

/// Copies the data file of an area as `cp` would, while nobody has it open.
func copyArea(_ id: AreaID, from old: String, to new: String) throws {
  let place = "/areas/\(id.description.prefix(2))/\(id)"
  try FileManager.default.createDirectory(
    atPath: new + place, withIntermediateDirectories: true)
  try FileManager.default.copyItem(
    atPath: old + place + "/data.mdb", toPath: new + place + "/data.mdb")
}
