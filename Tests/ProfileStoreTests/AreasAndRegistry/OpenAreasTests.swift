import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

extension AreasAndRegistry {
  @Suite("switching among accounts whose areas are kept open")
  struct KeptOpen {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    private func registry(keeping count: Int) throws -> ProfileRegistry {
      var configuration = ProfileRegistry.Configuration()
      configuration.openAreaCountMax = count
      return try ProfileRegistry(
        directory: URL(fileURLWithPath: store.path), session: store.session,
        configuration: configuration)
    }

    @Test("comes back to the area that is open, with the same checks")
    func same() async throws {
      let registry = try registry(keeping: 4)
      let (ada, profile) = try await store.signedInProfile("ada", in: registry)
      let area = profile.area
      #expect(try await registry.profile(for: ada.remembered).area === area)
      store.signIn(try verified("bob"))
      #expect(
        await code { _ = try await registry.profile(for: ada.remembered) }
          == .anotherAccountSignedIn)
      store.session.signOut()
      #expect(await code { _ = try await registry.profile(for: ada.remembered) } == .notSignedIn)
    }

    #if os(Linux)
      @Test("keeps a bounded number open; one in use is never closed")
      func bounded() async throws {
        let registry = try registry(keeping: 4)
        var held: [Profile] = []
        for number in 0..<3 {
          held.append(try await registry.profile(for: verified("held \(number)")))
        }
        for number in 0..<30 {
          _ = try await registry.profile(for: verified("idle \(number)"))
        }
        // A quarter more than the count, and those in use; closing is done beside this.
        try await eventually { try openDataFiles(under: store.path + "/areas") <= 5 + 3 }
        for (number, profile) in held.enumerated() {
          #expect(try profile.owner == verified("held \(number)"))
          let again = try await registry.profile(for: verified("held \(number)"))
          #expect(again.area === profile.area)
        }
      }

      @Test("with 0 closes an area with its last profile")
      func none() async throws {
        let registry = try registry(keeping: 0)
        let ada = try verified("ada")
        do { _ = try await registry.profile(for: ada) }
        try await eventually { try openDataFiles(under: store.path + "/areas") == 0 }
        #expect(try await registry.profile(for: ada).owner == ada)
      }
    #endif

    @Test("an area kept open that another process erases is let go of, and its files go")
    func erasedByAnother() async throws {
      let registry = try registry(keeping: 4)
      let ada = try verified("ada")
      let bob = try verified("bob")
      let area: AreaID
      do { area = try await registry.profile(for: ada).id }
      let other = try await registry.profile(for: bob).id
      await #expect(processExitsWith: .success) { [path = store.path as String] in
        let session = AppSession()
        session.signOut()
        let registry = try ProfileRegistry(directory: URL(fileURLWithPath: path), session: session)
        try await registry.erase(verified("ada"))
      }
      #expect(Set(try store.entries()) == Set([area, other].map(\.description)))
      // Whichever account comes next.
      #expect(try await registry.profile(for: bob).id == other)
      #expect(try await store.hasOnly([other], in: registry))
      let second = try await registry.profile(for: ada)
      #expect(second.id != area)
    }

    @Test("an area whose files were replaced under the process is opened anew, as a copy")
    func replaced() async throws {
      let registry = try registry(keeping: 4)
      let ada = try verified("ada")
      let id: AreaID
      let client: UUID
      do {
        let profile = try await registry.profile(for: ada)
        id = profile.id
        client = try profile.area.facts().client.id
        try await profile.area.environment.copy(to: store.path + "/copied")
      }
      let directory = registry.directory(of: id)
      try FileManager.default.moveItem(atPath: directory, toPath: store.path + "/away")
      try FileManager.default.moveItem(atPath: store.path + "/copied", toPath: directory)
      let again = try await registry.profile(for: ada)
      #expect(again.id == id)
      #expect(try again.area.facts().client.id != client)
    }

    @Test("200 times signed out and in without a pause: every read is right")
    func backAndForth() async throws {
      let registry = try registry(keeping: 1)
      let accounts = try ["ada", "bob", "cleo"].map { try verified($0) }
      for (number, account) in accounts.enumerated() {
        let profile = try await registry.profile(for: account)
        store.signIn(account)
        try await profile.enqueue(.put("who", Data("\(number)".utf8)), account: account)
      }
      for round in 0..<200 {
        let number = round * 7 % 3
        store.session.signOut()
        store.signIn(accounts[number])
        let profile = try await registry.profile(for: accounts[number].remembered)
        #expect(try profile.text("who") == "\(number)")
      }
    }
  }
}

/// Asks until it is so; the files of an area are let go of in the background.
func eventually(
  _ location: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + .seconds(20)
  while ContinuousClock.now < deadline {
    if try condition() { return }
    try await Task.sleep(for: .milliseconds(1))
  }
  Issue.record("it was never so", sourceLocation: location)
}

#if os(Linux)
  /// How many data files this process has open there: each area has one descriptor for writing.
  func openDataFiles(under path: String) throws -> Int {
    Set(try openFiles(under: path).filter { $0.hasSuffix("/data.mdb") }).count
  }

  /// The files under a directory that this process has open, one for each descriptor.
  func openFiles(under path: String) throws -> [String] {
    let real = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    return try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
      // One that was closed since it was listed has no link any more.
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
    }.filter { $0.hasPrefix(real + "/") }
  }
#endif
