internal import CLMDB
import Synchronization

/// What a storing write may take while the map is larger than its ceiling.
///
/// Draining writes copy pages into their own room beyond the ceiling and free others. Were storing
/// writes to fill those, each round would leave draining ones less, until nothing could be deleted
/// any more. So as many pages stay free as lie beyond the ceiling.
struct CeilingRoom {
  /// Pages that may be in use at the end.
  private let pageCountMax: Int
  /// Pages in use when the transaction began.
  private let pageCount: Int
  private let before: Trees

  /// Pages and entries of the open tables, and of the unnamed one.
  private struct Trees {
    var pageCount = 0
    var entryCount = 0

    @unsafe init(_ environment: Environment, _ transaction: OpaquePointer) {
      let handles = environment.tables.withLock { $0.values.map(\.handle) }
      for handle in handles + [1] {
        var stat = MDB_stat()
        // A transaction that has failed says nothing any more; its commit says that.
        guard unsafe mdb_stat(transaction, handle, &stat) == 0 else { continue }
        pageCount += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages
        entryCount += stat.ms_entries
      }
    }
  }

  /// In a write transaction that has changed nothing yet.
  /// - Returns: nil when the map is not larger than its ceiling.
  /// - Throws: what reading the list of free pages reports.
  @unsafe init?(_ environment: Environment, _ transaction: OpaquePointer) throws(LMDBError) {
    let ceiling = environment.configuration.mapSizeByteCountMax
    let numbers = environment.numbers()
    guard numbers.mapByteCount > ceiling else { return nil }
    // LMDB shows that list to read transactions only. Nobody commits meanwhile.
    let file = try PageFile(directory: environment.path)
    guard let meta = file.newestMeta else { return nil }
    var freePageCount = 0
    var reader = TreeReader(file: file, meta: meta)
    try reader.forEachFreePage(of: meta) { _ in freePageCount += 1 }
    pageCountMax = ceiling / numbers.pageByteCount
    pageCount = numbers.lastPage + 1 - freePageCount
    before = unsafe Trees(environment, transaction)
  }

  /// At the end of the transaction.
  /// - Throws: `mapFull` when it took more than there is.
  @unsafe func check(_ environment: Environment, _ transaction: OpaquePointer) throws(LMDBError) {
    let after = unsafe Trees(environment, transaction)
    let grown = after.pageCount - before.pageCount
    // What replaces and what deletes goes through. (Trees of the values of one key are not counted
    // before the next transaction.)
    guard grown > 0 || after.entryCount > before.entryCount, pageCount + grown > pageCountMax
    else { return }
    throw LMDBError(
      .mapFull, rawCode: MDB_MAP_FULL, operation: "write", path: environment.path,
      detail: "the free pages are for draining writes")
  }
}
