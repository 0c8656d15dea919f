internal import CLMDB

/// A table in which one key has any number of values, kept in the order of their bytes: an index.
///
/// Values are coded by a ``KeyCodec`` too, since they are ordered as keys are, and have 1 to 511 bytes.
/// Where they all have one size (a ``FixedKeyCodec``) they are stored without a head each and are read
/// a page at a time. Obtained from ``Environment/multiTable(_:key:value:)``. Corresponds to
/// `MDB_DUPSORT` and, with a fixed size, `MDB_DUPFIXED`.
public struct MultiTable<Key: KeyCodec, Value: KeyCodec>: Sendable {
  /// The table's name within its environment.
  public var name: String { base.name }
  @usableFromInline let base: TableBase
  /// The size of every value in bytes; nil where it varies.
  public let valueByteCount: Int?
}

extension Environment {
  /// Opens a table in which keys have several values, or makes it.
  ///
  /// - Throws: `tableMissing` when it is not there and access is `.read`; `tablesFull`;
  ///   `incompatible` when the table of that name has one value per key, or values of another kind
  ///   or size.
  /// - Precondition: not called from inside one of this environment's transactions.
  /// - Corresponds to `mdb_dbi_open`; the handle stays open as long as the environment.
  public func multiTable<K, V>(
    _ name: String, key: K.Type, value: V.Type
  ) throws -> MultiTable<K, V> {
    let byteCount = (value as? any FixedKeyCodec.Type)?.byteCount
    return MultiTable(
      base: try tableBase(name, hasDuplicates: true, valueByteCount: byteCount),
      valueByteCount: byteCount)
  }
}

// MARK: - Reading

extension Transaction where Self: ~Copyable {
  /// How many pairs of key and value a table has. Constant cost. Corresponds to `mdb_stat`.
  /// - Throws: what LMDB reports.
  public borrowing func count<K, V>(of table: MultiTable<K, V>) throws(LMDBError) -> Int {
    try core.count(of: table.base)
  }

  /// How many values a key has; 0 when it is not there.
  /// - Throws: `badKeySize`, what LMDB reports.
  /// - Cost: one search. Corresponds to `mdb_cursor_count`.
  @inlinable
  public borrowing func valueCount<K, V>(
    of key: K.Key, in table: MultiTable<K, V>
  ) throws(LMDBError) -> Int {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try core.valueCount(of: key, in: table.base)
    }
  }

  /// Whether a key has that value.
  /// - Throws: `badKeySize` of either, what LMDB reports.
  /// - Cost: one search. Corresponds to `MDB_GET_BOTH`.
  @inlinable
  public borrowing func contains<K, V>(
    _ value: V.Key, for key: K.Key, in table: MultiTable<K, V>
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try V.withEncodedKey(value) { (value) throws(LMDBError) in
        try core.containsPair(key, value, in: table.base)
      }
    }
  }

  /// Lends each pair of a range of keys to `body`, by key and then by value, until it says `.stop`.
  ///
  /// - Parameters:
  ///   - table: a table of the transaction's environment.
  ///   - range: the keys to visit; all by default.
  ///   - reversed: from the last key to the first; false by default.
  ///   - limit: the most pairs to visit; all by default.
  ///   - body: gets a pair; both spans end with the call.
  /// - Throws: `badKeySize`, what LMDB reports, and what `body` throws.
  /// - Cost: one search, then one step per pair. Corresponds to `mdb_cursor_get`.
  @inlinable
  public borrowing func scan<K, V>(
    _ table: MultiTable<K, V>, _ range: KeyRange<K.Key> = .all, reversed: Bool = false,
    limit: Int = .max, _ body: (_ key: RawSpan, _ value: RawSpan) throws -> ScanStep
  ) throws {
    try range.withEdges(K.self) { edges in
      try core.scan(
        table.base, edges, reversed: reversed, limit: limit, prefetch: .none, body)
    }
  }

  /// Lends each value of a key to `body`, in order, until it says `.stop`.
  ///
  /// - Parameters:
  ///   - key: 1 to 511 bytes when encoded.
  ///   - table: a table of the transaction's environment.
  ///   - reversed: from the last value to the first; false by default.
  ///   - limit: the most values to visit; all by default.
  ///   - body: gets a value; the span ends with the call.
  /// - Throws: `badKeySize`, what LMDB reports, and what `body` throws.
  /// - Cost: one search, then one step per value.
  @inlinable
  public borrowing func scanValues<K, V>(
    of key: K.Key, in table: MultiTable<K, V>, reversed: Bool = false, limit: Int = .max,
    _ body: (_ value: RawSpan) throws -> ScanStep
  ) throws {
    try scan(table, .through(key, key), reversed: reversed, limit: limit) { try body($1) }
  }

  /// The values of a key, decoded, in order; none when it is not there.
  /// - Throws: `badKeySize`; `badForm` from the codec; what LMDB reports.
  /// - Cost: one search, one step per value, and an array.
  @inlinable
  public borrowing func values<K, V>(
    of key: K.Key, in table: MultiTable<K, V>
  ) throws -> [V.Key] {
    var found: [V.Key] = []
    try scanValues(of: key, in: table) { value in
      found.append(try V.decode(value))
      return .next
    }
    return found
  }

  /// Lends the values of a key a page at a time, one behind the other, until `body` says `.stop`.
  ///
  /// - Parameters:
  ///   - key: 1 to 511 bytes when encoded.
  ///   - table: a table of the transaction's environment.
  ///   - body: gets the bytes of some values; their number is the size of the span by
  ///     ``MultiTable/valueByteCount``.
  /// - Throws: `badKeySize`, what LMDB reports, and what `body` throws.
  /// - Cost: one call per page instead of one per value. Corresponds to `MDB_GET_MULTIPLE` and
  ///   `MDB_NEXT_MULTIPLE`.
  @inlinable
  public borrowing func scanValueBlocks<K, V: FixedKeyCodec>(
    of key: K.Key, in table: MultiTable<K, V>, _ body: (_ values: RawSpan) throws -> ScanStep
  ) throws {
    try K.withEncodedKey(key) { try core.scanBlocks(of: $0, in: table.base, body) }
  }
}

// MARK: - Writing

extension WriteTransaction {
  /// Adds a value to a key.
  /// - Returns: false when the key has it already.
  /// - Throws: `badKeySize` when the key or the value has 0 or more than 511 bytes; `badForm` when
  ///   the value has not the size that its codec promises.
  /// - Corresponds to `mdb_put` with `MDB_NODUPDATA`.
  @inlinable
  @discardableResult
  public mutating func insert<K, V>(
    _ value: V.Key, for key: K.Key, in table: MultiTable<K, V>
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try V.withEncodedKey(value) { (value) throws(LMDBError) in
        try insertPair(key, value, table.valueByteCount, in: table.base)
      }
    }
  }

  /// Adds values of one size to a key, given one behind the other, in any order; those that it has
  /// already stay once.
  /// - Precondition: the span holds a whole number of values; else it traps.
  /// - Throws: `badKeySize`, what LMDB reports.
  /// - Cost: one search, and little per value.
  /// - Corresponds to `MDB_MULTIPLE`.
  @inlinable
  public mutating func insertAll<K, V: FixedKeyCodec>(
    values: RawSpan, for key: K.Key, in table: MultiTable<K, V>
  ) throws(LMDBError) {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try insertBlock(key, values, valueByteCount: V.byteCount, in: table.base)
    }
  }

  /// Removes a value from a key.
  /// - Returns: whether it was there.
  /// - Throws: `badKeySize` of either, what LMDB reports.
  /// - Cost: one search. Corresponds to `mdb_del`.
  @inlinable
  @discardableResult
  public mutating func delete<K, V>(
    _ value: V.Key, for key: K.Key, in table: MultiTable<K, V>
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try V.withEncodedKey(value) { (value) throws(LMDBError) in
        try deletePair(key, value, in: table.base)
      }
    }
  }

  /// Removes a key with all its values.
  /// - Returns: whether it was there.
  /// - Throws: `badKeySize`, what LMDB reports.
  /// - Cost: one search. Corresponds to `mdb_del`.
  @inlinable
  @discardableResult
  public mutating func deleteAll<K, V>(
    for key: K.Key, in table: MultiTable<K, V>
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try delete(key, in: table.base)
    }
  }

  /// Removes every key of a range with all its values.
  /// - Returns: how many keys there were.
  /// - Throws: `badKeySize`, what LMDB reports.
  /// - Cost: two searches per key.
  @inlinable
  @discardableResult
  public mutating func deleteAll<K, V>(
    in table: MultiTable<K, V>, _ range: KeyRange<K.Key>
  ) throws -> Int {
    try range.withEdges(K.self) { try deleteKeys(in: table.base, $0) }
  }

  /// Removes everything from a table; the table stays.
  /// - Throws: what LMDB reports.
  /// - Cost: the table's pages are listed as free. Corresponds to `mdb_drop`.
  public mutating func deleteAll<K, V>(in table: MultiTable<K, V>) throws(LMDBError) {
    try drop(table.base)
  }
}

// MARK: - What knows nothing of codecs

extension TransactionCore {
  /// Places a cursor on a key and, if given, a value.
  /// - Returns: what `body` made of it; nil when the pair is not there.
  private func onPair<R>(
    _ key: RawSpan, _ value: RawSpan?, in table: TableBase, _ operation: MDB_cursor_op,
    _ body: (_ cursor: OpaquePointer?, _ value: MDB_val) throws -> R
  ) throws -> R? {
    requireOwn(table)
    try checkKey(byteCount: key.byteCount, "mdb_cursor_get", table)
    var opened: OpaquePointer?
    unsafe try check(
      mdb_cursor_open(handle, table.handle, &opened), "mdb_cursor_open", table)
    defer { unsafe mdb_cursor_close(opened) }
    var found = unsafe MDB_val()
    let result = unsafe key.withUnsafeBytes { bytes in
      var key = unsafe MDB_val(bytes)
      guard let value else {
        return unsafe mdb_cursor_get(opened, &key, &found, operation)
      }
      return unsafe value.withUnsafeBytes { bytes in
        unsafe found = MDB_val(bytes)
        return unsafe mdb_cursor_get(opened, &key, &found, operation)
      }
    }
    guard try checkFound(result, "mdb_cursor_get", table) else {
      return nil
    }
    return unsafe try body(opened, found)
  }

  @usableFromInline
  func valueCount(of key: RawSpan, in table: TableBase) throws(LMDBError) -> Int {
    do {
      return unsafe try onPair(key, nil, in: table, MDB_SET) { cursor, _ in
        var count = 0
        unsafe try check(
          mdb_cursor_count(cursor, &count), "mdb_cursor_count", table)
        return count
      } ?? 0
    } catch let error as LMDBError {
      throw error
    } catch {
      preconditionFailure("LMDB: counting values threw another error")
    }
  }

  @usableFromInline
  func containsPair(
    _ key: RawSpan, _ value: RawSpan, in table: TableBase
  ) throws(LMDBError) -> Bool {
    try checkKey(byteCount: value.byteCount, "mdb_cursor_get", table)
    do {
      return unsafe try onPair(key, value, in: table, MDB_GET_BOTH) { _, _ in true } ?? false
    } catch let error as LMDBError {
      throw error
    } catch {
      preconditionFailure("LMDB: looking for a pair threw another error")
    }
  }

  @usableFromInline
  func scanBlocks(
    of key: RawSpan, in table: TableBase, _ body: (_ values: RawSpan) throws -> ScanStep
  ) throws {
    _ = unsafe try onPair(key, nil, in: table, MDB_SET) { cursor, single in
      var key = unsafe MDB_val()
      var values = unsafe MDB_val()
      var result = unsafe mdb_cursor_get(cursor, &key, &values, MDB_GET_MULTIPLE)
      if result == 0, unsafe values.mv_size == 0 {
        // A single value lies beside its key, and LMDB says nothing about it.
        _ = unsafe try body(single.lent.bytes)
        return
      }
      while result == 0 {
        // SAFETY: the page stays until the cursor moves, which happens after `body` returned.
        guard unsafe try body(values.lent.bytes) == .next else { return }
        result = unsafe mdb_cursor_get(cursor, &key, &values, MDB_NEXT_MULTIPLE)
      }
      _ = try checkFound(result, "mdb_cursor_get", table)
    }
  }
}

extension WriteTransaction {
  @usableFromInline
  mutating func insertPair(
    _ key: RawSpan, _ value: RawSpan, _ valueByteCount: Int?, in table: TableBase
  ) throws(LMDBError) -> Bool {
    try core.checkKey(byteCount: value.byteCount, "mdb_put", table)
    if let valueByteCount, value.byteCount != valueByteCount {
      throw unsafe LMDBError(
        .badForm, operation: "encode", path: core.environment.path, table: table.name,
        detail: "a value of \(value.byteCount) bytes by a codec of \(valueByteCount)")
    }
    return try store(value, for: key, in: table, .unlessPaired)
  }

  @usableFromInline
  mutating func insertBlock(
    _ key: RawSpan, _ values: RawSpan, valueByteCount: Int, in table: TableBase
  ) throws(LMDBError) {
    let count = values.byteCount / valueByteCount
    trapUnless(
      count * valueByteCount == values.byteCount,
      "\(values.byteCount) bytes are no values of \(valueByteCount) bytes")
    guard count > 0 else { return }
    core.requireOwn(table)
    context.hasStored = true
    try core.checkKey(byteCount: key.byteCount, "mdb_cursor_put", table)
    var opened: OpaquePointer?
    unsafe try check(
      mdb_cursor_open(core.handle, table.handle, &opened), "mdb_cursor_open", table)
    defer { unsafe mdb_cursor_close(opened) }
    // LMDB 0.9 ends without a word at a value that equals the only one of its key, and leaves out
    // what lies behind it; how many it took before that it says.
    var done = 0
    while done < count {
      var taken = 0
      let rest = values.extracting(droppingFirst: done * valueByteCount)
      let result = unsafe key.withUnsafeBytes { keyBytes in
        unsafe rest.withUnsafeBytes { bytes in
          var key = unsafe MDB_val(keyBytes)
          // LMDB wants two: one value's size with the values, then their number.
          var pair: InlineArray<2, MDB_val> = [
            unsafe MDB_val(
              mv_size: valueByteCount,
              mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress)),
            unsafe MDB_val(mv_size: count - done, mv_data: nil),
          ]
          var span = unsafe pair.mutableSpan
          return unsafe span.withUnsafeMutableBufferPointer { pair in
            let result = unsafe mdb_cursor_put(
              opened, &key, pair.baseAddress, UInt32(MDB_MULTIPLE))
            taken = unsafe pair[1].mv_size
            return result
          }
        }
      }
      try check(result, "mdb_cursor_put", table)
      done += taken + 1
    }
  }

  @usableFromInline
  mutating func deletePair(
    _ key: RawSpan, _ value: RawSpan, in table: TableBase
  ) throws(LMDBError) -> Bool {
    core.requireOwn(table)
    try core.checkKey(byteCount: key.byteCount, "mdb_del", table)
    try core.checkKey(byteCount: value.byteCount, "mdb_del", table)
    let result = unsafe key.withUnsafeBytes { keyBytes in
      unsafe value.withUnsafeBytes { valueBytes in
        var key = unsafe MDB_val(keyBytes)
        var value = unsafe MDB_val(valueBytes)
        return unsafe mdb_del(core.handle, table.handle, &key, &value)
      }
    }
    if result == MDB_NOTFOUND { return false }
    try check(result, "mdb_del", table)
    return true
  }

  /// Deletes key by key, each found anew: LMDB 0.9.24 loses its place after repeated deletes with one
  /// cursor where keys have several values (ITS#9461).
  @usableFromInline
  mutating func deleteKeys(in table: TableBase, _ edges: borrowing Edges) throws -> Int {
    var count = 0
    while true {
      var next: KeyBuffer?
      try core.scan(table, edges, reversed: false, limit: 1, prefetch: .none) { key, _ in
        var buffer = KeyBuffer()
        buffer.append(key)
        next = buffer
        return .stop
      }
      guard let next else { return count }
      _ = try delete(next.bytes, in: table)
      count += 1
    }
  }
}
