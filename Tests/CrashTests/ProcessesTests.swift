import Foundation
import HubProtocol
import LMDB
import ProfileStore
import SyncTestSupport
import Testing

@Suite("Several processes on one store")
struct ProcessesTests {
  private func open(
    _ directory: StoreDirectory, limits: StoreLimits = StoreLimits()
  ) async throws -> (VerifiedAccount, Profile) {
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(
      directory: directory.store, session: session, configuration: .init(limits: limits))
    let ada = try verified("ada")
    let profile = try await registry.profile(for: ada)
    session.signIn(ada, token: "token")
    return (ada, profile)
  }

  private func child(
    _ story: String, _ directory: StoreDirectory, _ words: [String] = []
  ) throws -> ChildProgram {
    try ChildProgram("crash-child", [story, directory.store.path, "count", "0"] + words)
  }

  @Test("an app, three others that write, one of them killed, and the inspection tool")
  func writers() async throws {
    let directory = try StoreDirectory()
    let (ada, profile) = try await open(directory)
    let others = try ["b", "c", "d"].map { try child("write", directory, ["200", $0]) }
    let killed = try child("write", directory, ["900000", "killed"])
    let inspecting = Task {
      var runs = 0
      while !Task.isCancelled {
        let list = try ChildProgram(
          "profilectl", ["--store", directory.store.path, "list", "--json"])
        let said = await list.lines().joined()
        #expect(try await list.end() == .exited(0))
        #expect(said.contains("01010101-0101-0101"), "\(said)")
        runs += 1
      }
      return runs
    }
    for number in 1...200 {
      try await profile.enqueue(.put(RecordID("a\(number)"), Data("canary-ada".utf8)), account: ada)
    }
    killed.kill()
    #expect(try await killed.end() == .signal(SIGKILL))
    for other in others {
      #expect(await other.line() == "stored")
      #expect(try await other.end() == .exited(0))
    }
    inspecting.cancel()
    #expect(try await inspecting.value > 0)
    let outbox = try profile.outbox()
    for prefix in ["a", "b", "c", "d"] {
      let own = outbox.map(\.record.text).filter { $0.hasPrefix(prefix) }
      #expect(own == (1...200).map { "\(prefix)\($0)" })
    }
    // The killed one's are there from the first on, without a gap.
    let rest = outbox.map(\.record.text).filter { $0.hasPrefix("killed") }
    #expect(rest == rest.indices.map { "killed\($0 + 1)" })
    #expect(Set(outbox.map(\.order)).count == outbox.count)
    #expect(try profile.area.violations() == [])
  }

  @Test(
    "a reader that hangs: the file ends at its limit, the error names the process, and it goes on")
  func hangingReader() async throws {
    let directory = try StoreDirectory()
    var limits = StoreLimits()
    limits.areaByteCountMax = 8 << 20
    let (ada, profile) = try await open(directory, limits: limits)
    try await profile.enqueue(.put("waiting", Data("canary-ada".utf8)), account: ada)
    let reader = try child("hang", directory)
    #expect(await reader.line() == "holds")
    var version: UInt64 = 0
    /// The hub's next version of one record, as a pass commits it.
    func pull() async throws {
      version += 1
      try await profile.area.commit(
        [
          IncomingChange(
            record: "pulled", version: version, payload: Data(count: 100_000), isDeleted: false)
        ], epoch: UUID(uuid: (9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9)), lineage: [],
        progress: .cursor(version), position: nil, policy: profile.registry.policy, requiring: {})
    }
    let error = try #require(
      await #expect(throws: StoreError.self) { for _ in 0..<1_000 { try await pull() } })
    #expect(error.cause?.code == .mapFull)
    #expect("\(error)".contains("process \(reader.identifier) reads"), "\(error)")
    let file = profile.area.directory + "/data.mdb"
    func byteCount() throws -> Int {
      try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int ?? 0
    }
    #expect(try byteCount() <= 10 << 20)
    #expect(try profile.outbox().map(\.record) == ["waiting"])
    reader.kill()
    #expect(try await reader.end() == .signal(SIGKILL))
    for _ in 0..<200 { try await pull() }
    #expect(try byteCount() <= 10 << 20)
    #expect(try profile.record("pulled")?.version == version)
    #expect(try profile.area.violations() == [])
  }
}
