#if os(Linux)
  import Foundation
  import LMDB
  import Testing

  /// A file system of one MiB in memory, unmounted at the end. Mounting needs root.
  private struct SmallDisk: ~Copyable {
    let path: String

    init(in directory: TemporaryDirectory) throws {
      path = directory.file("small")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      try Self.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path])
    }

    deinit {
      do {
        try Self.run(["umount", path])
      } catch {
        print("could not unmount \(path): \(error)")
      }
    }

    private static func run(_ words: [String]) throws {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = words
      try process.run()
      process.waitUntilExit()
      guard process.terminationStatus == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
  }

  @Suite("A copy to a full disk", .enabled(if: geteuid() == 0, "mounting needs root"))
  struct CopyToFullDiskTests {
    @Test(
      "ends with diskFull, leaves nothing there, and the next copy elsewhere works",
      .timeLimit(.minutes(1)), arguments: [false, true])
    func fullDisk(compacting: Bool) throws {
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.file("env"))
      let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
      try environment.write { transaction in
        for number in 0..<UInt64(4_000) {
          try transaction.put([UInt8](repeating: 1, count: 1_000), for: number, in: table)
        }
      }
      let disk = try SmallDisk(in: directory)
      let error = try #require(throws: LMDBError.self) {
        try environment.copy(to: disk.path + "/copy", compacting: compacting)
      }
      #expect(error.code == .diskFull)
      #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == [])
      #expect(try environment.readers().allSatisfy { $0.transaction == nil })
      try environment.copy(to: directory.file("copy"), compacting: compacting)
    }
  }
#endif
