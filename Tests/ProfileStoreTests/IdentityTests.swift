import Foundation
import HubProtocol
import ProfileStore
import Testing

@Suite("Identity")
struct IdentityTests {
  let store: TemporaryStore

  init() throws { store = try TemporaryStore() }

  /// IDs that anything but a comparison of bytes would take for another one of the list.
  private static let twins = [
    "caf\u{E9}", "cafe\u{301}", "Cafe\u{301}", "CAFE\u{301}", "ada", "Ada", "ADA", " ada", "ada ",
    "ada\n", "ada\0", "ad\0a", "a/b", "a\\b", "a:b", "a", "..", ".", "../ada", "/", "\0",
    "\u{1F469}\u{200D}\u{1F4BB}", "\u{1F469}\u{1F4BB}", "\u{FB01}", "fi", "stra\u{DF}e", "strasse",
    "\u{212B}", "\u{C5}", "A\u{30A}", "\u{FEFF}ada", "ad\u{430}", "%61da", "\u{130}", "i\u{307}",
    String(repeating: "x", count: 256), String(repeating: "x", count: 255),
  ]

  @Test("two accounts are equal only if hub and ID are equal byte for byte: each twin has its area")
  func twinsHaveAreasOfTheirOwn() async throws {
    let registry = try store.registry()
    var areas: [AreaID: Int] = [:]
    for (number, id) in Self.twins.enumerated() {
      let account = try verified(id)
      let profile = try await registry.profile(for: account)
      #expect(areas.updateValue(number, forKey: profile.id) == nil, "\(id.debugDescription)")
      store.signIn(account)
      try await profile.enqueue(.put("r", Data("canary-\(number)-".utf8)), account: account)
      #expect(try profile.owner == account)
      #expect(try await registry.profile(for: account.remembered).id == profile.id)
    }
    #expect(areas.count == Self.twins.count)
    for (area, number) in areas {
      let bytes = try bytes(under: registry.directory(of: area))
      for other in Self.twins.indices {
        #expect(
          (bytes.range(of: Data("canary-\(other)-".utf8)) != nil) == (other == number),
          "canary of account \(other) in the area of account \(number)")
      }
    }
  }

  @Test("two accounts are equal only if hub and ID are equal: one ID at two hubs is two accounts")
  func oneIDAtTwoHubs() async throws {
    let registry = try store.registry()
    let here = try verified("ada")
    let there = try verified("ada", hub: Hub.second)
    #expect(here != there)
    let profile = try await registry.profile(for: here)
    #expect(try await registry.profile(for: there).id != profile.id)
    store.signIn(there)
    #expect(
      await code { try await profile.enqueue(.put("r", Data()), account: there) }
        == .ownedByAnotherAccount)
  }

  @Test("two accounts are equal only if their bytes are: Swift's String equality decides nothing")
  func stringEqualityDecidesNothing() throws {
    let composed = "caf\u{E9}"
    let decomposed = "cafe\u{301}"
    try #require(composed == decomposed, "the two are one String")
    let first = try verified(composed)
    let second = try verified(decomposed)
    #expect(first != second)
    #expect(first.bytes != second.bytes)
    #expect(Set([first, second]).count == 2)
  }

  @Test(
    "an account ID has 1 to 256 bytes of UTF-8; any other is refused by a typed error",
    arguments: [
      ("", false), ("x", true), (String(repeating: "x", count: 256), true),
      (String(repeating: "x", count: 257), false), (String(repeating: "\u{E9}", count: 128), true),
      (String(repeating: "\u{E9}", count: 129), false),
    ])
  func accountIDLimits(_ id: String, _ isLegal: Bool) async throws {
    if isLegal {
      let account = try verified(id)
      let registry = try store.registry()
      #expect(try await registry.profile(for: account).owner == account)
    } else {
      #expect(throws: IdentifierError.self) { try AccountID(id) }
      #expect(VerifiedAccount(storedBytes: Data(count: 16) + Data(id.utf8), proof: .area) == nil)
    }
  }

  @Test("an account is verified when it was read back from an area that was bound to it")
  func readBackFromItsArea() async throws {
    var account = try verified("ada")
    do {
      let registry = try store.registry()
      let profile = try await registry.profile(for: account)
      account = try #require(try profile.owner)
    }
    let registry = try store.registry()
    store.session.restore(account: account.bytes, token: nil)
    let read = try #require(try await registry.profiles().first?.owner)
    #expect(read == account)
    #expect(try await registry.profile(for: read).owner == account)
  }

  @Test("VerifiedAccount is not Decodable; an app stores and compares its bytes")
  func notDecodable() throws {
    let type: Any.Type = VerifiedAccount.self
    #expect(!(type is any Decodable.Type))
    let account = try verified("ada")
    #expect(account.bytes == Data(repeating: 1, count: 16) + Data("ada".utf8))
    #expect(try verified("ada").bytes == account.bytes)
  }

  @Test("nothing derives an account from the token that happens to be active")
  func tokenDecidesNothing() async throws {
    let registry = try store.registry()
    let (ada, profile) = try await store.signedInProfile("ada", in: registry)
    let bob = try verified("bob")
    store.session.signIn(ada, token: "token of bob")
    try await profile.enqueue(.put("r", Data()), account: ada)
    #expect(try profile.waiting().map(\.stamp) == [ada.bytes])
    store.session.signIn(bob, token: "token of ada")
    #expect(
      await code { try await profile.enqueue(.put("r", Data()), account: ada) }
        == .anotherAccountSignedIn)
    #expect(try profile.owner == ada)
  }

  @Test("every check compares the account of the caller, the owner in the area and the session")
  func everyCheckComparesThree() async throws {
    let registry = try store.registry()
    let ada = try verified("ada")
    let bob = try verified("bob")
    let profile = try await registry.profile(for: ada)
    let before = try profile.dump()
    let table: [(caller: VerifiedAccount?, session: SessionState, code: StoreError.Code?)] = [
      (ada, .unknown, .sessionUnknown), (nil, .unknown, .sessionUnknown),
      (bob, .unknown, .sessionUnknown), (ada, .nobody, .notSignedIn),
      (nil, .nobody, .accountRequired), (bob, .nobody, .ownedByAnotherAccount),
      (ada, bob.signedIn(), .anotherAccountSignedIn), (nil, ada.signedIn(), .accountRequired),
      (nil, bob.signedIn(), .accountRequired), (bob, ada.signedIn(), .ownedByAnotherAccount),
      (bob, bob.signedIn(), .ownedByAnotherAccount),
    ]
    for row in table {
      let session = ScriptedSession(row.session)
      let other = try store.registry(session: session)
      let handle = Profile.handle(to: profile.area, of: other)
      let thrown = await code { try await handle.enqueue(.put("r", Data()), account: row.caller) }
      #expect(thrown == row.code, "\(row)")
      #expect(try profile.dump() == before)
    }
    let right = try store.registry(session: ScriptedSession(ada.signedIn()))
    try await Profile.handle(to: profile.area, of: right).enqueue(.put("r", Data()), account: ada)
    #expect(try profile.waiting().count == 1)
  }

  @Test(
    "a check is made again after each await: a session that changes is noticed wherever it changes",
    arguments: ["another", "nobody", "unknown"])
  func changesOnCue(_ becomes: String) async throws {
    let ada = try verified("ada")
    let bob = try verified("bob")
    let registry = try store.registry()
    let profile = try await registry.profile(for: ada)
    try await store.guest(in: registry, puts: ["guest"])
    let changed: SessionState =
      switch becomes {
      case "another": bob.signedIn()
      case "nobody": .nobody
      default: .unknown
      }
    for change in 1... {
      // Before the call number `change` the session says ada, from it on something else.
      let session = ScriptedSession { $0 < change ? ada.signedIn() : changed }
      let handle = Profile.handle(to: profile.area, of: try store.registry(session: session))
      let before = try profile.dump()
      let thrown = await code { try await handle.enqueue(.put("r", Data()), account: ada) }
      if thrown == nil {
        #expect(session.callCount < change, "it was stored although the session had changed")
        break
      }
      #expect(try profile.dump() == before)
      try #require(change < 100)
    }
    #expect(try profile.waiting().count == 1)
  }

  @Test("writing an owner needs proof of both: an account that an area says provisions nothing")
  func provisionNeedsProof() async throws {
    let registry = try store.registry()
    let ada = try verified("ada").remembered
    store.session.signIn(ada, token: "token")
    #expect(await code { _ = try await registry.profile(for: ada) } == .proofRequired)
    #expect(try store.entries() == [])
    #expect(await code { _ = try await registry.currentProfile() } == .unknownAccount)
  }

  @Test("writing an owner needs proof of both: an account that an area says binds nothing")
  func bindNeedsProof() async throws {
    let registry = try store.registry()
    let guest = try await store.guest(in: registry, puts: ["r"])
    let before = try guest.dump()
    let ada = try verified("ada").remembered
    #expect(
      await code { try await guest.bindAccount(ada, adoptingUnownedData: true) } == .proofRequired)
    #expect(try guest.dump() == before)
    #expect(try registry.index.snapshot().intents.isEmpty)
  }

  @Test("the client that the hub accepted becomes the area's, once, and comes back from a failure")
  func clientOfTheProof() async throws {
    let registry = try store.registry()
    let client = UUID()
    let ada = VerifiedAccount(
      hub: Hub.first, id: try AccountID("ada"), proof: .hub(ClientTicket(client: client)))
    struct Refused: Error {}
    let guest = try await store.guest(in: registry, puts: ["r"])
    await #expect(throws: Refused.self) {
      try await guest.bindAccount(ada, adoptingUnownedData: true) { _, _ in throw Refused() }
    }
    let bound = try await guest.bindAccount(ada, adoptingUnownedData: true)
    #expect(try bound.area.facts().client.id == client)
    #expect(try bound.area.facts().client.isRegistered)
    try await registry.erase(ada, discardingPending: true)
    let second = try await registry.profile(for: ada)
    #expect(try second.area.facts().client.id != client)
    #expect(try second.area.facts().client.isRegistered == false)
  }

  @Test("opening an owned area writes no owner: session = owner suffices, also offline")
  func openingOffline() async throws {
    let registry = try store.registry()
    let ada = try verified("ada")
    let profile = try await registry.profile(for: ada)
    store.session.restore(account: ada.bytes, token: nil)
    #expect(try await registry.profile(for: ada.remembered).id == profile.id)
    #expect(try await registry.currentProfile().id == profile.id)
    try await profile.enqueue(.put("r", Data()), account: ada.remembered)
    store.session.signOut()
    #expect(await code { _ = try await registry.profile(for: ada.remembered) } == .notSignedIn)
  }

  @Test("adopting into an owned area writes no owner: session = owner suffices, also offline")
  func adoptingOffline() async throws {
    let registry = try store.registry()
    let (ada, profile) = try await store.signedInProfile("ada", in: registry)
    let guest = try await store.guest(in: registry, puts: ["r"])
    store.session.restore(account: ada.bytes, token: nil)
    let adopted = try await guest.bindAccount(ada.remembered, adoptingUnownedData: true)
    #expect(adopted.id == profile.id)
    #expect(try profile.waiting().map(\.record) == ["r"])
  }

  @Test("maintenance calls name the account, need no session and send nothing")
  func maintenanceNeedsNoSession() async throws {
    let ada = try verified("ada")
    let bob = try verified("bob")
    let mutations = (0..<4).map { Mutation.put(RecordID("r\($0)"), Data([1]), mutation: UUID()) }
    do {
      let registry = try store.registry()
      let profile = try await registry.profile(for: ada)
      store.signIn(ada)
      try await profile.enqueue(mutations, account: ada)
      for mutation in mutations { try await profile.park(mutation.id) }
      try await store.guest(in: registry, puts: ["guest"])
    }
    let session = ScriptedSession(.unknown)
    let registry = try store.registry(session: session)
    let profile = try await registry.profileForMaintenance(of: ada)
    #expect(
      await code { try await profile.retry(mutations[0].id, account: bob) }
        == .ownedByAnotherAccount)
    try await profile.retry(mutations[0].id, account: ada)
    try await profile.discard(mutations[1].id, account: ada)
    try await profile.resolve(mutations[2].id, seen: nil, account: ada, .keepLocal)
    try await profile.strikeOff(mutations.map(\.id), account: ada)
    let guest = try #require(try registry.index.unowned())
    _ = try await registry.adopt(guest, by: ada.remembered)
    #expect(try profile.pendingSummary().count == 4)
    #expect(await code { try await registry.erase(bob) } == .unknownAccount)
    try await registry.erase(ada, discardingPending: true)
    #expect(session.callCount == 0)
  }
}
