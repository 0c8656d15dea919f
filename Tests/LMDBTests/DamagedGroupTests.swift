import Foundation
import Synchronization
import Testing

@testable import LMDB

@Suite("Writes that share a commit with one that went on after damage")
struct DamagedGroupTests {
  typealias Entries = Table<UInt64Codec, BytesCodec>

  @Test("are stored all the same; it alone fails")
  func othersAreStored() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    func open() throws -> (Environment, whole: Entries, damaged: Entries) {
      let environment = try Environment.open(at: path)
      return (
        environment, try environment.table("a", key: UInt64Codec.self, value: BytesCodec.self),
        try environment.table("b", key: UInt64Codec.self, value: BytesCodec.self)
      )
    }
    do {
      let (environment, _, table) = try open()
      try await environment.write {
        for number in 0..<UInt64(200) {
          try $0.put([UInt8](repeating: 1, count: 500), for: number, in: table)
        }
      }
      try environment.close()
    }
    try damageBranches(path + "/data.mdb")
    let (environment, whole, damaged) = try open()
    let isBusy = Gathering(2)
    let mayEnd = DispatchSemaphore(value: 0)
    let holder = background {
      try environment.write { _ in
        isBusy.meet()
        mayEnd.wait()
      }
    }
    try await onThread { isBusy.meet() }
    let failed = await withTaskGroup(of: UInt64?.self) { group in
      for number in 0..<UInt64(9) {
        group.addTask {
          do {
            try await environment.write { transaction in
              try transaction.put([1], for: number, in: whole)
              guard number == 4 else { return }
              for key in stride(from: UInt64(0), to: 200, by: 3) {
                do { _ = try transaction.value(of: key, in: damaged) } catch { continue }
              }
            }
            return nil
          } catch {
            return number
          }
        }
      }
      while environment.turn.withLock({ $0.waitingCount }) < 9 { await Task.yield() }
      mayEnd.signal()
      return await group.reduce(into: [UInt64]()) { $0 += [$1].compactMap(\.self) }
    }
    #expect(holder.wait().isEmpty)
    #expect(failed == [4])
    #expect(try environment.read { try $0.count(of: whole) } == 8)
    #expect(try environment.read { try $0.contains(4, in: whole) } == false)
  }

  /// Lets each branch page lead behind the end of the file.
  private func damageBranches(_ file: String) throws {
    var bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
    let pageByteCount = Int(getpagesize())
    var count = 0
    for page in stride(from: 2 * pageByteCount, to: bytes.count, by: pageByteCount)
    where bytes[page + 10] == 1 {
      for pointer in stride(from: page + 18, to: page + 26, by: 2) {
        let node = Int(bytes[pointer]) | Int(bytes[pointer + 1]) << 8
        bytes[page + node + 2] = 0xFF
        count += 1
      }
    }
    try #require(count > 0)
    try Data(bytes).write(to: URL(filePath: file))
  }
}
