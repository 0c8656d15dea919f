internal import CLMDB

/// Reads within one snapshot. ``ReadTransaction`` and ``WriteTransaction`` conform; nothing else can.
///
/// Corresponds to `MDB_txn`. A transaction is lent to a synchronous closure: it cannot be kept,
/// returned or carried over an `await`. Every lent value ends with it, which the compiler checks.
public protocol Transaction: ~Copyable {
  /// The C handle, for this module only.
  var core: TransactionCore { get }
}

// The generic calls below are inlined into their callers and specialised there; each encodes its key
// and leaves the rest to a call that knows nothing of codecs.

/// The C handle of a transaction and the environment it belongs to; opaque outside this module.
@safe public struct TransactionCore {
  let handle: OpaquePointer
  @usableFromInline let environment: Environment
}

/// One snapshot, read only. See ``Environment/read(_:)``.
public struct ReadTransaction: ~Copyable, Transaction {
  /// The C handle, for this module only.
  public let core: TransactionCore
  init(_ core: TransactionCore) { self.core = core }
}

extension Transaction where Self: ~Copyable {
  /// The number of the last committed transaction that this one sees; in a write transaction its
  /// own. Corresponds to `mdb_txn_id`.
  public borrowing func identifier() -> UInt64 { unsafe UInt64(mdb_txn_id(core.handle)) }

  /// Lends the stored bytes of a key in place, or nil if the key is not there.
  /// - Throws: `badKeySize`, and what LMDB reports.
  /// - Cost: one search from the root; nothing is copied or allocated. Corresponds to `mdb_get`.
  @inlinable
  @_lifetime(borrow self)
  public borrowing func bytes<K, V>(
    of key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> RawSpan? {
    var buffer = KeyBuffer()
    K.encode(key, into: &buffer)
    guard let found = unsafe try core.lookUp(buffer, in: table.base) else { return nil }
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

  /// Whether a key is there.
  @inlinable
  public borrowing func contains<K, V>(
    _ key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> Bool {
    var buffer = KeyBuffer()
    K.encode(key, into: &buffer)
    return unsafe try core.lookUp(buffer, in: table.base) != nil
  }

  /// How many entries a table has. Constant cost. Corresponds to `mdb_stat`.
  public borrowing func count<K, V>(of table: Table<K, V>) throws(LMDBError) -> Int {
    core.environment.requireOwn(table.base)
    var numbers = MDB_stat()
    try core.environment.check(
      unsafe mdb_stat(core.handle, table.base.handle, &numbers), "mdb_stat", table.name)
    return Int(numbers.ms_entries)
  }

  /// Lends each entry of a range to `body`, in key order or backwards, until it says `.stop`.
  ///
  /// The spans end with each call of `body`. A read error is thrown; it never ends the scan as if
  /// there were no more entries.
  /// - Throws: what LMDB reports, and what `body` throws.
  /// - Cost: one search, then one step per entry. Corresponds to `mdb_cursor_get`.
  @inlinable
  public borrowing func scan<K, V>(
    _ table: Table<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> ScanStep
  ) throws {
    try core.scan(table.base, Bounds(range, codec: K.self), reversed: reversed, body)
  }

  /// The first key of a range, or the last with `reversed`; nil if there is none.
  @inlinable
  public borrowing func firstKey<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false
  ) throws -> K.Key? {
    var found: K.Key?
    try scan(table, range, reversed: reversed) { key, _ in
      found = try K.decode(key)
      return .stop
    }
    return found
  }
}

extension TransactionCore {
  @usableFromInline
  func scan(
    _ table: TableBase, _ bounds: Bounds, reversed: Bool,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> ScanStep
  ) throws {
    environment.requireOwn(table)
    try bounds.check(environment, table.name)
    var cursor: OpaquePointer?
    try unsafe environment.check(
      mdb_cursor_open(handle, table.handle, &cursor), "mdb_cursor_open", table.name)
    defer { unsafe mdb_cursor_close(cursor) }
    var key = unsafe MDB_val()
    var value = unsafe MDB_val()
    var isThere = unsafe try bounds.place(
      cursor, &key, &value, reversed: reversed, environment, table.name)
    while isThere {
      // SAFETY: both values stay until the cursor moves, which happens after `body` returned.
      let keySpan = unsafe UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size).bytes
      let valueSpan = unsafe UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        .bytes
      guard bounds.contains(keySpan, reversed: reversed) else { return }
      guard try body(keySpan, valueSpan) == .next else { return }
      let result = unsafe mdb_cursor_get(cursor, &key, &value, reversed ? MDB_PREV : MDB_NEXT)
      isThere = try environment.checkFound(result, "mdb_cursor_get", table.name)
    }
  }

  /// The stored bytes of a key; they live as long as LMDB keeps them.
  @unsafe @usableFromInline
  func lookUp(
    _ buffer: borrowing KeyBuffer, in table: TableBase
  ) throws(LMDBError) -> UnsafeRawBufferPointer? {
    environment.requireOwn(table)
    try environment.checkKey(buffer, "mdb_get", table.name)
    var value = unsafe MDB_val()
    let result = unsafe buffer.bytes.withUnsafeBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_get(handle, table.handle, &key, &value)
    }
    guard try environment.checkFound(result, "mdb_get", table.name) else { return nil }
    return unsafe UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
  }
}

extension MDB_val {
  /// LMDB reads through the pointer and does not write.
  init(_ bytes: UnsafeRawBufferPointer) {
    unsafe self.init(
      mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }
}
