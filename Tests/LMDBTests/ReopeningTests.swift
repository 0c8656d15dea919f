#if os(Linux)
  import Foundation
  import Testing

  @testable import LMDB

  @Suite("An environment that is opened again while an older one is still held")
  struct ReopeningTests {
    /// The locks of this process on a file.
    ///
    /// While others come and go the list may lack some, and never shows too many: asked several times.
    private func lockCount(_ file: String) throws -> Int {
      let inode = try #require(FileNumbers(path: file)).inode
      return try (0..<50).map { _ in
        try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n").count {
          $0.contains("POSIX") && $0.contains(" \(getpid()) ") && $0.contains(":\(inode) ")
        }
      }.max() ?? 0
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
        let before = try lockCount(path + "/lock.mdb")
        #expect(before > 0)
        older.environment = nil
        #expect(try lockCount(path + "/lock.mdb") == before)
        withExtendedLifetime(environment) {}
      }
    }
  }
#endif
