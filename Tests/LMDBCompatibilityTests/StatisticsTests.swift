import Foundation
import LMDB
import Testing

@Suite("Statistics beside mdb_stat")
struct StatisticsTests {
  let directory: TemporaryDirectory
  let environment: Environment

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
    let small = try environment.table("small", key: UInt64Codec.self, value: BytesCodec.self)
    let large = try environment.table("large values", key: TextCodec.self, value: BytesCodec.self)
    _ = try environment.table("empty", key: TextCodec.self, value: BytesCodec.self)
    for round in 0..<UInt64(10) {
      try environment.write { transaction in
        for number in 0..<UInt64(500) {
          try transaction.put(
            [UInt8](repeating: 1, count: 200), for: round * 500 + number, in: small)
        }
        try transaction.put(
          [UInt8](repeating: 2, count: 30_000), for: "key \(round)", in: large)
      }
    }
    // Leaves free pages, and a free list of more than one entry.
    try environment.write { _ = try $0.deleteAll(in: small, .through(1_000, 3_000)) }
    try environment.write { _ = try $0.delete("key 3", in: large) }
  }

  @Test("agree with mdb_stat -e -f -r -a in every number")
  func agree() async throws {
    let tool = try await CommandLineTool.run("mdb_stat", ["-efra", directory.file("env")])
    #expect(tool.status == 0)
    let sections = tool.sections
    let found = try environment.detailedStatistics()

    let info = try #require(sections["Environment Info"])
    #expect(UInt64(found.environment.mapByteCount) == info["Map size"])
    #expect(UInt64(found.environment.pageByteCount) == info["Page size"])
    #expect(UInt64(found.environment.lastPage) + 1 == info["Number of pages used"])
    #expect(UInt64(found.pageCount) == info["Number of pages used"])
    #expect(found.environment.lastTransaction == info["Last transaction ID"])
    #expect(found.transaction == info["Last transaction ID"])
    #expect(UInt64(found.environment.readerCountMax) == info["Max readers"])
    #expect(found.environment.mapByteCountMax == environment.configuration.mapSizeByteCountMax)
    #expect(found.environment.usedByteCount == found.pageCount * found.environment.pageByteCount)

    let freeList = try #require(sections["Freelist Status"])
    #expect(UInt64(found.freePageCount) == freeList["Free pages"])
    #expect(found.freePageCount > 50)
    try expect(found.freeList, agreesWith: freeList)
    try expect(found.main, agreesWith: #require(sections["Status of Main DB"]))
    #expect(found.tables.keys.sorted() == ["empty", "large values", "small"])
    for (name, table) in found.tables {
      try expect(table, agreesWith: #require(sections["Status of \(name)"], "table \(name)"))
    }
    #expect(found.tables["large values"]?.overflowPageCount ?? 0 > 50)
    #expect(found.tables["small"]?.branchPageCount ?? 0 > 0)
    #expect(found.tables["empty"]?.depth == 0)
    // Every page up to the last one is in exactly one tree, free, or one of the two meta pages.
    let used = found.tables.values.reduce(2 + found.freeList.pageCount + found.main.pageCount) {
      $0 + $1.pageCount
    }
    #expect(used + found.freePageCount == found.pageCount)
  }

  private func expect(
    _ tree: TreeStatistics, agreesWith section: [String: UInt64],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(UInt64(tree.depth) == section["Tree depth"], sourceLocation: sourceLocation)
    #expect(UInt64(tree.branchPageCount) == section["Branch pages"], sourceLocation: sourceLocation)
    #expect(UInt64(tree.leafPageCount) == section["Leaf pages"], sourceLocation: sourceLocation)
    #expect(
      UInt64(tree.overflowPageCount) == section["Overflow pages"], sourceLocation: sourceLocation)
    #expect(UInt64(tree.entryCount) == section["Entries"], sourceLocation: sourceLocation)
  }

  @Test("list the readers that mdb_stat -r lists, with their processes and snapshots")
  func readers() async throws {
    let before = try environment.statistics().lastTransaction
    let table = try environment.table("small", key: UInt64Codec.self, value: BytesCodec.self)
    let entered = DispatchSemaphore(value: 0)
    let mayLeave = DispatchSemaphore(value: 0)
    let reader = Thread { [environment] in
      #expect(throws: Never.self) {
        try environment.read { _ in
          entered.signal()
          mayLeave.wait()
        }
      }
      entered.signal()
    }
    reader.start()
    while entered.wait(timeout: .now()) == .timedOut { try await Task.sleep(for: .milliseconds(1)) }
    for number in 0..<UInt64(3) {
      try await environment.write { try $0.put([1], for: number, in: table) }
    }
    let slots = try environment.readers()
    let tool = try await CommandLineTool.run("mdb_stat", ["-r", directory.file("env")])
    mayLeave.signal()
    while entered.wait(timeout: .now()) == .timedOut { try await Task.sleep(for: .milliseconds(1)) }

    let lines = tool.output.split(separator: "\n").dropFirst(2)
      .map { $0.split(whereSeparator: \.isWhitespace) }.filter { $0.count == 3 }
    // Its own slot is not taken before it has printed the table.
    #expect(lines.count == slots.count)
    for (line, slot) in zip(lines, slots) {
      #expect(Int32(line[0]) == slot.process)
      #expect(UInt(line[1], radix: 16) == slot.thread)
      #expect(UInt64(line[2]) == slot.transaction)
    }
    let held = try #require(slots.first { $0.transaction == before })
    #expect(held.lag == 3)
    #expect(held.process == getpid())
    #expect(held.isAlive)
  }
}
