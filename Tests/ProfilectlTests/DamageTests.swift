import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

@Suite("profilectl, on a store that is damaged")
struct DamageTests {
  /// What is done to the data file of an area.
  struct Damage: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let sentence: String
    let harm: @Sendable (_ file: URL) throws -> Void

    static let all = [
      Damage(testDescription: "is cut short", sentence: "data.mdb has 8192 of") { file in
        try FileHandle(forWritingTo: file).truncate(atOffset: 8192)
      },
      Damage(testDescription: "is empty", sentence: "data.mdb is empty") { file in
        try FileHandle(forWritingTo: file).truncate(atOffset: 0)
      },
      Damage(testDescription: "is another file", sentence: "data.mdb is no LMDB file") { file in
        try Data(repeating: 7, count: 65_536).write(to: file)
      },
      Damage(testDescription: "is not there", sentence: "there is no environment") { file in
        try FileManager.default.removeItem(at: file)
      },
    ]
  }

  /// A store with two owned profiles.
  private func twoProfiles() async throws -> (store: TestStore, alice: Profile, bob: Profile) {
    let store = try TestStore()
    var profiles: [Profile] = []
    for id in ["alice@example.org", "bob@example.org"] {
      let account = try TestStore.account(id)
      let profile = try await store.profile(of: account)
      try await profile.enqueue(
        (0..<500).map { .put("record \($0)", Data(repeating: 65, count: 100)) }, account: account)
      profiles.append(profile)
    }
    return (store, profiles[0], profiles[1])
  }

  private func state(of profile: Profile, in run: ToolRun) throws -> [String: Any] {
    try #require(try run.profiles().first { $0["profile"] as? String == "\(profile.id)" })
  }

  @Test("lists the profile whose file", arguments: Damage.all)
  func unreadable(damage: Damage) async throws {
    let (store, alice, bob) = try await twoProfiles()
    let copy = try store.copied()
    try damage.harm(copy.file(store.path(of: alice.id) + "/data.mdb"))
    let before = try FileTree(copy.directory)

    let list = await copy.run(["list", "--json"])
    #expect(list.exitCode == 65)
    let damaged = try state(of: alice, in: list)
    #expect(damaged["state"] as? String == "unreadable")
    #expect((damaged["problem"] as? String)?.contains(damage.sentence) == true)
    #expect(try state(of: bob, in: list)["state"] as? String == "owned")
    #expect(
      list.errors == "profilectl: profiles that are not as they should be: 1 of 2, the reason "
        + "stands with each\n")

    let text = await copy.run(["list"])
    #expect(text.exitCode == 65)
    #expect(text.output.contains("\n\(alice.id.description.prefix(8)): "))

    let show = await copy.run(["show", "\(alice.id)"])
    #expect(show.exitCode == 65)
    #expect(show.output.contains("state             unreadable\n"))
    #expect(show.errors.contains(damage.sentence))
    let outbox = await copy.run(["outbox", "\(alice.id)"])
    #expect(outbox.exitCode == 65)
    #expect(outbox.output == "")
    #expect(outbox.errors.contains(damage.sentence))
    #expect(await copy.run(["outbox", "\(bob.id)"]).exitCode == 0)
    #expect(try FileTree(copy.directory) == before)
  }

  /// How pages can be wrong inside. LMDB does not look, and dies of it.
  enum PageDamage: CaseIterable, Sendable {
    /// Branches without a key: an assertion fails.
    case emptyBranches
    /// Values that reach far beyond the file: reading one is a wild read.
    case longValues

    /// Damages every page behind the two at the head of a file.
    func harm(_ file: URL) throws {
      var data = try Data(contentsOf: file)
      for start in stride(from: 8192, to: data.count, by: 4096) {
        var page = Array(data[start..<start + 4096])
        harm(&page)
        data.replaceSubrange(start..<start + 4096, with: page)
      }
      try data.write(to: file)
    }

    private func harm(_ page: inout [UInt8]) {
      func number(at place: Int) -> Int { Int(page[place]) | Int(page[place + 1]) << 8 }
      let isLeaf = page[10] & 2 != 0
      switch self {
      case .emptyBranches: page.replaceSubrange(10..<14, with: [1, 0, 16, 0])
      case .longValues where isLeaf:
        for place in stride(from: 16, to: number(at: 12), by: 2) {
          let node = number(at: place)
          // Records of tables, which have a length of their own, stay.
          if page[node + 4] == 0 { page.replaceSubrange(node + 2..<node + 4, with: [0xFF, 0x3F]) }
        }
      case .longValues: break
      }
    }
  }

  @Test("outlives pages that LMDB dies of", arguments: PageDamage.allCases)
  func pages(damage: PageDamage) async throws {
    let (store, alice, bob) = try await twoProfiles()
    let copy = try store.copied()
    try damage.harm(copy.file(store.path(of: alice.id) + "/data.mdb"))

    let list = try await copy.runProgram(["list", "--json"])
    #expect(list.exitCode == 65)
    #expect(try state(of: alice, in: list)["state"] as? String == "unreadable")
    #expect(try state(of: bob, in: list)["state"] as? String == "owned")
    for command in ["show", "outbox"] {
      let run = try await copy.runProgram([command, "\(alice.id)"])
      #expect(run.exitCode == 65)
      // LMDB prints the assertion that failed; the sentence comes behind it.
      let sentence = try #require(run.errors.split(separator: "\n").last)
      #expect(sentence.hasPrefix("profilectl: the file is damaged inside"))
    }
    #expect(
      try await copy.runProgram(["show", "\(bob.id)"]).exitCode == 0)
  }

  @Test("outlives a registry that LMDB dies of", arguments: PageDamage.allCases)
  func registryPages(damage: PageDamage) async throws {
    let (store, alice, bob) = try await twoProfiles()
    let copy = try store.copied()
    try damage.harm(copy.file("registry/data.mdb"))
    let list = try await copy.runProgram(["list", "--json"])
    #expect(list.exitCode == 65)
    #expect(try list.json()["registryProblem"] is String)
    for profile in [alice, bob] {
      #expect(try state(of: profile, in: list)["state"] as? String == "owned")
    }
  }

  @Test("tells an area that lies under another one's name")
  func swapped() async throws {
    let (store, alice, bob) = try await twoProfiles()
    let copy = try store.copied()
    let file = copy.file(store.path(of: alice.id) + "/data.mdb")
    try FileManager.default.removeItem(at: file)
    try FileManager.default.copyItem(
      at: copy.file(store.path(of: bob.id) + "/data.mdb"), to: file)
    let list = await copy.run(["list", "--json"])
    #expect(list.exitCode == 65)
    #expect(try state(of: alice, in: list)["state"] as? String == "unreadable")
  }

  @Test("tells an area of a newer format")
  func newerArea() async throws {
    let (store, alice, _) = try await twoProfiles()
    let copy = try store.copied()
    var identity: [UInt8] = [0, 0, 0, 9]
    withUnsafeBytes(of: alice.id.uuid.uuid) { identity.append(contentsOf: $0) }
    identity.append(contentsOf: [UInt8](repeating: 0, count: 8))
    try copy.put(identity, for: "identity", in: store.path(of: alice.id))
    let list = await copy.run(["list", "--json"])
    #expect(list.exitCode == 65)
    let newer = try state(of: alice, in: list)
    #expect(newer["state"] as? String == "unreadable")
    #expect(
      newer["problem"] as? String
        == "the area has format 9, this version reads up to 2: update the program")
  }

  @Test("reads on when the registry is missing or damaged", arguments: [true, false])
  func registry(isMissing: Bool) async throws {
    let (store, alice, _) = try await twoProfiles()
    let copy = try store.copied()
    if isMissing {
      try FileManager.default.removeItem(at: copy.file("registry"))
    } else {
      try Data(repeating: 7, count: 65_536).write(to: copy.file("registry/data.mdb"))
    }
    let before = try FileTree(copy.directory)
    let list = await copy.run(["list", "--json"])
    #expect(list.exitCode == 65)
    #expect(try list.profiles().map { $0["state"] as? String } == ["owned", "owned"])
    let problem = try #require(try list.json()["registryProblem"] as? String)
    #expect(list.errors == "profilectl: \(problem)\n")
    #expect(problem.hasPrefix(isMissing ? "the registry is missing" : "the registry cannot be"))
    let show = await copy.run(["show", "\(alice.id)"])
    #expect(show.exitCode == 65)
    #expect(show.output.contains("registry          cannot be read\n"))
    #expect(await copy.run(["outbox", "\(alice.id)"]).exitCode == 0)
    #expect(try FileTree(copy.directory) == before)
  }

  @Test("names a profile that only the registry knows")
  func missingArea() async throws {
    let (store, alice, _) = try await twoProfiles()
    let copy = try store.copied()
    try FileManager.default.removeItem(at: copy.file(store.path(of: alice.id)))
    let list = await copy.run(["list", "--json"])
    #expect(list.exitCode == 65)
    #expect(try state(of: alice, in: list)["state"] as? String == "missing")
    let show = await copy.run(["show", "\(alice.id)", "--json"])
    #expect(show.exitCode == 65)
    #expect(try show.json()["state"] as? String == "missing")
    #expect(await copy.run(["outbox", "\(alice.id)"]).exitCode == 65)
  }

  @Test("names a profile that the registry does not know, or knows otherwise")
  func disagreement() async throws {
    let (store, alice, bob) = try await twoProfiles()
    let other = try TestStore()
    _ = try await other.profile(of: try TestStore.account("carol@example.org"))
    let copy = try store.copied()
    // The registry of another store knows neither of them, and names one that is not here.
    let foreign = try other.copied()
    try FileManager.default.removeItem(at: copy.file("registry"))
    try FileManager.default.moveItem(at: foreign.file("registry"), to: copy.file("registry"))
    let list = await copy.run(["list", "--json"])
    #expect(list.exitCode == 65)
    #expect(try list.profiles().count == 3)
    for profile in [alice, bob] {
      let unknown = try state(of: profile, in: list)
      #expect(unknown["state"] as? String == "owned")
      #expect(
        unknown["problem"] as? String
          == "the registry does not know this profile, so no app opens it; its data is whole")
    }
    // Its data can be read all the same.
    let outbox = await copy.run(["outbox", "\(alice.id)", "--json"])
    #expect(outbox.exitCode == 65)
    #expect((try outbox.json()["entries"] as? [Any])?.count == 500)
  }

  @Test("tells an owner that is not the registry's")
  func otherOwner() async throws {
    let (store, alice, _) = try await twoProfiles()
    let copy = try store.copied()
    let mallory = try TestStore.account("mallory@example.org")
    try copy.put(Array(mallory.bytes), for: "owner", in: store.path(of: alice.id))
    let list = await copy.run(["list", "--json"])
    #expect(list.exitCode == 65)
    #expect(
      try state(of: alice, in: list)["problem"] as? String
        == "the registry says another owner than the profile, so no app opens it; its data is whole"
    )
  }
}
