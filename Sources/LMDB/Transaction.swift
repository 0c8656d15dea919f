internal import CLMDB
import Foundation

/// Reads within one snapshot. ``ReadTransaction`` and ``WriteTransaction`` conform; nothing else can,
/// since only they have a ``TransactionToken``.
///
/// Corresponds to `MDB_txn`. A transaction is lent to a synchronous closure: it cannot be kept,
/// returned or carried over an `await`. Every lent value ends with it, which the compiler checks.
public protocol Transaction: ~Copyable {
  /// What it is, for this module only.
  var token: TransactionToken {
    @_lifetime(borrow self)
    get
  }
}

/// The C handle of a transaction and the environment it belongs to; opaque outside this module. The
/// compiler keeps it within the transaction.
public struct TransactionToken: ~Escapable {
  @usableFromInline let core: TransactionCore

  @inlinable
  @_lifetime(immortal)
  init(unbound core: TransactionCore) { self.core = core }
}

extension Transaction where Self: ~Copyable {
  @inlinable var core: TransactionCore { token.core }
}

// The generic calls below are inlined into their callers and specialised there; each encodes its key
// and leaves the rest to a call that knows nothing of codecs.

/// The C handle of a transaction and the environment it belongs to.
@safe @usableFromInline struct TransactionCore {
  let handle: OpaquePointer
  // SAFETY: who lends the transaction holds its environment; counting here would cost two atomic
  // operations for each read.
  @usableFromInline unowned(unsafe) let environment: Environment
  /// The thread that it was begun on.
  private let thread = currentThread()
  /// ``Environment/number``, kept here so that a table is checked without going there.
  private let environmentNumber: UInt64
  /// Whether its pages lie in the map: a write transaction's own pages lie elsewhere.
  let isReading: Bool

  /// The cursors that are kept for the scans of this reader.
  private let idleCursors: UnsafeMutablePointer<IdleCursors>?

  init(
    handle: OpaquePointer, environment: Environment, isReading: Bool = false,
    idleCursors: UnsafeMutablePointer<IdleCursors>? = nil
  ) {
    unsafe self.handle = handle
    unsafe self.idleCursors = idleCursors
    unsafe self.environment = environment
    environmentNumber = environment.number
    self.isReading = isReading
  }

  /// Counts a cursor that the caller holds; see ``ThreadState/countCursor(_:of:reader:)``.
  func countCursor(_ change: Int) {
    unsafe ThreadState.current.countCursor(
      change, of: environmentNumber, reader: isReading ? handle : nil)
  }
}

/// One snapshot, read only. See ``Environment/read(_:)``.
public struct ReadTransaction: ~Copyable, Transaction {
  @usableFromInline let core: TransactionCore
  @usableFromInline init(_ core: TransactionCore) { self.core = core }

  /// What it is, for this module only.
  public var token: TransactionToken {
    @_lifetime(borrow self)
    get {
      // SAFETY: the token ends with the borrow of `self`, and that with the transaction.
      unsafe _overrideLifetime(TransactionToken(unbound: core), borrowing: self)
    }
  }
}

extension Transaction where Self: ~Copyable {
  /// The number of the last committed transaction that this one sees; in a write transaction its
  /// own. Corresponds to `mdb_txn_id`.
  public borrowing func identifier() -> UInt64 {
    core.requireOwnThread()
    return unsafe UInt64(mdb_txn_id(core.handle))
  }

  /// Lends the stored bytes of a key in place, or nil if the key is not there.
  /// - Throws: `badKeySize`, and what LMDB reports.
  /// - Cost: one search from the root; nothing is copied or allocated. Corresponds to `mdb_get`.
  @inlinable
  @_lifetime(borrow self)
  public borrowing func bytes<K, V>(
    of key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> RawSpan? {
    let found = unsafe try K.withEncodedKey(key) { (bytes) throws(LMDBError) in
      unsafe try core.lookUp(bytes, in: table.base)
    }
    guard let found = unsafe found else { return nil }
    // SAFETY: LMDB keeps the value until the transaction ends or, in a write transaction, until
    // the next write; both need exclusive access to `self`, which the borrow forbids.
    let span = unsafe found.bytes
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// The value of a key, decoded, or nil if the key is not there.
  /// - Throws: `badKeySize`; `badForm` from the codec; what LMDB reports.
  @inlinable
  public borrowing func value<K, V>(
    of key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> V.Value? {
    guard let bytes = try bytes(of: key, in: table) else { return nil }
    return try V.decode(bytes)
  }

  /// A view of the value of a key, which reads the stored bytes in place; nil if the key is not
  /// there.
  /// - Throws: `badKeySize`; `badForm` from the codec; what LMDB reports.
  /// - Cost: as ``bytes(of:in:)``; nothing is copied.
  @inlinable
  @_lifetime(borrow self)
  public borrowing func view<K, V: BorrowingValueCodec>(
    of key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> V.View? {
    guard let bytes = try bytes(of: key, in: table) else { return nil }
    let view = try V.view(bytes)
    // SAFETY: the view lives in `bytes`, which borrow `self`.
    return unsafe _overrideLifetime(view, borrowing: self)
  }

  /// Whether a key is there.
  /// - Throws: `badKeySize`, and what LMDB reports.
  /// - Cost: one search. Corresponds to `mdb_get`.
  @inlinable
  public borrowing func contains<K, V>(
    _ key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (bytes) throws(LMDBError) in
      unsafe try core.lookUp(bytes, in: table.base) != nil
    }
  }

  /// How many entries a table has. Constant cost. Corresponds to `mdb_stat`.
  /// - Throws: what LMDB reports.
  public borrowing func count<K, V>(of table: Table<K, V>) throws(LMDBError) -> Int {
    try core.count(of: table.base)
  }

  /// Lends each entry of a range to `body`, in key order or backwards, until it says `.stop`.
  ///
  /// The spans end with each call of `body`. A read error is thrown; it never ends the scan as if
  /// there were no more entries.
  /// - Parameters:
  ///   - table: a table of the transaction's environment.
  ///   - range: the keys to visit; all by default.
  ///   - reversed: from the last key to the first; false by default.
  ///   - limit: the most entries to visit; all by default.
  ///   - prefetch: whether memory is asked for ahead of the scan; not by default.
  ///   - body: gets an entry; both spans end with the call.
  /// - Throws: `badKeySize` of the range, what LMDB reports, and what `body` throws.
  /// - Cost: one search, then one step per entry; nothing is allocated per entry. Corresponds to
  ///   `mdb_cursor_get`.
  @inlinable
  public borrowing func scan<K, V>(
    _ table: Table<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false,
    limit: Int = .max, prefetch: ScanPrefetch = .none,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> ScanStep
  ) throws {
    try range.withEdges(K.self) { edges in
      try core.scan(
        table.base, edges, reversed: reversed, limit: limit, prefetch: prefetch, body)
    }
  }

  /// The first key of a range, or the last with `reversed`; nil if there is none.
  /// - Throws: `badKeySize`; `badForm` from the codec; what LMDB reports.
  /// - Cost: one search. Corresponds to `mdb_cursor_get`.
  @inlinable
  public borrowing func firstKey<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false
  ) throws -> K.Key? {
    var found: K.Key?
    try scan(table, range, reversed: reversed, limit: 1) { key, _ in
      found = try K.decode(key)
      return .stop
    }
    return found
  }
}

/// What tells this thread from others. It is asked once per call and never kept over an `await`,
/// between which the compiler would take two answers for one.
@inline(__always)
private func currentThread() -> UInt {
  #if canImport(Darwin)
    unsafe UInt(bitPattern: pthread_self())
  #else
    UInt(pthread_self())
  #endif
}

// Cursors
extension TransactionCore {
  /// A cursor for a scan, to be given back with ``end(_:)``.
  @unsafe func beginCursor(_ table: TableBase) throws(LMDBError) -> OpaquePointer {
    if let kept = unsafe idleCursors?.pointee.take(table.handle, for: handle) {
      return unsafe kept
    }
    var opened: OpaquePointer?
    let result = unsafe mdb_cursor_open(handle, table.handle, &opened)
    guard result == 0, let cursor = unsafe opened else {
      throw error(result, "mdb_cursor_open", table)
    }
    return unsafe cursor
  }

  @unsafe func end(_ cursor: OpaquePointer) {
    if let idleCursors = unsafe idleCursors {
      unsafe idleCursors.pointee.keep(cursor)
    } else {
      unsafe mdb_cursor_close(cursor)
    }
  }
}

// What every call checks, with the environment out of it unless a check fails: the compiler counts a
// reference each time it is used.
extension TransactionCore {
  @inline(__always)
  func requireOwn(_ table: TableBase) {
    if table.environment != environmentNumber { unsafe environment.requireOwn(table) }
    requireOwnThread()
  }

  /// A closure that runs elsewhere while its caller waits (`DispatchQueue.main.sync`) can reach a lent
  /// transaction: the compiler cannot see that, and LMDB does not look.
  @inline(__always)
  func requireOwnThread() {
    trapUnless(
      thread == currentThread(), "a transaction was used on another thread than its own")
  }

  @inline(__always)
  func checkKey(
    byteCount: Int, _ operation: StaticString, _ table: TableBase
  ) throws(LMDBError) {
    guard byteCount >= 1, byteCount <= KeyBuffer.byteCountMax else {
      throw badKey(byteCount, operation, table)
    }
  }

  @inline(never)
  private func badKey(
    _ byteCount: Int, _ operation: StaticString, _ table: TableBase
  ) -> LMDBError {
    unsafe LMDBError(
      .badKeySize, rawCode: MDB_BAD_VALSIZE, operation: operation.description,
      path: environment.path, table: table.name, detail: "\(byteCount) bytes")
  }

  @inline(__always)
  func check(
    _ result: Int32, _ operation: StaticString, _ table: TableBase
  ) throws(LMDBError) {
    if result != 0 { throw error(result, operation, table) }
  }

  @inline(__always)
  func checkFound(
    _ result: Int32, _ operation: StaticString, _ table: TableBase
  ) throws(LMDBError) -> Bool {
    if result == 0 { return true }
    if result == MDB_NOTFOUND { return false }
    throw error(result, operation, table)
  }

  @inline(never)
  func error(_ result: Int32, _ operation: StaticString, _ table: TableBase) -> LMDBError {
    unsafe LMDBError.from(
      result, operation: operation.description, path: environment.path, table: table.name)
  }

  func count(of table: TableBase) throws(LMDBError) -> Int {
    requireOwn(table)
    var numbers = MDB_stat()
    try check(unsafe mdb_stat(handle, table.handle, &numbers), "mdb_stat", table)
    return Int(numbers.ms_entries)
  }

  /// The stored bytes of a key; they live as long as LMDB keeps them.
  @unsafe @usableFromInline
  func lookUp(
    _ bytes: RawSpan, in table: TableBase
  ) throws(LMDBError) -> UnsafeRawBufferPointer? {
    requireOwn(table)
    try checkKey(byteCount: bytes.byteCount, "mdb_get", table)
    var value = unsafe MDB_val()
    let result = unsafe bytes.withUnsafeBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_get(handle, table.handle, &key, &value)
    }
    guard try checkFound(result, "mdb_get", table) else { return nil }
    return unsafe UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
  }
}

extension MDB_val {
  /// LMDB reads through the pointer and does not write.
  @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer) {
    unsafe self.init(
      mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }

  /// The bytes that LMDB lent.
  @unsafe var lent: UnsafeRawBufferPointer {
    @inline(__always) get { unsafe UnsafeRawBufferPointer(start: mv_data, count: mv_size) }
  }
}
