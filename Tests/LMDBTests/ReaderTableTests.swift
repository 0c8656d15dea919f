import Foundation
import LMDB
import Testing

@Suite("The reader table")
struct ReaderTableTests {
  @Test("shows a killed reader as dead, and clearing frees its slot and counts it")
  func deadReader() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    let environment = try Environment.open(at: path)
    let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
    try await environment.write { try $0.put(1, for: 1, in: table) }
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let other = try Environment.open(at: path)
      _ = try other.read { _ in kill(getpid(), SIGKILL) }
    }
    try await environment.write { try $0.put(2, for: 1, in: table) }
    let dead = try #require(try environment.readers().first { $0.process != getpid() })
    #expect(!dead.isAlive)
    #expect(dead.transaction != nil)
    #expect(dead.lag == 1)
    #expect(try environment.clearDeadReaders() == 1)
    #expect(try environment.readers().allSatisfy { $0.process == getpid() })
    #expect(try environment.clearDeadReaders() == 0)
  }

  @Test("of a closed environment is an error")
  func closed() throws {
    let directory = try TemporaryDirectory()
    let environment = try Environment.open(at: directory.file("env"))
    try environment.close()
    #expect(try #require(throws: LMDBError.self) { try environment.readers() }.code == .closed)
    #expect(
      try #require(throws: LMDBError.self) { try environment.clearDeadReaders() }.code == .closed)
    #expect(
      try #require(throws: LMDBError.self) { try environment.detailedStatistics() }.code == .closed)
  }
}
