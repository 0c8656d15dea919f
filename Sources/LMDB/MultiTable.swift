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

  /// Lends each value of a key from one on to `body`, in order, until it says `.stop`.
  ///
  /// - Parameters:
  ///   - key: 1 to 511 bytes when encoded.
  ///   - first: the first value to visit, or that behind which the first lies; 1 to 511 bytes.
  ///   - table: a table of the transaction's environment.
  ///   - limit: the most values to visit; all by default.
  ///   - body: gets a value; the span ends with the call.
  /// - Throws: `badKeySize`, what LMDB reports, and what `body` throws.
  /// - Cost: one search, then one step per value. Corresponds to `MDB_GET_BOTH_RANGE`.
  @inlinable
  public borrowing func scanValues<K, V>(
    of key: K.Key, from first: V.Key, in table: MultiTable<K, V>, limit: Int = .max,
    _ body: (_ value: RawSpan) throws -> ScanStep
  ) throws {
    try K.withEncodedKey(key) { key in
      try V.withEncodedKey(first) {
        try core.scanValues(of: key, from: $0, table.base, limit, body)
      }
    }
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

  /// Adds a value to a key that has none yet.
  /// - Returns: false when the key has a value, this one or another; nothing was added then.
  /// - Throws: as ``insert(_:for:in:)``.
  /// - Cost: one search, for looking and for adding.
  /// - Corresponds to `mdb_put` with `MDB_NOOVERWRITE`.
  @inlinable
  public mutating func insertFirst<K, V>(
    _ value: V.Key, for key: K.Key, in table: MultiTable<K, V>
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try V.withEncodedKey(value) { (value) throws(LMDBError) in
        try insertPair(key, value, table.valueByteCount, in: table.base, .keep)
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

  /// Removes a key that has this value and no other.
  /// - Returns: whether it was removed; false when it is not there, or has another value or several.
  /// - Throws: `badKeySize` of either, what LMDB reports.
  /// - Cost: one search. Corresponds to `mdb_cursor_del`.
  @inlinable
  package mutating func delete<K, V>(
    _ key: K.Key, ifItsOnlyValueIs value: V.Key, in table: MultiTable<K, V>
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try V.withEncodedKey(value) { (value) throws(LMDBError) in
        try deleteSingle(key, value, in: table.base)
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

  /// Removes each pair of a range of keys that `isUnwanted` says yes to.
  ///
  /// - Parameters:
  ///   - table: a table of the transaction's environment.
  ///   - range: the keys; all by default.
  ///   - isUnwanted: gets a pair; the spans end with the call.
  /// - Returns: how many pairs there were.
  /// - Throws: what LMDB reports, and what `isUnwanted` throws; nothing was removed then.
  /// - Cost: one step per pair; a copy of each unwanted one until the range is through, and one search
  ///   to remove it.
  @inlinable
  @discardableResult
  public mutating func deleteAll<K, V>(
    in table: MultiTable<K, V>, _ range: KeyRange<K.Key> = .all,
    where isUnwanted: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws -> Int {
    try range.withEdges(K.self) { try deletePairs(in: table.base, $0, isUnwanted) }
  }

  /// Removes everything from a table; the table stays.
  /// - Throws: what LMDB reports.
  /// - Cost: the table's pages are listed as free. Corresponds to `mdb_drop`.
  public mutating func deleteAll<K, V>(in table: MultiTable<K, V>) throws(LMDBError) {
    try drop(table.base)
  }
}
