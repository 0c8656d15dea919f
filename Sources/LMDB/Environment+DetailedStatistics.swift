internal import CLMDB

/// The pages and entries of one tree. Corresponds to `MDB_stat`.
public struct TreeStatistics: Sendable, Hashable {
  /// Levels from the root to a leaf; 0 when it is empty.
  public let depth: Int
  /// Pages that lead to others.
  public let branchPageCount: Int
  /// Pages that hold entries. Trees of the values of one key do not count, but they do in tables
  /// that a later LMDB than 0.9.24 has written.
  public let leafPageCount: Int
  /// Pages of values that fit no leaf: from about 2,000 bytes on, with pages of 4,096.
  public let overflowPageCount: Int
  /// Entries; in a table with duplicates each counts.
  public let entryCount: Int

  /// All pages of the tree.
  public var pageCount: Int { branchPageCount + leafPageCount + overflowPageCount }

  init(_ record: TreeRecord) {
    depth = Int(record.depth)
    branchPageCount = Int(clamping: record.branchPageCount)
    leafPageCount = Int(clamping: record.leafPageCount)
    overflowPageCount = Int(clamping: record.overflowPageCount)
    entryCount = Int(clamping: record.entryCount)
  }
}

extension Environment {
  /// Everything that `mdb_stat -e -f -r -a` shows, of one snapshot.
  public struct DetailedStatistics: Sendable {
    /// The whole environment: the map, the last page, the reader slots.
    public let environment: Statistics
    /// The snapshot that the other numbers belong to.
    public let transaction: UInt64
    /// Pages up to that snapshot's last one, in use or free.
    public let pageCount: Int
    /// Pages that are free: reused by later writes, never given back to the file system.
    ///
    /// Those that a living snapshot still sees count, too, though nothing may reuse them yet.
    public let freePageCount: Int
    /// The tree that lists the free pages; its own pages are in use.
    public let freeList: TreeStatistics
    /// The unnamed database, which holds the tables' roots.
    public let main: TreeStatistics
    /// Each table by its name.
    public let tables: [String: TreeStatistics]
    /// Reader slots in use now, by all processes.
    public let readerCount: Int

    /// Bytes that hold data, the lists and the meta pages.
    public var liveByteCount: Int { (pageCount - freePageCount) * environment.pageByteCount }
  }

  /// Sizes and counts of the environment, its free list and each table, of one snapshot.
  ///
  /// Reads the data file through a descriptor of its own, so no table has to be open, and a writer
  /// that enlarges the map is not kept waiting.
  /// - Throws: `closed`, `readersFull`, `outOfResources`; `damaged` when a page on the way is not
  ///   what it should be (`checkIntegrity` finds out more).
  /// - Cost: reads the pages of the unnamed database and of the free list: some microseconds per
  ///   page; with many free pages that is the larger part. Blocks the thread meanwhile.
  public func detailedStatistics() throws(LMDBError) -> DetailedStatistics {
    let snapshot = try HeldSnapshot(of: self)
    let meta = snapshot.meta
    var reader = TreeReader(file: snapshot.file, meta: meta)
    var freePageCount: UInt64 = 0
    var tables: [String: TreeStatistics] = [:]
    do throws(LMDBError) {
      try reader.forEachFreePage(of: meta) { _ in freePageCount += 1 }
      try reader.forEachLeaf(of: meta.main) { page throws(LMDBError) in
        for index in 0..<page.nodeCount {
          guard let node = page.node(index, isBranch: false) else { throw damagedTree(page) }
          guard node.flags == .subTree, let record = TreeRecord(page, at: node.data.lowerBound)
          else { continue }
          tables[String(decoding: page.slice(node.key), as: UTF8.self)] = TreeStatistics(record)
        }
      }
    } catch {
      throw snapshot.meaning(of: error)
    }
    let readerCount = try readers().count
    let numbers = try statistics()
    try snapshot.end()
    return DetailedStatistics(
      environment: numbers, transaction: meta.transaction,
      pageCount: Int(clamping: meta.lastPage) + 1, freePageCount: Int(clamping: freePageCount),
      freeList: TreeStatistics(meta.freeList), main: TreeStatistics(meta.main), tables: tables,
      readerCount: readerCount)
  }

  private func damagedTree(_ page: borrowing PageBytes) -> LMDBError {
    LMDBError(
      .damaged, operation: "read", path: path, detail: "page \(page.pageNumber): a node")
  }
}
