#if os(Linux)
  import Foundation
  import Testing

  @testable import LMDB

  @Suite("An environment that is opened again while an older one is still held")
  struct ReopeningTests {
    /// The locks of this process on a file, each once.
    ///
    /// While others come and go one reading of the list may lack some and show some twice: it is read
    /// several times.
    private func locks(_ file: String) throws -> Set<String> {
      let inode = try #require(FileNumbers(path: file)).inode
      var found: Set<String> = []
      for _ in 0..<50 {
        let list = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
        for line in list.split(separator: "\n")
        where line.contains("POSIX") && line.contains(" \(getpid()) ")
          && line.contains(":\(inode) ")
        {
          // Without the line's number.
          found.insert(line.split(separator: " ").dropFirst().joined(separator: " "))
        }
      }
      return found
    }

    /// Lets go of an environment when it is told to.
    private final class Holder: @unchecked Sendable {
      // SAFETY (@unchecked Sendable): set by one thread while no other looks.
      var environment: Environment?
    }

    @Test("keeps its locks when the older one goes, which many readers at once have used")
    func keepsLocks() async throws {
      try await onThread {
        let directory = try TemporaryDirectory()
        let path = directory.file("env")
        let older = Holder()
        older.environment = try Environment.open(at: path)
        // More than the head of the lock file has room for: it is opened once more to make some.
        let gathering = Gathering(80)
        let failures = inThreads(80) { _ in
          try older.environment?.read { _ in gathering.meet() }
        }
        #expect(failures.isEmpty)
        try older.environment?.close()
        let environment = try Environment.open(at: path)
        _ = try environment.read { $0.identifier() }
        let before = try locks(path + "/lock.mdb")
        #expect(!before.isEmpty)
        older.environment = nil
        let after = try locks(path + "/lock.mdb")
        #expect(after == before)
        withExtendedLifetime(environment) {}
      }
    }
  }
#endif
