import Foundation
import Testing

@testable import LMDB

@Suite("An integrity check of a file with one wrong thing names it")
struct IntegrityFindingTests {
  let file: DamagedFile

  init() throws { file = try DamagedFile() }

  private func expect(
    _ kind: IntegrityFinding.Kind, page: UInt64? = nil, table: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let report = try file.check()
    let found = report.findings.filter { finding in
      finding.kind == kind && (page == nil || finding.page == page) && finding.table == table
    }
    #expect(!found.isEmpty, "\(report.findings)", sourceLocation: sourceLocation)
    #expect(!report.isIntact, sourceLocation: sourceLocation)
  }

  @Test("nothing, when nothing is")
  func intact() throws { #expect(try file.check().findings == []) }

  @Test("wrongPageNumber")
  func pageNumber() throws {
    let page = try file.leaves("plain")[3]
    try file.change(page) { $0.store(UInt64(77_777), at: 0) }
    try expect(.wrongPageNumber, page: page, table: "plain")
  }

  @Test("wrongFlags of a page and of an entry")
  func flags() throws {
    let page = try file.leaves("plain")[3]
    try file.change(page) { $0.store(UInt16(8), at: 10) }
    try expect(.wrongFlags, page: page, table: "plain")
    let other = try file.leaves("large")[0]
    try file.change(other) { page in
      let node = try page.entry(0, isBranch: false)
      page.store(UInt16(0x41), at: node.offset + 4)
    }
    try expect(.wrongFlags, page: other, table: "large")
  }

  @Test("badBounds of the page's head, of an entry, and of entries that leave a gap")
  func bounds() throws {
    let pages = try file.leaves("plain")
    try file.change(pages[1]) { $0.store(UInt16(4_095), at: 12) }
    try expect(.badBounds, page: pages[1], table: "plain")
    try file.change(pages[2]) { $0.store(UInt16(4_094), at: 18) }
    try expect(.badBounds, page: pages[2], table: "plain")
    let large = try file.leaves("large")[0]
    try file.change(large) { page in
      let node = try page.entry(0, isBranch: false)
      page.store(UInt16(3), at: node.offset + 6)
    }
    try expect(.badBounds, page: large, table: "large")
  }

  @Test("keyOrder within a page, and against the page above")
  func keyOrder() throws {
    let pages = try file.leaves("plain")
    try file.change(pages[2]) { page in
      let first: UInt16 = page.integer(at: 16)
      page.store(page.integer(at: 18, as: UInt16.self), at: 16)
      page.store(first, at: 18)
    }
    try expect(.keyOrder, page: pages[2], table: "plain")
    try file.change(pages[4]) { page in
      let node = try page.entry(0, isBranch: false)
      page.store(UInt64(0), at: node.key.lowerBound)
    }
    try expect(.keyOrder, page: pages[4], table: "plain")
  }

  @Test("keyOrder among one key's values, in a tree of their own and in a sub-page")
  func valueOrder() throws {
    let page = try #require(try file.pages { $0.flags == [.leaf, .fixedSizeLeaf] }.first)
    try file.change(page) { $0.store(UInt64.max, at: 16 + 8 * 3) }
    try expect(.keyOrder, page: page, table: "fixed")
    let (leaf, offset) = try file.subPage("fixed")
    try file.change(leaf) { $0.store(UInt64.max, at: offset + 16) }
    try expect(.keyOrder, page: leaf, table: "fixed")
  }

  @Test("keySize")
  func keySize() throws {
    let page = try file.leaves("plain")[2]
    try file.change(page) { page in
      let node = try page.entry(0, isBranch: false)
      page.store(UInt16(0), at: node.offset + 6)
    }
    try expect(.keySize, page: page, table: "plain")
  }

  @Test("wrongDepth and countMismatch of a table's record")
  func record() throws {
    let (page, offset) = try file.record("plain")
    try file.change(page) {
      $0.store($0.integer(at: offset + 6, as: UInt16.self) + 1, at: offset + 6)
    }
    try expect(.wrongDepth, table: "plain")
    for (place, what) in [(8, "branch"), (16, "leaf"), (24, "overflow"), (32, "entries")] {
      let (page, offset) = try file.record("large")
      try file.change(page) {
        $0.store($0.integer(at: offset + place, as: UInt64.self) + 1, at: offset + place)
      }
      let report = try file.check()
      #expect(
        report.findings.contains {
          $0.kind == .countMismatch && $0.table == "large" && $0.detail.contains(what)
        })
    }
  }

  @Test("pageUsedTwice and what is leaked by it")
  func usedTwice() throws {
    let root = try file.tree("plain").root
    var child: UInt64 = 0
    var lost: UInt64 = 0
    try file.change(root) { page in
      let first = try page.entry(0, isBranch: true)
      let second = try page.entry(1, isBranch: true)
      child = first.child
      lost = second.child
      page.store(UInt32(child), at: second.offset)
    }
    try expect(.pageUsedTwice, page: child, table: "plain")
    #expect(try file.check().findings.contains { $0.kind == .pageLeaked && $0.page == lost })
  }

  @Test("a circle, without going round in it")
  func circle() throws {
    let root = try file.tree("plain").root
    try file.change(root) { page in
      let first = try page.entry(0, isBranch: true)
      page.store(UInt32(root), at: first.offset)
    }
    try expect(.pageUsedTwice, page: root, table: "plain")
  }

  @Test("pageFreeAndUsed, pageFreeTwice, badFreeList and pageLeaked of the free list")
  func freeList() throws {
    let used = try file.leaves("plain")[0]
    let (page, offset) = try file.freeEntry()
    let whole = try file.read(page)
    try file.change(page) { $0.store(used, at: offset + 8) }
    try expect(.pageFreeAndUsed, page: used)
    try file.write(whole, to: page)
    let first: UInt64 = whole.integer(at: offset + 8)
    try file.change(page) { $0.store(first, at: offset + 16) }
    try expect(.pageFreeTwice, page: first)
    try expect(.badFreeList, page: page)
    try file.write(whole, to: page)
    try file.change(page) { $0.store(UInt64(1) << 60, at: offset) }
    try expect(.badFreeList, page: page)
    try file.write(whole, to: page)
    let count: UInt64 = whole.integer(at: offset)
    let last: UInt64 = whole.integer(at: offset + 8 * Int(count))
    try file.change(page) { $0.store(count - 1, at: offset) }
    try expect(.pageLeaked, page: last)
  }

  @Test("pageBeyondEnd")
  func beyondEnd() throws {
    try file.change(try file.tree("plain").root) { page in
      let node = try page.entry(2, isBranch: true)
      page.store(UInt16(0xFFFF), at: node.offset + 4)
    }
    try expect(.pageBeyondEnd, table: "plain")
  }

  @Test("overflowCut, also where the file ends within a value")
  func overflow() throws {
    let page = try #require(
      try file.pages { $0.flags == .overflow && $0.overflowPageCount > 2 }.first)
    try file.change(page) { $0.store(UInt32(1), at: 12) }
    try expect(.overflowCut, page: page, table: "large")
    try file.change(page) { $0.store(UInt32.max, at: 12) }
    try expect(.overflowCut, page: page, table: "large")
  }

  @Test("damagedHead, and walks on from the other one")
  func head() throws {
    let newest = try #require(try PageFile(directory: file.path).newestMeta)
    try file.change(1 - (newest.transaction & 1)) { $0.store(UInt32(0), at: 16) }
    let report = try file.check()
    #expect(report.findings.map(\.kind) == [.damagedHead])
    #expect(report.transaction == newest.transaction)
    try file.change(newest.transaction & 1) { $0.store(UInt64.max - 5, at: 136) }
    #expect(try file.check().findings.filter { $0.kind == .damagedHead }.count == 2)
  }

  @Test("a file that is cut short under an open environment, without SIGBUS")
  func cutWhileOpen() throws {
    let environment = try Environment.open(at: file.path)
    let byteCount = try environment.statistics().usedByteCount
    for kept in [byteCount / 2, 40_000, 8_192] {
      #expect(unsafe truncate(file.path + "/data.mdb", off_t(kept)) == 0)
      let report = try environment.checkIntegrity()
      #expect(report.findings.contains { $0.kind == .pageBeyondEnd }, "\(kept)")
    }
  }

  @Test(
    "survives a thousand rounds of random damage, each in bounded time", .timeLimit(.minutes(5)))
  func fuzz() throws {
    var random = SeededNumbers(seed: 7)
    let file = try DamagedFile(rounds: 2, count: 400)
    let whole = try Data(contentsOf: URL(fileURLWithPath: file.path + "/data.mdb"))
    let pageCount = whole.count / 4_096
    var damagedCount = 0
    var slowest = Duration.zero
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: file.path + "/data.mdb"))
    for round in 0..<1_000 {
      var damage: [(offset: Int, byte: UInt8)] = []
      for _ in 0..<Int.random(in: 1...20, using: &random) {
        // Half of it hits the first bytes of a page, where its structure is.
        let page = Int.random(in: 0..<pageCount, using: &random)
        let offset = Int.random(in: 0..<(Bool.random(using: &random) ? 64 : 4_096), using: &random)
        damage.append((page * 4_096 + offset, UInt8.random(in: 0...255, using: &random)))
      }
      for (offset, byte) in damage {
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: Data([byte]))
      }
      if round % 50 == 0 {
        try handle.truncate(atOffset: UInt64.random(in: 0..<UInt64(whole.count), using: &random))
      }
      let started = ContinuousClock.now
      let report = try file.check()
      slowest = max(slowest, ContinuousClock.now - started)
      if !report.isIntact { damagedCount += 1 }
      #expect(report.findings.count <= IntegrityReport.findingCountMax)
      if round % 50 == 0 {
        try handle.truncate(atOffset: 0)
        try handle.seek(toOffset: 0)
        try handle.write(contentsOf: whole)
        continue
      }
      for (offset, _) in damage {
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: whole[offset...offset])
      }
    }
    try handle.close()
    // What hits a value or a free page is no damage that a structure could show.
    #expect(damagedCount > 700)
    #expect(slowest < .seconds(5))
  }
}

/// A closed environment with every kind of page, to be damaged page by page.
struct DamagedFile {
  let directory: TemporaryDirectory
  var path: String { directory.file("env") }

  init(rounds: Int = 6, count: UInt64 = 1_500) throws {
    directory = try TemporaryDirectory()
    var configuration = Environment.Configuration()
    // Damage behind the last used page is none.
    configuration.fileReserveByteCountMax = 0
    let environment = try Environment.open(at: directory.file("env"), configuration: configuration)
    let tables = try VariedTables(environment)
    var random = SeededNumbers(seed: 3)
    for _ in 0..<rounds {
      try environment.write { try tables.change(&$0, &random, count: 50 * rounds) }
    }
    try environment.write { transaction in
      for number in 0..<count {
        try transaction.insert(number &* 7, for: 0, in: tables.fixed)
        try transaction.put([UInt8](repeating: 1, count: 200), for: number, in: tables.plain)
      }
    }
    // A free list that stands in a leaf.
    try environment.write {
      _ = try $0.deleteAll(in: tables.plain, .through(count / 2, count / 2 + 200))
    }
    try environment.close()
  }

  func check() throws -> IntegrityReport { try Environment.checkIntegrity(at: path) }

  func read(_ number: UInt64) throws -> PageBytes {
    let file = try PageFile(directory: path)
    var page = PageBytes(count: file.pageByteCount)
    guard try file.read(number, into: &page) else { throw CocoaError(.fileReadCorruptFile) }
    return page
  }

  func write(_ page: borrowing PageBytes, to number: UInt64) throws {
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path + "/data.mdb"))
    try handle.seek(toOffset: number * UInt64(page.bytes.count))
    try handle.write(contentsOf: Data(page.bytes))
    try handle.close()
  }

  func change(_ number: UInt64, _ body: (inout PageBytes) throws -> Void) throws {
    var page = try read(number)
    try body(&page)
    try write(page, to: number)
  }

  private func meta() throws -> MetaRecord {
    try #require(try PageFile(directory: path).newestMeta)
  }

  /// The leaf that holds a table's record, and where.
  func record(_ table: String) throws -> (page: UInt64, offset: Int) {
    var found: (UInt64, Int)?
    try forEachLeaf(try meta().main) { page in
      for index in 0..<page.nodeCount {
        guard let node = page.node(index, isBranch: false) else { continue }
        if page.slice(node.key).elementsEqual(table.utf8) {
          found = (page.pageNumber, node.data.lowerBound)
        }
      }
    }
    return try #require(found)
  }

  func tree(_ table: String) throws -> TreeRecord {
    let (number, offset) = try record(table)
    let page = try read(number)
    guard let tree = TreeRecord(page, at: offset) else { throw CocoaError(.fileReadCorruptFile) }
    return tree
  }

  func leaves(_ table: String) throws -> [UInt64] {
    var numbers: [UInt64] = []
    try forEachLeaf(try tree(table)) { numbers.append($0.pageNumber) }
    return numbers
  }

  /// A leaf with a sub-page of values, and where that stands.
  func subPage(_ table: String) throws -> (page: UInt64, offset: Int) {
    var found: (UInt64, Int)?
    try forEachLeaf(try tree(table)) { page in
      for index in 0..<page.nodeCount {
        guard let node = page.node(index, isBranch: false), node.flags == .duplicates else {
          continue
        }
        found = (page.pageNumber, node.data.lowerBound)
      }
    }
    return try #require(found)
  }

  /// A leaf of the free list with an entry of at least three pages, and where that stands.
  func freeEntry() throws -> (page: UInt64, offset: Int) {
    var found: (UInt64, Int)?
    try forEachLeaf(try meta().freeList) { page in
      for index in 0..<page.nodeCount {
        guard let node = page.node(index, isBranch: false), node.flags == [],
          page.integer(at: node.data.lowerBound, as: UInt64.self) >= 3
        else { continue }
        found = (page.pageNumber, node.data.lowerBound)
      }
    }
    return try #require(found)
  }

  /// The numbers of all pages in use that are as asked.
  func pages(_ isWanted: (borrowing PageBytes) -> Bool) throws -> [UInt64] {
    var free: Set<UInt64> = []
    let file = try PageFile(directory: path)
    var reader = TreeReader(file: file, meta: try meta())
    try reader.forEachFreePage(of: try meta()) { free.insert($0) }
    var numbers: [UInt64] = []
    for number in 2...(try meta().lastPage) where !free.contains(number) {
      let page = try read(number)
      if page.pageNumber == number, isWanted(page) { numbers.append(number) }
    }
    return numbers
  }

  private func forEachLeaf(
    _ tree: TreeRecord, _ visit: (borrowing PageBytes) -> Void
  ) throws {
    let file = try PageFile(directory: path)
    var reader = TreeReader(file: file, meta: try meta())
    try reader.forEachLeaf(of: tree, visit)
  }
}

extension PageBytes {
  fileprivate func entry(_ index: Int, isBranch: Bool) throws -> PageNode {
    guard let node = node(index, isBranch: isBranch) else { throw CocoaError(.fileReadCorruptFile) }
    return node
  }
}
