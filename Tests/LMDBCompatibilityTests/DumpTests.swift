import Foundation
import LMDB
import Testing

@Suite("mdb_dump, mdb_load, mdb_copy and mdb_stat beside the module")
struct DumpTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let contents: Contents

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
    contents = try Contents(environment)
    try environment.write { [contents] in try contents.fill(&$0) }
  }

  private func run(_ words: String..., input: String? = nil) async throws -> String {
    let tool = try await CommandLineTool.run(words[0], Array(words.dropFirst()), input: input)
    #expect(tool.status == 0, "\(words): \(tool.errors)")
    return tool.output
  }

  @Test("what is dumped and loaded again holds the same, and dumps the same")
  func dumpAndLoad() async throws {
    let dump = directory.file("dump")
    let text = try await run("mdb_dump", "-a", directory.file("env"))
    try text.write(toFile: dump, atomically: false, encoding: .utf8)
    try FileManager.default.createDirectory(
      atPath: directory.file("loaded"), withIntermediateDirectories: false)
    _ = try await run("mdb_load", "-f", dump, directory.file("loaded"))
    #expect(try await run("mdb_dump", "-a", directory.file("loaded")) == text)

    let loaded = try Environment.open(at: directory.file("loaded"))
    #expect(try loaded.tableNames() == Contents.names.sorted())
    let there = try Contents(loaded).all(loaded)
    let here = try contents.all(environment)
    #expect(there == here)
    #expect(here["index"]?.count == 3_000)
    #expect(here["words"]?.count == 1_750)
    #expect(try await loaded.checkIntegrity().findings == [])
    try await loaded.write { [contents = try Contents(loaded)] in
      try $0.put([1], for: [7], in: contents.bytes)
    }
  }

  @Test("text written by hand in mdb_dump's format is loaded and read")
  func handWritten() async throws {
    let text = """
      VERSION=3
      format=bytevalue
      database=index
      type=btree
      mapsize=1048576
      maxreaders=126
      duplicates=1
      dupsort=1
      dupfixed=1
      db_pagesize=4096
      HEADER=END
       00ff
       0000000000000001
       00ff
       0000000000000002
      DATA=END

      """
    try text.write(toFile: directory.file("text"), atomically: false, encoding: .utf8)
    try FileManager.default.createDirectory(
      atPath: directory.file("loaded"), withIntermediateDirectories: false)
    _ = try await run("mdb_load", "-f", directory.file("text"), directory.file("loaded"))
    let loaded = try Environment.open(at: directory.file("loaded"))
    let index = try loaded.multiTable("index", key: BytesCodec.self, value: UInt64Codec.self)
    #expect(try loaded.read { try $0.values(of: [0, 255], in: index) } == [1, 2])
  }

  private func value(behind key: String, in lines: [String]) -> String {
    guard let index = lines.firstIndex(of: key) else { return "" }
    return lines[index + 1]
  }

  @Test("each reads one whole commit while the module writes")
  func whileWriting() async throws {
    // Every commit leaves two tables with the same number in them.
    let numbers = contents.numbers
    let bytes = contents.bytes
    @Sendable func write(_ number: UInt64) async throws {
      try await environment.write { transaction in
        let head = withUnsafeBytes(of: number.bigEndian) { Array($0) }
        try transaction.put(number, for: 1 << 60, in: numbers)
        try transaction.put(head + [UInt8](repeating: 1, count: 3_000), for: [9, 9], in: bytes)
      }
    }
    try await write(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        var number: UInt64 = 0
        while !Task.isCancelled {
          number += 1
          // Cancelled between the question and the write: it ends then, too.
          do { try await write(number) } catch is CancellationError { return }
        }
      }
      for round in 0..<5 {
        let text = try await run("mdb_dump", "-a", directory.file("env"))
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let one = value(behind: "1000000000000000", in: lines)
        let other = value(behind: "0909", in: lines)
        #expect(one.count == 16)
        #expect(one == other.prefix(16))

        for options in [[], ["-c"]] {
          let place = directory.file("copy\(round)\(options.count)")
          try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
          let tool = try await CommandLineTool.run(
            "mdb_copy", options + [directory.file("env"), place])
          #expect(tool.status == 0, "\(tool.errors)")
          let copy = try Environment.open(at: place)
          #expect(try await copy.checkIntegrity().findings == [])
          let tables = try Contents(copy)
          try copy.read { transaction in
            let number = try #require(try transaction.value(of: 1 << 60, in: tables.numbers))
            let value = try #require(try transaction.value(of: [9, 9], in: tables.bytes))
            #expect(Array(value.prefix(8)) == withUnsafeBytes(of: number.bigEndian) { Array($0) })
          }
        }
        let statistics = try await CommandLineTool.run(
          "mdb_stat", ["-efra", directory.file("env")])
        #expect(statistics.status == 0)
        #expect(statistics.sections["Status of index"]?["Entries"] == 3_000)
      }
      group.cancelAll()
      try await group.waitForAll()
    }
    #expect(try await environment.checkIntegrity().findings == [])
  }
}
