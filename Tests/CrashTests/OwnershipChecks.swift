import Foundation
import HubProtocol
import ProfileStore
import SyncTestSupport
import Testing

/// What has to hold after each story of ownership that was cut off, whatever cut it off.
enum OwnershipChecks {
  static func provision(_ telling: CrashStory.Telling) async throws {
    let registry = try telling.registry()
    try await registry.requireSound(telling)
    let before = try await registry.owners()
    #expect(before == ["ada", "bob"] || before == ["bob"], "\(telling.step)")
    let ada = try verified("ada")
    let profile = try await registry.profile(for: ada)
    #expect(try profile.owner == ada)
    #expect(try await registry.owners() == ["ada", "bob"], "\(telling.step)")
    try await registry.requireSound(telling)
  }

  static func bind(_ telling: CrashStory.Telling) async throws {
    let registry = try telling.registry()
    try await registry.requireSound(telling, foreign: ["ada": ["guest"]])
    let ada = try verified("ada")
    if let guest = try await registry.profiles().first(where: { $0.owner == nil }) {
      #expect(!telling.isDone)
      #expect(guest.pending.count == 2, "\(telling.step)")
      _ = try await registry.adopt(guest.area, by: ada)
    }
    #expect(try await registry.owners() == ["ada"], "\(telling.step)")
    let profile = try await registry.profile(for: ada)
    #expect(try profile.waitingRecords() == ["g1", "g2"], "\(telling.step)")
    try await requireBound(profile, telling)
  }

  static func adopt(_ telling: CrashStory.Telling) async throws {
    let registry = try telling.registry()
    try await registry.requireSound(telling, foreign: ["ada": ["guest"]])
    let ada = try verified("ada")
    let profile = try await registry.profile(for: ada)
    // All of it or nothing.
    let before = try profile.waitingRecords()
    #expect(before == ["own"] || before == ["own", "g1", "g2"], "\(telling.step)")
    let source = try #require(try await registry.profiles().first { $0.owner == nil })
    _ = try await registry.adopt(source.area, by: ada)
    #expect(try profile.waitingRecords() == ["own", "g1", "g2"], "\(telling.step)")
    #expect(try profile.adoptionReceipts().count == 1, "\(telling.step)")
    #expect(try registry.index.snapshot().intents.isEmpty, "\(telling.step)")
    #expect(try await registry.profile(for: ada).id == profile.id)
    try await requireBound(profile, telling)
    try await registry.requireSound(telling, foreign: ["ada": ["guest"], "guest": ["guest"]])
  }

  static func erase(_ telling: CrashStory.Telling) async throws {
    let registry = try telling.registry()
    try await registry.requireSound(telling)
    let owners = try await registry.owners()
    #expect(owners.contains("bob"), "\(telling.step)")
    let ada = try verified("ada")
    if owners.contains("ada") {
      #expect(!telling.isDone)
      #expect(try await registry.profile(for: ada).waitingRecords() == ["a", "b", "c"])
      try await registry.erase(ada, discardingPending: true)
    }
    #expect(try await registry.owners() == ["bob"], "\(telling.step)")
    let bob = try await registry.profile(for: try verified("bob"))
    #expect(try bob.waitingRecords() == ["bobs"], "\(telling.step)")
    let areas = try await registry.settled {
      try FileManager.default.subpathsOfDirectory(
        atPath: telling.directory.store.path + "/areas"
      ).filter { $0.hasSuffix("data.mdb") }
    } until: {
      $0.count == 1
    }
    #expect(areas.count == 1, "\(telling.step): \(areas)")
    #expect(try files(under: telling.directory.store.path, with: "canary-ada") == 0)
    // Whoever signs in again begins anew.
    #expect(try await registry.profile(for: ada).waitingRecords() == [])
  }

  static func rebuild(_ telling: CrashStory.Telling) async throws {
    let registry = try telling.registry()
    try await registry.requireSound(telling)
    #expect(try await registry.owners() == ["ada", "bob"], "\(telling.step)")
    for (name, records) in [("ada", ["own"]), ("bob", ["bobs"])] {
      let profile = try await registry.profile(for: try verified(name))
      #expect(try profile.waitingRecords() == records, "\(telling.step)")
    }
    let guest = try await registry.profiles().first { $0.owner == nil }
    #expect(guest?.pending.count == 2, "\(telling.step)")
    #expect(try await registry.profiles().count == 3, "\(telling.step)")
  }

  /// An owner was written, and stays.
  private static func requireBound(
    _ profile: Profile, _ telling: CrashStory.Telling
  ) async throws {
    let bob = try verified("bob")
    await expect(.ownedByAnotherAccount) { try await profile.bindAccount(bob) }
    #expect(try profile.owner == verified("ada"), "\(telling.step)")
  }
}

extension Profile {
  /// The records of what waits, in its order, whoever is signed in.
  func waitingRecords() throws -> [String] {
    try area.read { transaction in
      try area.batch(after: 0, countMax: 500, byteCountMax: 1 << 24, transaction)
        .map(\.record.text)
    }
  }
}
