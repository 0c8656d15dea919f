import Foundation
import LMDB
import Testing

@Suite("The room kept behind the data")
struct FileReserveTests {
  @Test("is made up by small writes, whatever a load before them did")
  func madeUp() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    let environment = try Environment.open(at: path)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    func room() throws -> Int {
      let attributes = try FileManager.default.attributesOfItem(atPath: path + "/data.mdb")
      let byteCount = try #require(attributes[.size] as? Int)
      return byteCount - (try environment.statistics().usedByteCount)
    }
    let page = [UInt8](repeating: 1, count: 350)
    for commit in UInt64(0)..<30 {
      try environment.write { transaction in
        for number in 0..<500 {
          try transaction.put(page, for: commit * 500 + UInt64(number), in: table)
        }
      }
    }
    let used = try environment.statistics().usedByteCount
    #expect(used > 5 << 20)
    #if os(Linux)
      // The load left its reserve on the disk, though it wrote none: a full disk does not find it gone.
      var numbers = stat()
      try #require(stat(path + "/data.mdb", &numbers) == 0)
      #expect(Int(numbers.st_blocks) * 512 - used >= 1 << 20)
    #endif
    for number in UInt64(0)..<3 {
      try environment.write { try $0.put([1], for: 1 << 40 + number, in: table) }
    }
    #expect(try room() >= 1 << 20)
    // It stays while small writes use it, and they lengthen the file seldom.
    var lengths: Set<Int> = []
    for number in UInt64(0)..<100 {
      try environment.write { try $0.put(page, for: 2 << 40 + number, in: table) }
      let used = try environment.statistics().usedByteCount
      lengths.insert(try room() + used)
    }
    #expect(lengths.count <= 3)
    #expect(try room() >= 900 << 10)
  }
}
