internal import CLMDB

/// A position in a table that moves: for walks that a ``Transaction/scan(_:_:reversed:limit:prefetch:_:)``
/// cannot express, as two tables walked side by side.
///
/// It begins before the first entry, so a walk is
/// `while try cursor.next() { use(cursor.keyBytes, cursor.valueBytes) }`. The compiler keeps it within
/// its transaction, and each lent value within the time until the cursor moves. Many keys that lie
/// close together are found faster with ``seek(to:)`` of one cursor than with a search each.
/// Corresponds to `MDB_cursor`.
@safe public struct Cursor<Key: KeyCodec, Value: ValueCodec>: ~Copyable, ~Escapable {
  @usableFromInline var position: CursorPosition

  @_lifetime(immortal)
  init(unbound position: CursorPosition) { self.position = position }

  deinit { position.close() }

  /// Whether it stands on an entry.
  public var isOnEntry: Bool { position.isOnEntry }

  /// Moves to the first entry.
  /// - Returns: false when the table is empty.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_get` with `MDB_FIRST`.
  @_lifetime(self: copy self)
  public mutating func first() throws(LMDBError) -> Bool { try position.move(.first) }

  /// Moves to the last entry.
  /// - Returns: false when the table is empty.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_get` with `MDB_LAST`.
  @_lifetime(self: copy self)
  public mutating func last() throws(LMDBError) -> Bool { try position.move(.last) }

  /// Moves to the next entry: at first to the first, after a search that failed to the one behind
  /// that key.
  /// - Returns: false behind the last one, where it then stands; ``previous()`` goes back to that.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_get` with `MDB_NEXT`.
  @_lifetime(self: copy self)
  public mutating func next() throws(LMDBError) -> Bool { try position.move(.next) }

  /// Moves to the entry before: at first to the last, after a search that failed to the one before
  /// that key.
  /// - Returns: false before the first one, where it then stands; ``next()`` goes back to that.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_get` with `MDB_PREV`.
  @_lifetime(self: copy self)
  public mutating func previous() throws(LMDBError) -> Bool { try position.move(.previous) }

  /// Moves to the entry of a key.
  /// - Returns: false when there is none; the cursor stands between that key's neighbours then.
  /// - Throws: `badKeySize`.
  @inlinable
  @_lifetime(self: copy self)
  public mutating func seek(to key: Key.Key) throws(LMDBError) -> Bool {
    // A copy, since the closure cannot hold a value that is bound to a transaction.
    var moved = position
    defer { position = moved }
    return try Key.withEncodedKey(key) { (key) throws(LMDBError) in
      try moved.seek(key, isExact: true)
    }
  }

  /// Moves to the entry of a key or, where there is none, to the next one.
  /// - Returns: false when there is none at or behind the key; the cursor stands behind the last
  ///   entry then.
  /// - Throws: `badKeySize`.
  @inlinable
  @_lifetime(self: copy self)
  public mutating func seek(atOrAfter key: Key.Key) throws(LMDBError) -> Bool {
    var moved = position
    defer { position = moved }
    return try Key.withEncodedKey(key) { (key) throws(LMDBError) in
      try moved.seek(key, isExact: false)
    }
  }

  /// The stored bytes of the key it stands on, lent until it moves.
  /// - Precondition: it stands on an entry.
  public var keyBytes: RawSpan {
    @_lifetime(borrow self)
    get { unsafe _overrideLifetime(position.keySpan, borrowing: self) }
  }

  /// The stored bytes of the value it stands on, lent until it moves.
  /// - Precondition: it stands on an entry.
  public var valueBytes: RawSpan {
    @_lifetime(borrow self)
    get { unsafe _overrideLifetime(position.valueSpan, borrowing: self) }
  }

  /// The key it stands on, decoded.
  /// - Throws: `badForm` from the codec.
  @inlinable
  public func key() throws(LMDBError) -> Key.Key { try Key.decode(keyBytes) }

  /// The value it stands on, decoded.
  /// - Throws: `badForm` from the codec.
  @inlinable
  public func value() throws(LMDBError) -> Value.Value { try Value.decode(valueBytes) }
}

/// A ``Cursor`` of a write transaction that also deletes and replaces where it stands.
///
/// While it lives the transaction is its alone; what it changed the transaction sees afterwards.
@safe public struct WriteCursor<Key: KeyCodec, Value: ValueCodec>: ~Copyable, ~Escapable {
  @usableFromInline var position: CursorPosition

  @_lifetime(immortal)
  init(unbound position: CursorPosition) { self.position = position }

  deinit { position.close() }

  /// Whether it stands on an entry.
  public var isOnEntry: Bool { position.isOnEntry }

  /// Moves to the first entry.
  /// - Returns: false when the table is empty.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_get` with `MDB_FIRST`.
  @_lifetime(self: copy self)
  public mutating func first() throws(LMDBError) -> Bool { try position.move(.first) }

  /// Moves to the last entry.
  /// - Returns: false when the table is empty.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_get` with `MDB_LAST`.
  @_lifetime(self: copy self)
  public mutating func last() throws(LMDBError) -> Bool { try position.move(.last) }

  /// Moves to the next entry: at first to the first, after a delete to the one behind the deleted,
  /// after a search that failed to the one behind that key.
  /// - Returns: false behind the last one, where it then stands; ``previous()`` goes back to that.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_get` with `MDB_NEXT`.
  @_lifetime(self: copy self)
  public mutating func next() throws(LMDBError) -> Bool { try position.move(.next) }

  /// Moves to the entry before: at first to the last, after a search that failed to the one before
  /// that key.
  /// - Returns: false before the first one, where it then stands; ``next()`` goes back to that.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_get` with `MDB_PREV`.
  @_lifetime(self: copy self)
  public mutating func previous() throws(LMDBError) -> Bool { try position.move(.previous) }

  /// Moves to the entry of a key.
  /// - Returns: false when there is none; the cursor stands between that key's neighbours then.
  /// - Throws: `badKeySize`.
  @inlinable
  @_lifetime(self: copy self)
  public mutating func seek(to key: Key.Key) throws(LMDBError) -> Bool {
    var moved = position
    defer { position = moved }
    return try Key.withEncodedKey(key) { (key) throws(LMDBError) in
      try moved.seek(key, isExact: true)
    }
  }

  /// Moves to the entry of a key or, where there is none, to the next one.
  /// - Returns: false when there is none at or behind the key; the cursor stands behind the last
  ///   entry then.
  /// - Throws: `badKeySize`.
  @inlinable
  @_lifetime(self: copy self)
  public mutating func seek(atOrAfter key: Key.Key) throws(LMDBError) -> Bool {
    var moved = position
    defer { position = moved }
    return try Key.withEncodedKey(key) { (key) throws(LMDBError) in
      try moved.seek(key, isExact: false)
    }
  }

  /// The stored bytes of the key it stands on, lent until it moves or changes something.
  /// - Precondition: it stands on an entry.
  public var keyBytes: RawSpan {
    @_lifetime(borrow self)
    get { unsafe _overrideLifetime(position.keySpan, borrowing: self) }
  }

  /// The stored bytes of the value it stands on, lent until it moves or changes something.
  /// - Precondition: it stands on an entry.
  public var valueBytes: RawSpan {
    @_lifetime(borrow self)
    get { unsafe _overrideLifetime(position.valueSpan, borrowing: self) }
  }

  /// The key it stands on, decoded.
  /// - Throws: `badForm` from the codec.
  @inlinable
  public func key() throws(LMDBError) -> Key.Key { try Key.decode(keyBytes) }

  /// The value it stands on, decoded.
  /// - Throws: `badForm` from the codec.
  @inlinable
  public func value() throws(LMDBError) -> Value.Value { try Value.decode(valueBytes) }

  /// Removes the entry it stands on. It stands on none then; ``next()`` and ``previous()`` go to the
  /// neighbours.
  /// - Precondition: it stands on an entry.
  /// - Throws: what LMDB reports.
  /// - Corresponds to `mdb_cursor_del`.
  @_lifetime(self: copy self)
  public mutating func delete() throws(LMDBError) { try position.delete() }

  /// Stores another value for the key it stands on.
  /// - Precondition: it stands on an entry.
  /// - Throws: `valueTooLarge`.
  /// - Corresponds to `mdb_cursor_put` with `MDB_CURRENT`.
  @inlinable
  @_lifetime(self: copy self)
  public mutating func replace(with value: Value.Value) throws(LMDBError) {
    var changed = position
    defer { position = changed }
    try Value.withEncoded(value) { (bytes) throws(LMDBError) in try changed.replace(bytes) }
  }
}

extension Transaction where Self: ~Copyable {
  /// A cursor before the first entry of a table.
  ///
  /// In a write transaction nothing can be written while it lives; see
  /// ``WriteTransaction/writeCursor(in:)``.
  /// - Throws: what LMDB reports.
  /// - Cost: one small allocation by LMDB. Corresponds to `mdb_cursor_open`.
  @_lifetime(borrow self)
  public borrowing func cursor<K, V>(
    in table: Table<K, V>
  ) throws(LMDBError) -> Cursor<K, V> {
    let position = try CursorPosition(core, table.base, context: nil)
    return unsafe _overrideLifetime(Cursor<K, V>(unbound: position), borrowing: self)
  }
}

extension WriteTransaction {
  /// A cursor that can delete and replace, before the first entry of a table.
  /// - Throws: what LMDB reports.
  /// - Cost: one small allocation by LMDB. Corresponds to `mdb_cursor_open`.
  @_lifetime(&self)
  public mutating func writeCursor<K, V>(
    in table: Table<K, V>
  ) throws(LMDBError) -> WriteCursor<K, V> {
    let position = try CursorPosition(core, table.base, context: context)
    let cursor = WriteCursor<K, V>(unbound: position)
    return unsafe _overrideLifetime(cursor, mutating: &self)
  }
}
