import Foundation
import LMDB
import Testing

@Suite("A data file whose last pages are free and were never written")
struct ShortFileTests {
  let directory: TemporaryDirectory
  var path: String { directory.file("env") }
  var file: String { directory.file("env/data.mdb") }

  /// LMDB leaves pages out that one transaction takes and gives up, once it has a free list.
  init() throws {
    directory = try TemporaryDirectory()
    var configuration = Environment.Configuration()
    // What is kept ready behind the last used page would make the file longer.
    configuration.fileReserveByteCountMax = 0
    let environment = try Environment.open(at: path, configuration: configuration)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    for size in [100, 3_000, 60_000] {
      try environment.write { transaction in
        for number in 0..<UInt64(400) {
          try transaction.put([UInt8](repeating: 1, count: size), for: number, in: table)
        }
        _ = try transaction.deleteAll(in: table, .from(7))
      }
    }
    let used = try environment.statistics().usedByteCount
    try environment.close()
    try #require(try byteCount() < used / 2)
  }

  private func byteCount() throws -> Int {
    try Data(contentsOf: URL(fileURLWithPath: file), options: .alwaysMapped).count
  }

  @Test("opens again with all that was committed")
  func reopens() throws {
    var configuration = Environment.Configuration()
    configuration.fileReserveByteCountMax = 0
    let environment = try Environment.open(at: path, configuration: configuration)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    #expect(try environment.read { try $0.count(of: table) } == 7)
    #expect(try environment.detailedStatistics().freePageCount > 5_000)
    try environment.write { try $0.put([1], for: 9, in: table) }
  }

  @Test("is damaged when a page in use was cut off, too")
  func cut() throws {
    let whole = try byteCount()
    // The pages of the seven values stand in front of those that were never written; the commit's
    // own pages may stand behind both.
    for kept in stride(from: 8_192, to: whole, by: 12_288) {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
      try bytes.prefix(kept).write(to: URL(fileURLWithPath: file))
      let error = try #require(throws: LMDBError.self, "cut to \(kept)") {
        try Environment.open(at: path)
      }
      #expect(error.code == .damaged)
      try bytes.write(to: URL(fileURLWithPath: file))
    }
  }
}
