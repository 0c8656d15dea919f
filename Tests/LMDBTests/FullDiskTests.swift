import Foundation
import LMDB
import Testing

#if os(Linux)
  @Suite("An environment on a full disk", .enabled(if: geteuid() == 0, "mounting needs root"))
  struct FullDiskTests {
    @Test("refuses to store, drains to the last record, and then stores again")
    func drains() async throws {
      try await onThread {
        let disk = try FilledDisk()
        let environment = try Environment.open(at: disk.path + "/env")
        let table = try environment.table("outbox", key: UInt64Codec.self, value: BytesCodec.self)
        let settled = try environment.table(
          "settled", key: UInt64Codec.self, value: UInt64Codec.self)
        let value = [UInt8](repeating: 1, count: 500)
        func key(_ number: Int) -> UInt64 { UInt64(number) &* 0x9E37_79B9_7F4A_7C15 }
        func fill() throws -> Int {
          for number in 0... {
            do {
              try environment.write { try $0.put(value, for: key(number), in: table) }
            } catch let error as LMDBError where error.code == .diskFull {
              return number
            }
          }
          return 0
        }
        // What somebody else takes, and later gives back.
        let filler = disk.path + "/filler"
        try Data(count: 2 << 20).write(to: URL(fileURLWithPath: filler))
        let all = try fill()
        #expect(all > 2_000)
        for number in 0..<all {
          try environment.write(for: .draining) { transaction in
            #expect(try transaction.delete(key(number), in: table))
            try transaction.put(1, for: UInt64(number), in: settled)
          }
          if number == 100 {
            let refused = try #require(throws: LMDBError.self) {
              for more in 0..<2_000 {
                try environment.write { try $0.put(value, for: key(all + more), in: table) }
              }
            }
            #expect(refused.code == .diskFull)
          }
        }
        #expect(try environment.read { try $0.count(of: settled) } == all)
        try FileManager.default.removeItem(atPath: filler)
        try environment.write { try $0.put(value, for: 1, in: table) }
        #expect(try environment.checkIntegrity().isIntact)
      }
    }

    @Test("loses nothing of what was committed to a write that is larger than what is left")
    func largeWrite() async throws {
      try await onThread {
        let disk = try FilledDisk()
        let environment = try Environment.open(at: disk.path + "/env")
        let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
        try environment.write { try $0.put([1], for: 1, in: table) }
        for _ in 0..<3 {
          let error = try #require(throws: LMDBError.self) {
            try environment.write { transaction in
              for number in 2..<UInt64(20) {
                try transaction.put([UInt8](repeating: 2, count: 1 << 20), for: number, in: table)
              }
            }
          }
          #expect(error.code == .diskFull)
          #expect(try environment.read { try $0.count(of: table) } == 1)
        }
        try environment.write(for: .draining) { _ = try $0.delete(1, in: table) }
        #expect(try environment.read { try $0.count(of: table) } == 0)
      }
    }
  }

  /// A file system of 8 MiB in memory, gone with the test.
  final class FilledDisk {
    let directory: TemporaryDirectory
    let path: String

    init() throws {
      directory = try TemporaryDirectory()
      path = directory.file("disk")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try #require(
        mount("tmpfs", path, "tmpfs", 0, "size=8m,mode=700") == 0, "errno \(errno)")
    }

    deinit {
      if umount2(path, Int32(MNT_DETACH)) != 0 { print("could not unmount: \(errno)") }
    }
  }
#endif
