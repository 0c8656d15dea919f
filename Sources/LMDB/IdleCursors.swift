internal import CLMDB

/// Up to two cursors of ended scans, for the next scans of their tables: opening one allocates.
///
/// A cursor of a read transaction outlives it, and is renewed for another of the same environment.
@safe struct IdleCursors {
  private var newer: OpaquePointer?
  private var older: OpaquePointer?
  /// The rest of a cache line: readers of different slots do not slow each other down.
  private let rest = InlineArray<6, UInt>(repeating: 0)

  /// A cursor of that table, renewed for a read transaction; nil when there is none.
  @unsafe mutating func take(_ table: UInt32, for transaction: OpaquePointer) -> OpaquePointer? {
    let cursor: OpaquePointer
    if let kept = unsafe newer, unsafe mdb_cursor_dbi(kept) == table {
      unsafe cursor = kept
      unsafe newer = older
      unsafe older = nil
    } else if let kept = unsafe older, unsafe mdb_cursor_dbi(kept) == table {
      unsafe cursor = kept
      unsafe older = nil
    } else {
      return nil
    }
    guard unsafe mdb_cursor_renew(transaction, cursor) == 0 else {
      unsafe mdb_cursor_close(cursor)
      return nil
    }
    return unsafe cursor
  }

  /// Keeps a cursor in place of the older one.
  @unsafe mutating func keep(_ cursor: OpaquePointer) {
    if let older = unsafe older { unsafe mdb_cursor_close(older) }
    unsafe older = newer
    unsafe newer = cursor
  }

  /// Closes both.
  mutating func close() {
    if let cursor = unsafe newer { unsafe mdb_cursor_close(cursor) }
    if let cursor = unsafe older { unsafe mdb_cursor_close(cursor) }
    unsafe newer = nil
    unsafe older = nil
  }
}
