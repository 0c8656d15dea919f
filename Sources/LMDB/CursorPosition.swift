internal import CLMDB

/// Where a cursor stands, whatever its codecs: the C cursor and the bytes LMDB lent last.
@safe @usableFromInline
struct CursorPosition {
  enum Move {
    case first
    case last
    case next
    case previous
  }

  private let cursor: OpaquePointer
  private let core: TransactionCore
  private let table: TableBase
  private let context: WriteContext?
  private var key = unsafe MDB_val()
  private var value = unsafe MDB_val()
  private var place = Place.unset

  /// Where the cursor stands. LMDB itself forgets: behind the last entry its cursor stands on that
  /// entry, and where a search fails on any.
  private enum Place {
    /// It has not been moved.
    case unset
    case entry
    /// Where an entry was deleted; LMDB knows both neighbours.
    case deleted
    /// Before the entry that the C cursor stands on: a key was sought that is not there.
    case gap
    /// Before the first entry.
    case start
    /// Behind the last entry.
    case end
  }

  var isOnEntry: Bool { place == .entry }

  init(
    _ core: TransactionCore, _ table: TableBase, context: WriteContext?
  ) throws(LMDBError) {
    core.requireOwn(table)
    var opened: OpaquePointer?
    let result = unsafe mdb_cursor_open(core.handle, table.handle, &opened)
    guard result == 0, let cursor = unsafe opened else {
      throw core.error(result, "mdb_cursor_open", table)
    }
    unsafe self.cursor = cursor
    self.core = core
    self.table = table
    self.context = context
    core.countCursor(1)
  }

  func close() {
    unsafe mdb_cursor_close(cursor)
    core.countCursor(-1)
  }

  mutating func move(_ move: Move) throws(LMDBError) -> Bool {
    core.requireOwnThread()
    let operation: MDB_cursor_op
    switch (move, place) {
    case (.next, .end), (.previous, .start): return false
    case (.first, _), (.next, .unset), (.next, .start): operation = MDB_FIRST
    case (.last, _), (.previous, .unset), (.previous, .end): operation = MDB_LAST
    case (.next, .gap): operation = MDB_GET_CURRENT
    case (.next, _): operation = MDB_NEXT
    case (.previous, _): operation = MDB_PREV
    }
    let isForward = move == .next || move == .last
    return try stand(
      unsafe mdb_cursor_get(cursor, &key, &value, operation), else: isForward ? .end : .start)
  }

  @usableFromInline
  mutating func seek(_ bytes: RawSpan, isExact: Bool) throws(LMDBError) -> Bool {
    core.requireOwnThread()
    try core.checkKey(byteCount: bytes.byteCount, "mdb_cursor_get", table)
    let result = unsafe bytes.withUnsafeBytes { bytes in
      unsafe key = MDB_val(bytes)
      return unsafe mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
    }
    guard try stand(result, else: .end) else { return false }
    if isExact, unsafe compare(key, bytes) != 0 { place = .gap }
    return isOnEntry
  }

  private mutating func stand(
    _ result: Int32, else missed: Place
  ) throws(LMDBError) -> Bool {
    place = result == 0 ? .entry : missed
    if result == 0 { return true }
    return try core.checkFound(result, "mdb_cursor_get", table)
  }

  var keySpan: RawSpan {
    @_lifetime(borrow self)
    get {
      requireEntry()
      return unsafe _overrideLifetime(key.lent.bytes, borrowing: self)
    }
  }

  var valueSpan: RawSpan {
    @_lifetime(borrow self)
    get {
      requireEntry()
      return unsafe _overrideLifetime(value.lent.bytes, borrowing: self)
    }
  }

  private func requireEntry() {
    trapUnless(isOnEntry, "the cursor in table \(table.name) stands on no entry")
  }

  mutating func delete() throws(LMDBError) {
    core.requireOwnThread()
    requireEntry()
    place = .deleted
    try check(unsafe mdb_cursor_del(cursor, 0), "mdb_cursor_del")
  }

  @usableFromInline
  mutating func replace(_ bytes: RawSpan) throws(LMDBError) {
    core.requireOwnThread()
    requireEntry()
    context?.store()
    guard bytes.byteCount <= WriteTransaction.valueByteCountMax else {
      throw unsafe LMDBError(
        .valueTooLarge, operation: "mdb_cursor_put", path: core.environment.path, table: table.name,
        detail: "\(bytes.byteCount) bytes")
    }
    // A copy: LMDB deletes the entry first where the size differs, and the key lies in it.
    var copy = KeyBuffer()
    copy.append(unsafe key.lent.bytes)
    let result = unsafe copy.bytes.withUnsafeBytes { keyBytes in
      unsafe bytes.withUnsafeBytes { bytes in
        unsafe key = MDB_val(keyBytes)
        unsafe value = MDB_val(bytes)
        return unsafe mdb_cursor_put(cursor, &key, &value, UInt32(MDB_CURRENT))
      }
    }
    place = .deleted
    try check(result, "mdb_cursor_put")
    // The entry may lie elsewhere now, the page having been copied.
    _ = try stand(unsafe mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT), else: .end)
  }

  private func check(_ result: Int32, _ operation: StaticString) throws(LMDBError) {
    if result == MDB_MAP_FULL { context?.isMapFull = true }
    try core.check(result, operation, table)
  }
}
