import Foundation
import HubProtocol
import ProfileStore
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What a child process does before it ends at one step.
private enum Story {
  static func registry(at path: String, endingAt step: OwnershipStep) throws -> ProfileRegistry {
    var configuration = ProfileRegistry.Configuration()
    configuration.onStep = { if $0 == step { kill(getpid(), SIGKILL) } }
    let session = AppSession()
    session.signOut()
    return try ProfileRegistry(
      directory: URL(fileURLWithPath: path), session: session, configuration: configuration)
  }

  static func run(at path: String, endingAt step: OwnershipStep) async throws {
    let registry = try registry(at: path, endingAt: step)
    let ada = try verified("ada")
    switch step {
    case .provisionIntended, .provisionMade, .provisionPlaced:
      _ = try await registry.profile(for: ada)
    case .bindIntended, .bindWritten, .adoptIntended, .adoptFrozen, .adoptCopied, .adoptMoved:
      try await registry.unownedProfile().bindAccount(ada, adoptingUnownedData: true)
    case .eraseIntended, .eraseMarked, .eraseRenamed, .eraseRemoved:
      try await registry.erase(ada)
    }
  }
}

extension AreasAndRegistry {
  /// Each test ends a process at a step and opens what it left.
  @Suite("a process killed between two steps")
  struct Crashes {
    let store: TemporaryStore
    let ada: VerifiedAccount

    init() throws {
      store = try TemporaryStore()
      ada = try verified("ada")
    }

    private func endProcess(at step: OwnershipStep) async {
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [path = store.path as String, step = step as OwnershipStep] in
        try await Story.run(at: path, endingAt: step)
      }
    }

    /// Nothing is open in this process while the other one runs: it could not let go of it.
    private func prepare(_ body: (ProfileRegistry) async throws -> Void) async throws {
      let registry = try store.registry()
      try await body(registry)
    }

    @Test(
      "while it provisions: the account gets one area, whole",
      arguments: [OwnershipStep.provisionIntended, .provisionMade, .provisionPlaced])
    func provisioning(_ step: OwnershipStep) async throws {
      await endProcess(at: step)
      let registry = try store.registry()
      #expect(try registry.index.snapshot().intents.isEmpty)
      #expect(try store.entries().count == (step == .provisionPlaced ? 1 : 0))
      let profile = try await registry.profile(for: ada)
      #expect(try profile.owner == ada)
      #expect(try store.entries() == [profile.id.description])
    }

    @Test(
      "while it binds: the area is the account's or nobody's, and its data is whole",
      arguments: [OwnershipStep.bindIntended, .bindWritten])
    func binding(_ step: OwnershipStep) async throws {
      try await prepare { try await store.guest(in: $0, puts: ["a"]) }
      await endProcess(at: step)
      let registry = try store.registry()
      #expect(try registry.index.snapshot().intents.isEmpty)
      store.session.signOut()
      let guest = try await registry.unownedProfile()
      if step == .bindIntended {
        #expect(try guest.outbox().map(\.record) == ["a"])
        try await guest.bindAccount(ada, adoptingUnownedData: true)
      } else {
        #expect(try guest.outbox().isEmpty)
      }
      let profile = try await registry.profile(for: ada)
      #expect(try profile.sendable().map(\.record) == ["a"])
    }

    @Test(
      "while it adopts: frozen, repeated or finished, and every mutation is there once",
      arguments: [OwnershipStep.adoptIntended, .adoptFrozen, .adoptCopied, .adoptMoved])
    func adopting(_ step: OwnershipStep) async throws {
      var areas: [AreaID] = []
      try await prepare { registry in
        areas.append(try await registry.profile(for: ada).id)
        areas.append(try await store.guest(in: registry, puts: ["a", "b"]).id)
        try await registry.keepUnowned(decidedBy: ada)
      }
      await endProcess(at: step)
      // Who only looks finishes nothing.
      let intents = try bytes(under: store.path + "/registry")
      _ = try StoreInspector(directory: URL(fileURLWithPath: store.path)).profiles()
      #expect(try bytes(under: store.path + "/registry") == intents)
      let registry = try store.registry()
      let states = try await registry.profiles()
      let source = try #require(states.first { $0.area == areas[1] })
      let isCopied = step == .adoptCopied || step == .adoptMoved
      #expect(source.failure == nil)
      #expect(
        source.state == (step == .adoptIntended ? .unowned : isCopied ? .moved : .frozen))
      #expect(try registry.index.snapshot().intents.isEmpty == (step != .adoptFrozen))
      let adas = try await registry.profile(for: ada)
      #expect(try adas.waiting().count == (isCopied ? 2 : 0))
      store.session.signOut()
      if step == .adoptFrozen {
        // Nobody waits for an adoption that was not carried out.
        let guest = try await registry.unownedProfile()
        #expect(guest.id != areas[1])
        try await guest.enqueue(.put("x", Data()), account: nil)
      }
      #expect(try await registry.adopt(areas[1], by: ada).id == adas.id)
      #expect(try adas.sendable().map(\.record) == ["a", "b"])
      #expect(try adas.adoptionReceipts().count == 1)
      #expect(try registry.index.snapshot().intents.isEmpty)
    }

    @Test(
      "while it erases: not begun, or finished with every file",
      arguments: OwnershipStep.allCases.filter { $0.rawValue.hasPrefix("erase") })
    func erasing(_ step: OwnershipStep) async throws {
      var areas: [AreaID] = []
      try await prepare { registry in
        areas.append(try await registry.profile(for: ada).id)
        let (bob, profile) = try await store.signedInProfile("bob", in: registry)
        try await profile.enqueue(.put("bobs", Data("payload".utf8)), account: bob)
        areas.append(profile.id)
        store.session.signOut()
      }
      let others = "\(store.path)/areas/\(areas[1].description.prefix(2))/\(areas[1])"
      let before = try bytes(under: others)
      await endProcess(at: step)
      let registry = try store.registry()
      let isErased = step != .eraseIntended
      #expect(try await store.hasOnly(isErased ? [areas[1]] : areas, in: registry))
      #expect(try pathsNaming(areas[0]).isEmpty == isErased)
      #expect(try bytes(under: others) == before)
      #expect(try registry.index.snapshot().intents.isEmpty)
      let known = try registry.index.area(of: ada.bytes)
      #expect((known == nil) == isErased)
      let profile = try await registry.profile(for: ada)
      #expect(try profile.owner == ada)
      #expect(try await store.hasOnly([profile.id, areas[1]], in: registry))
    }

    /// Everything in the store's directory whose path has the area's ID in it.
    private func pathsNaming(_ area: AreaID) throws -> [String] {
      try FileManager.default.subpathsOfDirectory(atPath: store.path)
        .filter { $0.contains(area.description) }
    }

    @Test("and a registry lost as well: what was half done is found in the areas")
    func registryLostToo() async throws {
      try await prepare { registry in
        _ = try await registry.profile(for: ada)
        try await store.guest(in: registry, puts: ["a"])
        try await registry.keepUnowned(decidedBy: ada)
      }
      await endProcess(at: .adoptCopied)
      try FileManager.default.removeItem(atPath: store.path + "/registry")
      let registry = try store.registry()
      let adas = try await registry.profile(for: ada)
      #expect(try adas.waiting().map(\.record) == ["a"])
      #expect(
        try await registry.profiles().map(\.state).sorted { $0.rawValue < $1.rawValue }
          == [.moved, .owned])
    }

    @Test("another process writes to the same store at the same time: both are stored")
    func twoProcesses() async throws {
      let registry = try store.registry()
      let (ada, profile) = try await store.signedInProfile("ada", in: registry)
      async let mine: Void = {
        for number in 0..<20 {
          try await profile.enqueue(.put(RecordID("mine \(number)"), Data()), account: ada)
        }
      }()
      await #expect(processExitsWith: .success) { [path = store.path as String] in
        let ada = try verified("ada").remembered
        let session = AppSession()
        session.signIn(ada, token: "token")
        let registry = try ProfileRegistry(
          directory: URL(fileURLWithPath: path), session: session)
        let profile = try await registry.profile(for: ada)
        for number in 0..<20 {
          try await profile.enqueue(.put(RecordID("theirs \(number)"), Data()), account: ada)
        }
      }
      try await mine
      #expect(try profile.outbox().count == 40)
      #expect(Set(try profile.outbox().map(\.order)).count == 40)
    }

    @Test(
      "erased by another process: every later transaction throws, and the files go at the next call"
    )
    func erasedByAnother() async throws {
      let registry = try store.registry()
      let (ada, profile) = try await store.signedInProfile("ada", in: registry)
      await #expect(processExitsWith: .success) { [path = store.path as String] in
        let session = AppSession()
        session.signOut()
        let registry = try ProfileRegistry(
          directory: URL(fileURLWithPath: path), session: session)
        try await registry.erase(verified("ada"))
      }
      // This process holds it: its files are still there, and say what they are.
      #expect(try store.entries() == [profile.id.description])
      #expect(await code { try await profile.enqueue(.put("r", Data()), account: ada) } == .erased)
      #expect(await code { _ = try profile.record("r") } == .erased)
      #expect(await code { _ = try profile.owner } == .erased)
      // An area that says `erased` counts as none: a fresh one is provisioned beside it.
      let second = try await registry.profile(for: ada)
      #expect(second.id != profile.id)
      #expect(try await store.hasOnly([second.id], in: registry))
    }
  }
}
