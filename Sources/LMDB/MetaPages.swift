internal import CLMDB
import Foundation

/// What the two meta pages at the head of a data file say, read before LMDB maps it.
///
/// LMDB maps a file of any length and dies of SIGBUS when it is shorter than its meta page says; an
/// empty file opens as a new database. Both are refused here, as an error. Layout: `MDB_meta` of
/// LMDB 0.9 on a 64-bit little-endian machine.
struct MetaPages {
  static let magic: UInt32 = 0xBEEF_C0DE
  static let version: UInt32 = 1

  let pageByteCount: Int
  let mapByteCount: Int
  let usedByteCount: Int

  /// Reads and checks the file.
  /// - Throws: `damaged`, `versionMismatch`, or what the file system says.
  init(_ file: borrowing DataFile, directory: String) throws(LMDBError) {
    func refuse(_ code: LMDBError.Code, _ detail: String) -> LMDBError {
      LMDBError(code, operation: "open", path: directory, detail: detail)
    }
    let pageByteCount = Int(getpagesize())
    let heads = file.heads
    guard !heads.isEmpty else { throw refuse(.damaged, "data.mdb is empty") }
    let first = try Self.page(heads, at: 0, directory: directory)
    let firstByteCount = Int(first.pageByteCount)
    guard firstByteCount >= 512, firstByteCount <= 65_536,
      firstByteCount & (firstByteCount - 1) == 0
    else { throw refuse(.damaged, "page size \(firstByteCount)") }
    guard pageByteCount == firstByteCount else {
      throw refuse(
        .versionMismatch, "page size \(firstByteCount), this machine has \(pageByteCount)")
    }
    let second = try Self.page(heads, at: pageByteCount, directory: directory)
    guard Int(second.pageByteCount) == pageByteCount else {
      throw refuse(.damaged, "the meta pages disagree")
    }
    // The older page may name pages that the newer one has given up, never the other way round.
    let newest = first.transaction >= second.transaction ? first : second
    // LMDB takes the state of a commit from the page where that commit writes it, whatever stands there.
    if newest.transaction > 0,
      (newest.transaction & 1 == 0) != (first.transaction >= second.transaction)
    {
      throw refuse(.damaged, "commit \(newest.transaction) stands on the other one's meta page")
    }
    if let wrong = newest.finding(pageByteCount: pageByteCount) { throw refuse(.damaged, wrong) }
    let used = (Int(newest.lastPage) + 1) * pageByteCount
    let fileByteCount = file.byteCount
    if fileByteCount < used {
      guard try Self.isRestFree(directory: directory) else {
        throw refuse(.damaged, "data.mdb has \(fileByteCount) of \(used) bytes")
      }
    }
    self.pageByteCount = pageByteCount
    mapByteCount = Int(clamping: newest.mapByteCount)
    usedByteCount = used
  }

  private struct Page {
    var mapByteCount: UInt64
    var pageByteCount: UInt32
    var freeTree: Tree
    var mainTree: Tree
    var lastPage: UInt64
    var transaction: UInt64

    /// What LMDB would run into: it believes these numbers and ends the process where they lie.
    /// - Returns: nil when nothing is wrong.
    func finding(pageByteCount: Int) -> String? {
      if lastPage < 1 || lastPage >= UInt64(Int.max) / UInt64(pageByteCount) - 1 {
        return "last page \(lastPage)"
      }
      if transaction > UInt64(Int.max) { return "transaction \(transaction)" }
      // The list of free pages is keyed by integers; beside that its flags are the environment's.
      if freeTree.flags & ~UInt16(MDB_NOSUBDIR) != UInt16(MDB_INTEGERKEY) {
        return "flags \(freeTree.flags)"
      }
      // REVERSEKEY up to REVERSEDUP.
      if mainTree.flags & ~0x7E != 0 { return "flags \(mainTree.flags)" }
      for tree in [freeTree, mainTree] where !tree.isPossible(lastPage: lastPage) {
        return "a tree of depth \(tree.depth) with its root at page \(tree.root)"
      }
      return nil
    }
  }

  /// The head of a tree, `MDB_db`.
  private struct Tree {
    static let byteCount = 48
    /// As deep as LMDB's cursors go, `CURSOR_STACK`.
    static let depthMax = 32

    var flags: UInt16
    var depth: UInt16
    var root: UInt64

    func isPossible(lastPage: UInt64) -> Bool {
      if depth == 0 { return root == .max }
      return depth <= Self.depthMax && root >= 2 && root <= lastPage
    }
  }

  /// How much of a page the head of the file takes.
  static let headByteCount = 152

  private static func page(
    _ heads: [UInt8], at start: Int, directory: String
  ) throws(LMDBError) -> Page {
    guard heads.count >= start + headByteCount else {
      throw LMDBError(
        .damaged, operation: "open", path: directory, detail: "the meta page at \(start) is cut")
    }
    let span = unsafe heads.span.bytes.extracting(start..<start + headByteCount)
    func load<T: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: T.Type) -> T {
      // SAFETY: any bit pattern is an integer; the span's own check holds the bounds.
      unsafe span.unsafeLoadUnaligned(fromByteOffset: offset, as: type)
    }
    guard load(16, as: UInt32.self) == magic else {
      throw LMDBError(
        .damaged, operation: "open", path: directory, detail: "data.mdb is no LMDB file")
    }
    guard load(20, as: UInt32.self) == version else {
      throw LMDBError(
        .versionMismatch, operation: "open", path: directory,
        detail: "data version \(load(20, as: UInt32.self)), this is \(version)")
    }
    func tree(_ offset: Int) -> Tree {
      Tree(
        flags: load(offset + 4, as: UInt16.self), depth: load(offset + 6, as: UInt16.self),
        root: load(offset + 40, as: UInt64.self))
    }
    return Page(
      mapByteCount: load(32, as: UInt64.self), pageByteCount: load(40, as: UInt32.self),
      freeTree: tree(40), mainTree: tree(40 + Tree.byteCount),
      lastPage: load(136, as: UInt64.self), transaction: load(144, as: UInt64.self))
  }
}
