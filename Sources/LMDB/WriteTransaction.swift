internal import CLMDB

/// Reads and writes that are committed together or not at all. See ``Environment/write(_:)``.
///
/// It lives on one thread, within one synchronous closure. What it reads it sees with its own writes.
public struct WriteTransaction: ~Copyable, Transaction {
  /// The C handle, for this module only.
  public let core: TransactionCore
  let context: WriteContext

  init(_ core: TransactionCore, _ context: WriteContext) {
    self.core = core
    self.context = context
  }

  /// The largest value, in bytes; longer ones fail inside LMDB 0.9 only at commit.
  public static let valueByteCountMax = 1 << 30

  /// Stores a value under a key, in place of what was there.
  /// - Throws: `badKeySize`, `valueTooLarge`; a full map is handled outside and reported only at
  ///   its ceiling.
  /// - Cost: one search; the pages on the way are copied once per transaction. Corresponds to
  ///   `mdb_put`.
  @inlinable
  public mutating func put<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) {
    _ = try store(value, for: key, in: table, .replace)
  }

  /// Stores a value's bytes as they are.
  @inlinable
  public mutating func put<K, V>(
    bytes: RawSpan, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) {
    var buffer = KeyBuffer()
    K.encode(key, into: &buffer)
    _ = try store(bytes, for: buffer, in: table.base, .replace)
  }

  /// Stores a value unless the key is there.
  /// - Returns: whether it was stored.
  @inlinable
  public mutating func putIfAbsent<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> Bool {
    try store(value, for: key, in: table, .keep)
  }

  /// Stores a value behind all others: the fast way for keys that come in order.
  /// - Throws: `keyExists` when the key is not behind the last one; nothing was stored then.
  @inlinable
  public mutating func append<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) {
    guard try store(value, for: key, in: table, .append) else {
      throw LMDBError(
        .keyExists, operation: "mdb_put", path: core.environment.path, table: table.name,
        detail: "appended out of order")
    }
  }

  /// Removes a key.
  /// - Returns: whether it was there. Corresponds to `mdb_del`.
  @inlinable
  @discardableResult
  public mutating func delete<K, V>(
    _ key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> Bool {
    var buffer = KeyBuffer()
    K.encode(key, into: &buffer)
    return try delete(buffer, in: table.base)
  }

  /// Removes every entry of a range.
  /// - Returns: how many there were.
  @inlinable
  @discardableResult
  public mutating func deleteAll<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key>
  ) throws(LMDBError) -> Int {
    try deleteAll(in: table.base, Bounds(range, codec: K.self))
  }

  /// Removes every entry of a table; the table stays. Corresponds to `mdb_drop`.
  public mutating func deleteAll<K, V>(in table: Table<K, V>) throws(LMDBError) {
    core.environment.requireOwn(table.base)
    try check(unsafe mdb_drop(core.handle, table.base.handle, 0), "mdb_drop", table.name)
  }

  /// What a store does with a key that is there.
  @usableFromInline
  enum StoreMode {
    case replace
    case keep
    case append
  }

  @inlinable
  mutating func store<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>, _ mode: StoreMode
  ) throws(LMDBError) -> Bool {
    var buffer = KeyBuffer()
    K.encode(key, into: &buffer)
    return try V.withEncoded(value) { (bytes) throws(LMDBError) in
      try store(bytes, for: buffer, in: table.base, mode)
    }
  }

  /// - Returns: whether it was stored.
  @usableFromInline
  mutating func store(
    _ bytes: RawSpan, for buffer: borrowing KeyBuffer, in table: TableBase, _ mode: StoreMode
  ) throws(LMDBError) -> Bool {
    core.environment.requireOwn(table)
    guard bytes.byteCount <= Self.valueByteCountMax else {
      throw LMDBError(
        .valueTooLarge, operation: "mdb_put", path: core.environment.path, table: table.name,
        detail: "\(bytes.byteCount) bytes")
    }
    try core.environment.checkKey(buffer, "mdb_put", table.name)
    let flags: Int32 =
      switch mode {
      case .replace: 0
      case .keep: MDB_NOOVERWRITE
      case .append: MDB_APPEND
      }
    let result = unsafe buffer.bytes.withUnsafeBytes { keyBytes in
      unsafe bytes.withUnsafeBytes { valueBytes in
        var key = unsafe MDB_val(keyBytes)
        var value = unsafe MDB_val(valueBytes)
        return unsafe mdb_put(core.handle, table.handle, &key, &value, UInt32(flags))
      }
    }
    if result == MDB_KEYEXIST { return false }
    try check(result, "mdb_put", table.name)
    return true
  }

  @usableFromInline
  mutating func delete(
    _ buffer: borrowing KeyBuffer, in table: TableBase
  ) throws(LMDBError) -> Bool {
    core.environment.requireOwn(table)
    try core.environment.checkKey(buffer, "mdb_del", table.name)
    let result = unsafe buffer.bytes.withUnsafeBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_del(core.handle, table.handle, &key, nil)
    }
    if result == MDB_NOTFOUND { return false }
    try check(result, "mdb_del", table.name)
    return true
  }

  @usableFromInline
  mutating func deleteAll(in table: TableBase, _ bounds: Bounds) throws(LMDBError) -> Int {
    core.environment.requireOwn(table)
    try bounds.check(core.environment, table.name)
    var cursor: OpaquePointer?
    unsafe try check(
      mdb_cursor_open(core.handle, table.handle, &cursor), "mdb_cursor_open", table.name)
    defer { unsafe mdb_cursor_close(cursor) }
    var key = unsafe MDB_val()
    var value = unsafe MDB_val()
    var count = 0
    var isThere = unsafe try bounds.place(
      cursor, &key, &value, reversed: false, core.environment, table.name)
    while isThere {
      let span = unsafe UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size).bytes
      guard bounds.contains(span, reversed: false) else { break }
      try check(unsafe mdb_cursor_del(cursor, 0), "mdb_cursor_del", table.name)
      count += 1
      // On 0.9.24 the next step after a delete lands on the entry that moved up.
      let result = unsafe mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
      isThere = try core.environment.checkFound(result, "mdb_cursor_get", table.name)
    }
    return count
  }

  private func check(
    _ result: Int32, _ operation: String, _ table: String
  ) throws(LMDBError) {
    // LMDB answers everything after a full map with BAD_TXN; the first answer is what counts, also
    // when the closure wraps or swallows it.
    if result == MDB_MAP_FULL { context.isMapFull = true }
    try core.environment.check(result, operation, table)
  }
}

/// What the environment must learn about a write closure, whatever the closure does with its errors.
final class WriteContext {
  var isMapFull = false
}
