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
  public mutating func put<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) {
    try V.withEncoded(value) { (bytes) throws(LMDBError) in
      _ = try store(bytes, for: key, in: table, flags: 0)
    }
  }

  /// Stores a value's bytes as they are.
  public mutating func put<K, V>(
    bytes: RawSpan, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) {
    _ = try store(bytes, for: key, in: table, flags: 0)
  }

  /// Stores a value unless the key is there.
  /// - Returns: whether it was stored.
  public mutating func putIfAbsent<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> Bool {
    try V.withEncoded(value) { (bytes) throws(LMDBError) in
      try store(bytes, for: key, in: table, flags: UInt32(MDB_NOOVERWRITE))
    }
  }

  /// Stores a value behind all others: the fast way for keys that come in order.
  /// - Throws: `keyExists` when the key is not behind the last one; nothing was stored then.
  public mutating func append<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) {
    let stored = try V.withEncoded(value) { (bytes) throws(LMDBError) in
      try store(bytes, for: key, in: table, flags: UInt32(MDB_APPEND))
    }
    guard stored else {
      throw LMDBError.from(
        MDB_KEYEXIST, operation: "mdb_put", path: core.environment.path, table: table.name)
    }
  }

  /// Removes a key.
  /// - Returns: whether it was there. Corresponds to `mdb_del`.
  @discardableResult
  public mutating func delete<K, V>(
    _ key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> Bool {
    core.environment.requireOwn(table)
    var buffer = KeyBuffer()
    K.encode(key, into: &buffer)
    try core.environment.checkKey(buffer, "mdb_del", table.name)
    let result = unsafe buffer.bytes.withUnsafeBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_del(core.handle, table.handle, &key, nil)
    }
    if result == MDB_NOTFOUND { return false }
    try check(result, "mdb_del", table.name)
    return true
  }

  /// Removes every entry of a range.
  /// - Returns: how many there were.
  @discardableResult
  public mutating func deleteAll<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key>
  ) throws(LMDBError) -> Int {
    core.environment.requireOwn(table)
    let bounds = try Bounds(range, codec: K.self, environment: core.environment, table: table.name)
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

  /// Removes every entry of a table; the table stays. Corresponds to `mdb_drop`.
  public mutating func deleteAll<K, V>(in table: Table<K, V>) throws(LMDBError) {
    core.environment.requireOwn(table)
    try check(unsafe mdb_drop(core.handle, table.handle, 0), "mdb_drop", table.name)
  }

  private mutating func store<K, V>(
    _ bytes: RawSpan, for key: K.Key, in table: Table<K, V>, flags: UInt32
  ) throws(LMDBError) -> Bool {
    core.environment.requireOwn(table)
    guard bytes.byteCount <= Self.valueByteCountMax else {
      throw LMDBError(
        .valueTooLarge, operation: "mdb_put", path: core.environment.path, table: table.name,
        detail: "\(bytes.byteCount) bytes")
    }
    var buffer = KeyBuffer()
    K.encode(key, into: &buffer)
    try core.environment.checkKey(buffer, "mdb_put", table.name)
    let result = unsafe buffer.bytes.withUnsafeBytes { keyBytes in
      unsafe bytes.withUnsafeBytes { valueBytes in
        var key = unsafe MDB_val(keyBytes)
        var value = unsafe MDB_val(valueBytes)
        return unsafe mdb_put(core.handle, table.handle, &key, &value, flags)
      }
    }
    if result == MDB_KEYEXIST { return false }
    try check(result, "mdb_put", table.name)
    return true
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
