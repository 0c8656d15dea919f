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
  private(set) var isOnEntry = false

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
    let operation =
      switch move {
      case .first: MDB_FIRST
      case .last: MDB_LAST
      case .next: MDB_NEXT
      case .previous: MDB_PREV
      }
    return try stand(unsafe mdb_cursor_get(cursor, &key, &value, operation))
  }

  @usableFromInline
  mutating func seek(_ bytes: RawSpan, isExact: Bool) throws(LMDBError) -> Bool {
    core.requireOwnThread()
    try core.checkKey(byteCount: bytes.byteCount, "mdb_cursor_get", table)
    let result = unsafe bytes.withUnsafeBytes { bytes in
      unsafe key = MDB_val(bytes)
      return unsafe mdb_cursor_get(cursor, &key, &value, isExact ? MDB_SET_KEY : MDB_SET_RANGE)
    }
    return try stand(result)
  }

  private mutating func stand(_ result: Int32) throws(LMDBError) -> Bool {
    isOnEntry = result == 0
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
    isOnEntry = false
    try check(unsafe mdb_cursor_del(cursor, 0), "mdb_cursor_del")
  }

  @usableFromInline
  mutating func replace(_ bytes: RawSpan) throws(LMDBError) {
    core.requireOwnThread()
    requireEntry()
    context?.hasStored = true
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
    isOnEntry = false
    try check(result, "mdb_cursor_put")
    // The entry may lie elsewhere now, the page having been copied.
    _ = try stand(unsafe mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT))
  }

  private func check(_ result: Int32, _ operation: StaticString) throws(LMDBError) {
    if result == MDB_MAP_FULL { context?.isMapFull = true }
    try core.check(result, operation, table)
  }
}
