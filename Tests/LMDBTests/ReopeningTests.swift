#if os(Linux)
  import Foundation
  import Testing

  @testable import LMDB

  @Suite("An environment that is opened again while an older one is still held")
  struct ReopeningTests {
    /// The locks of this process on a file that it has open, as the kernel counts them.
    ///
    /// They stand with each descriptor of the file. `/proc/locks` would not do: it has the locks of
    /// all processes and is handed out in pieces of some 60 locks, between which others come and go.
    /// And the file must not be opened to ask: closing it would be what drops the locks.
    private func locks(_ file: String) throws -> Set<String> {
      let manager = FileManager.default
      let file = URL(filePath: file).resolvingSymlinksInPath().path
      let descriptors = try manager.contentsOfDirectory(atPath: "/proc/self/fd").filter {
        // One that another thread has closed meanwhile leads nowhere.
        (try? manager.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == file
      }
      let descriptor = try #require(descriptors.first, "the file is not open")
      let lines = try textOfSystemFile("/proc/self/fdinfo/\(descriptor)")
        .split(separator: "\n").filter { $0.hasPrefix("lock:") }
      // Without the words "lock" and the line's number.
      return Set(lines.map { $0.split(separator: " ").dropFirst().joined(separator: " ") })
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
        // That it is in use, and that this process has readers.
        #expect(before.count == 2)
        older.environment = nil
        let after = try locks(path + "/lock.mdb")
        #expect(after == before)
        withExtendedLifetime(environment) {}
      }
    }
  }
#endif
