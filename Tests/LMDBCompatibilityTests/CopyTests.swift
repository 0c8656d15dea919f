import Foundation
import LMDB
import Testing

@Suite("Copies beside mdb_copy's")
struct CopyTests {
  let directory: TemporaryDirectory
  let environment: Environment

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
    for name in ["a", "b", "c"] {
      let table = try environment.table(name, key: UInt64Codec.self, value: BytesCodec.self)
      for round in 0..<UInt64(5) {
        try environment.write { transaction in
          for number in 0..<UInt64(400) {
            let count = Int(number * 37 % (number % 20 == 0 ? 30_000 : 500))
            try transaction.put(
              [UInt8](repeating: UInt8(round), count: count), for: number * 7 + round, in: table)
          }
          _ = try transaction.deleteAll(in: table, .through(300, 600))
        }
      }
    }
  }

  private func pages(_ name: String) throws -> [Data] {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: directory.file(name + "/data.mdb")))
    return stride(from: 0, to: bytes.count, by: 4_096).map {
      bytes[$0..<min($0 + 4_096, bytes.count)]
    }
  }

  @Test("hold the same bytes in every page but the two heads")
  func whole() async throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("theirs"), withIntermediateDirectories: false)
    let tool = try await CommandLineTool.run(
      "mdb_copy", [directory.file("env"), directory.file("theirs")])
    #expect(tool.status == 0, "\(tool.errors)")
    try await environment.copy(to: directory.file("ours"))
    let ours = try pages("ours")
    let theirs = try pages("theirs")
    #expect(ours.count == theirs.count)
    #expect(ours.count > 300)
    #expect(zip(ours, theirs).dropFirst(2).allSatisfy(==))
  }

  @Test("compacted have the same pages in the same order as mdb_copy -c makes")
  func compacted() async throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("theirs"), withIntermediateDirectories: false)
    let tool = try await CommandLineTool.run(
      "mdb_copy", ["-c", directory.file("env"), directory.file("theirs")])
    #expect(tool.status == 0, "\(tool.errors)")
    try await environment.copy(to: directory.file("ours"), compacting: true)
    let ours = try pages("ours")
    let theirs = try pages("theirs")
    #expect(ours.count == theirs.count)
    #expect(ours.count > 300)
    var differing = 0
    var isInRun = 0
    for (number, pair) in zip(ours, theirs).enumerated().dropFirst(2) {
      // What is free within a page, and behind a value's end, is zeros in ours and leftovers in
      // theirs; of a run of overflow pages only the first has a header to tell where that begins.
      if isInRun > 0 {
        isInRun -= 1
        let length = pair.0.lastIndex { $0 != 0 }.map { $0 - pair.0.startIndex + 1 } ?? 0
        if pair.0.prefix(length) != pair.1.prefix(length) { differing += 1 }
        continue
      }
      let page = Array(pair.0)
      let flags = page[10]
      let lower = Int(page[12]) | Int(page[13]) << 8
      let upper = Int(page[14]) | Int(page[15]) << 8
      if flags & 4 != 0 {
        isInRun = (lower | upper << 16) - 1
        let length = (page.lastIndex { $0 != 0 } ?? 15) + 1
        if pair.0.prefix(length) != pair.1.prefix(length) { differing += 1 }
      } else {
        let other = Array(pair.1)
        if page[..<lower] != other[..<lower] || page[upper...] != other[upper...] {
          differing += 1
        }
        if page[lower..<upper].contains(where: { $0 != 0 }) { differing += 1 }
      }
      if differing == 1 { Issue.record("page \(number) differs") }
    }
    #expect(differing == 0)
    for name in ["a", "b", "c"] {
      let left = try await CommandLineTool.run("mdb_dump", ["-s", name, directory.file("ours")])
      let right = try await CommandLineTool.run("mdb_dump", ["-s", name, directory.file("theirs")])
      #expect(left.status == 0)
      #expect(left.output == right.output)
      #expect(left.output.utf8.count > 100_000)
    }
  }
}
