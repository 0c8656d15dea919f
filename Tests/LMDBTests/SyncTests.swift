import Foundation
import LMDB
import Testing

@Suite("sync")
struct SyncTests {
  @Test(
    "leaves no page of the file in memory only, whatever the level",
    .enabled(if: tellsDirtyPages, "needs Linux 6.5 and a temporary directory on a disk"),
    arguments: [Environment.Durability.unsafeWithoutSync, .mayLoseLastCommit, .durable])
  func flushes(durability: Environment.Durability) async throws {
    let directory = try TemporaryDirectory()
    var configuration = Environment.Configuration()
    configuration.durability = durability
    let path = directory.file("env")
    let environment = try Environment.open(at: path, configuration: configuration)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    for isBlocking in [false, true] {
      var dirtyCount: UInt64 = 0
      for _ in 0..<50 where dirtyCount == 0 {
        try await environment.write { transaction in
          for number in UInt64(0)..<2_000 {
            try transaction.put([UInt8](repeating: 7, count: 500), for: number, in: table)
          }
        }
        dirtyCount = try #require(dirtyPageCount(of: path + "/data.mdb"))
        // The system writes them by itself after a while, and a durable commit at once.
        if durability != .unsafeWithoutSync { break }
      }
      #expect(dirtyCount > 0 || durability != .unsafeWithoutSync)
      if isBlocking { try blockingSync(environment) } else { try await environment.sync() }
      #expect(dirtyPageCount(of: path + "/data.mdb") == 0)
    }
  }

  @Test("is refused where nothing can be written, and after the close")
  func refused() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    let environment = try Environment.open(at: path)
    _ = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    try environment.close()
    #expect(try #require(throws: LMDBError.self) { try environment.sync() }.code == .closed)
    var configuration = Environment.Configuration()
    configuration.access = .read
    let reading = try Environment.open(at: path, configuration: configuration)
    #expect(try #require(throws: LMDBError.self) { try reading.sync() }.code == .readOnly)
  }
}

private func blockingSync(_ environment: Environment) throws { try environment.sync() }

/// How many pages of a file are in memory and not on the disk yet; nil where nobody tells.
private func dirtyPageCount(of path: String) -> UInt64? {
  #if os(Linux)
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var range: [UInt64] = [0, 0]
    // Pages in the cache, dirty, being written, evicted, evicted lately.
    var counts: [UInt64] = [0, 0, 0, 0, 0]
    let cachestat = 451
    guard holdfastSyscall(cachestat, Int(descriptor), &range, &counts) == 0 else { return nil }
    return counts[1] + counts[2]
  #else
    return nil
  #endif
}

/// Whether written pages are seen to be dirty, and not any more after a flush: on no tmpfs, say.
private let tellsDirtyPages: Bool = {
  guard let directory = try? TemporaryDirectory() else { return false }
  let path = directory.file("probe")
  let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
  guard descriptor >= 0 else { return false }
  defer { close(descriptor) }
  let bytes = [UInt8](repeating: 7, count: 1 << 16)
  guard write(descriptor, bytes, bytes.count) == bytes.count,
    let before = dirtyPageCount(of: path), before > 0, fsync(descriptor) == 0
  else { return false }
  return dirtyPageCount(of: path) == 0
}()

#if os(Linux)
  /// Swift does not see functions with any number of arguments, as `syscall` is.
  @_silgen_name("syscall")
  private func holdfastSyscall(
    _ number: Int, _ descriptor: Int, _ range: UnsafeMutablePointer<UInt64>,
    _ counts: UnsafeMutablePointer<UInt64>, _ flags: Int = 0
  ) -> Int
#endif
