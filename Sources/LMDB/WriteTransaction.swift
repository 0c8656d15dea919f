internal import CLMDB

/// Reads and writes that are committed together or not at all. Lent by `Environment.write`.
///
/// It lives on one thread, within one synchronous closure. What it reads it sees with its own writes.
public struct WriteTransaction: ~Copyable, Transaction {
  @usableFromInline let core: TransactionCore
  let context: WriteContext
  /// The cursors that stores go through, of the first tables that got more than one.
  private var cursors = InlineArray<4, StoreCursor>(repeating: StoreCursor())

  init(_ core: TransactionCore, _ context: WriteContext) {
    self.core = core
    self.context = context
  }

  /// What it is, for this module only.
  public var token: TransactionToken {
    @_lifetime(borrow self)
    get {
      // SAFETY: the token ends with the borrow of `self`, and that with the transaction.
      unsafe _overrideLifetime(TransactionToken(unbound: core), borrowing: self)
    }
  }

  /// What the write before this one in the same commit has left for it, and what this one leaves for the
  /// next: for writes of one kind, which then do not look up again what both know. A write that leaves
  /// nothing ends it, and so does the commit.
  package var remembered: AnyObject? {
    get { context.offered }
    nonmutating set { context.left = newValue }
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

  /// Stores a value's bytes as they are, in place of what was there.
  /// - Throws: `badKeySize`, `valueTooLarge`; a full map is handled outside.
  /// - Cost: one search, and the bytes copied once. Corresponds to `mdb_put`.
  @inlinable
  public mutating func put<K, V>(
    bytes: RawSpan, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) {
    _ = try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try store(bytes, for: key, in: table.base, .replace)
    }
  }

  /// Makes room for a value of known size and has `body` fill it in place: nothing is copied.
  ///
  /// What `body` leaves unfilled is zero.
  /// - Parameters:
  ///   - byteCount: the value's size in bytes, 0 to 1 GiB.
  ///   - key: 1 to 511 bytes when encoded.
  ///   - table: a table of the transaction's environment.
  ///   - body: gets the room, empty; it cannot be kept.
  /// - Throws: as ``put(bytes:for:in:)``; `body` was not called then.
  /// - Cost: as ``put(bytes:for:in:)`` without the copy. Corresponds to `MDB_RESERVE`.
  @inlinable
  public mutating func put<K, V>(
    byteCount: Int, for key: K.Key, in table: Table<K, V>,
    _ body: (inout OutputRawSpan) -> Void
  ) throws(LMDBError) {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      _ = try reserve(byteCount, for: key, in: table.base, .replace, body)
    }
  }

  /// Makes room for a value of known size behind all others, and has `body` fill it in place.
  ///
  /// What `body` leaves unfilled is zero.
  /// - Parameters:
  ///   - byteCount: the value's size in bytes, 0 to 1 GiB.
  ///   - key: 1 to 511 bytes when encoded, behind the last one.
  ///   - table: a table of the transaction's environment.
  ///   - body: gets the room, empty; it cannot be kept.
  /// - Throws: as ``append(_:for:in:)``; `body` was not called then.
  /// - Cost: as ``append(_:for:in:)`` without the copy. Corresponds to `MDB_APPEND` with `MDB_RESERVE`.
  @inlinable
  public mutating func append<K, V>(
    byteCount: Int, for key: K.Key, in table: Table<K, V>,
    _ body: (inout OutputRawSpan) -> Void
  ) throws(LMDBError) {
    let isStored = try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try reserve(byteCount, for: key, in: table.base, .append, body)
    }
    guard isStored else { throw appendedOutOfOrder(table.name) }
  }

  @usableFromInline
  func appendedOutOfOrder(_ table: String) -> LMDBError {
    unsafe LMDBError(
      .keyExists, operation: "mdb_put", path: core.environment.path, table: table,
      detail: "appended out of order")
  }

  /// Stores a value unless the key is there.
  /// - Returns: whether it was stored.
  /// - Throws: `badKeySize`, `valueTooLarge`.
  /// - Cost: one search. Corresponds to `mdb_put` with `MDB_NOOVERWRITE`.
  @inlinable
  public mutating func putIfAbsent<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> Bool {
    try store(value, for: key, in: table, .keep)
  }

  /// Stores a value behind all others: the fast way for keys that come in order.
  /// - Throws: `keyExists` when the key is not behind the last one; nothing was stored then.
  ///   `badKeySize`, `valueTooLarge`.
  /// - Cost: no search; pages are filled to their end. Corresponds to `mdb_put` with `MDB_APPEND`.
  @inlinable
  public mutating func append<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) {
    guard try store(value, for: key, in: table, .append) else {
      throw appendedOutOfOrder(table.name)
    }
  }

  /// Removes a key.
  /// - Returns: whether it was there.
  /// - Throws: `badKeySize`, what LMDB reports.
  /// - Cost: one search. Corresponds to `mdb_del`.
  @inlinable
  @discardableResult
  public mutating func delete<K, V>(
    _ key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try delete(key, in: table.base)
    }
  }

  /// Removes every entry of a range.
  /// - Returns: how many there were.
  /// - Throws: `badKeySize`, what LMDB reports.
  /// - Cost: one search, one step per entry. Corresponds to `mdb_cursor_del`.
  @inlinable
  @discardableResult
  public mutating func deleteAll<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key>
  ) throws -> Int {
    try deleteAll(in: table, range) { _, _ in true }
  }

  /// Removes every entry of a range that `isUnwanted` says yes to: deletes while it iterates.
  ///
  /// - Returns: how many there were.
  /// - Throws: what LMDB reports and what `isUnwanted` throws; what was removed before stays removed
  ///   within this transaction.
  /// - Cost: one search, one step per entry. Corresponds to `mdb_cursor_del`.
  @inlinable
  @discardableResult
  public mutating func deleteAll<K, V>(
    in table: Table<K, V>, _ range: KeyRange<K.Key> = .all,
    where isUnwanted: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws -> Int {
    try range.withEdges(K.self) { edges in
      try deleteAll(in: table.base, edges, isUnwanted)
    }
  }

  /// Removes every entry of a table; the table stays.
  /// - Cost: the table's pages are listed as free, its entries are not visited. Corresponds to
  ///   `mdb_drop`.
  /// - Throws: what LMDB reports.
  public mutating func deleteAll<K, V>(in table: Table<K, V>) throws(LMDBError) {
    try drop(table.base)
  }

  mutating func drop(_ table: TableBase) throws(LMDBError) {
    core.requireOwn(table)
    try check(unsafe mdb_drop(core.handle, table.handle, 0), "mdb_drop", table)
  }

  /// What a store does with a key that is there.
  @usableFromInline
  enum StoreMode {
    case replace
    case keep
    case append
    /// Adds to a key's values, unless this one is among them.
    case unlessPaired

    var flags: Int32 {
      switch self {
      case .replace: 0
      case .keep: MDB_NOOVERWRITE
      case .append: MDB_APPEND
      case .unlessPaired: MDB_NODUPDATA
      }
    }
  }

  @inlinable
  mutating func store<K, V>(
    _ value: V.Value, for key: K.Key, in table: Table<K, V>, _ mode: StoreMode
  ) throws(LMDBError) -> Bool {
    try K.withEncodedKey(key) { (key) throws(LMDBError) in
      try V.withEncoded(value) { (bytes) throws(LMDBError) in
        try store(bytes, for: key, in: table.base, mode)
      }
    }
  }

  /// - Returns: whether it was stored.
  @usableFromInline
  mutating func store(
    _ bytes: RawSpan, for key: RawSpan, in table: TableBase, _ mode: StoreMode
  ) throws(LMDBError) -> Bool {
    try checkStore(bytes.byteCount, key, table)
    let flags = mode.flags
    let result = unsafe bytes.withUnsafeBytes { bytes in
      var value = unsafe MDB_val(bytes)
      return unsafe store(&value, for: key, in: table, flags)
    }
    if result == MDB_KEYEXIST { return false }
    try check(result, "mdb_put", table)
    return true
  }

  /// - Returns: whether there was room made.
  @usableFromInline
  mutating func reserve(
    _ byteCount: Int, for key: RawSpan, in table: TableBase, _ mode: StoreMode,
    _ body: (inout OutputRawSpan) -> Void
  ) throws(LMDBError) -> Bool {
    trapUnless(byteCount >= 0, "a value of \(byteCount) bytes")
    try checkStore(byteCount, key, table)
    var value = unsafe MDB_val(mv_size: byteCount, mv_data: nil)
    let result = unsafe store(&value, for: key, in: table, MDB_RESERVE | mode.flags)
    if result == MDB_KEYEXIST { return false }
    try check(result, "mdb_put", table)
    // SAFETY: LMDB answers with that many bytes of a page of this transaction, which stay there
    // until its next write; `body` cannot write, since `self` is in use.
    let room = unsafe UnsafeMutableRawBufferPointer(start: value.mv_data, count: byteCount)
    var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
    body(&output)
    let filled = unsafe output.finalize(for: room)
    // The page came from the heap: what lay there must not reach the disk.
    for offset in filled..<byteCount { unsafe room[offset] = 0 }
    return true
  }

  private func checkStore(
    _ byteCount: Int, _ key: RawSpan, _ table: TableBase
  ) throws(LMDBError) {
    core.requireOwn(table)
    context.store()
    guard byteCount <= Self.valueByteCountMax else {
      throw unsafe LMDBError(
        .valueTooLarge, operation: "mdb_put", path: core.environment.path, table: table.name,
        detail: "\(byteCount) bytes")
    }
    try core.checkKey(byteCount: key.byteCount, "mdb_put", table)
  }

  /// Stores through the table's cursor, which remembers where it stands: the next key of a batch is
  /// mostly near by. The first store of a table has none yet, since opening one costs more than it
  /// saves.
  @unsafe private mutating func store(
    _ value: inout MDB_val, for key: RawSpan, in table: TableBase, _ flags: Int32
  ) -> Int32 {
    let cursor = unsafe cursor(for: table.handle)
    return unsafe key.withUnsafeBytes { bytes in
      var key = unsafe MDB_val(bytes)
      guard let cursor = unsafe cursor else {
        return unsafe mdb_put(core.handle, table.handle, &key, &value, UInt32(flags))
      }
      return unsafe mdb_cursor_put(cursor, &key, &value, UInt32(flags))
    }
  }

  /// The cursor for stores in a table, from its second store on. LMDB ends it with the transaction.
  @unsafe private mutating func cursor(for handle: UInt32) -> OpaquePointer? {
    for index in cursors.indices {
      if cursors[index].table == handle {
        if let cursor = unsafe cursors[index].cursor { return unsafe cursor }
        var opened: OpaquePointer?
        guard unsafe mdb_cursor_open(core.handle, handle, &opened) == 0 else { return nil }
        unsafe cursors[index].cursor = opened
        return unsafe opened
      }
      if cursors[index].table == 0 {
        cursors[index].table = handle
        return nil
      }
    }
    return nil
  }

  @usableFromInline
  mutating func delete(_ key: RawSpan, in table: TableBase) throws(LMDBError) -> Bool {
    core.requireOwn(table)
    try core.checkKey(byteCount: key.byteCount, "mdb_del", table)
    let result = unsafe key.withUnsafeBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_del(core.handle, table.handle, &key, nil)
    }
    if result == MDB_NOTFOUND { return false }
    try check(result, "mdb_del", table)
    return true
  }

  @usableFromInline
  mutating func deleteAll(
    in table: TableBase, _ edges: borrowing Edges,
    _ isUnwanted: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws -> Int {
    core.requireOwn(table)
    try edges.check(core, table)
    var opened: OpaquePointer?
    unsafe try check(
      mdb_cursor_open(core.handle, table.handle, &opened), "mdb_cursor_open", table)
    let cursor = unsafe opened
    defer { unsafe mdb_cursor_close(cursor) }
    var key = unsafe MDB_val()
    var value = unsafe MDB_val()
    var count = 0
    var result = unsafe edges.place(
      cursor, &key, &value, reversed: false, hasDuplicates: table.hasDuplicates)
    while result == 0, unsafe edges.contains(key, reversed: false) {
      // SAFETY: both stay until the cursor moves or deletes.
      if unsafe try isUnwanted(key.lent.bytes, value.lent.bytes) {
        try check(unsafe mdb_cursor_del(cursor, 0), "mdb_cursor_del", table)
        count += 1
      }
      // On 0.9.24 the next step after a delete lands on the entry that moved up.
      result = unsafe mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
    }
    guard result == MDB_NOTFOUND else {
      try check(result, "mdb_cursor_get", table)
      return count
    }
    return count
  }

  func check(
    _ result: Int32, _ operation: StaticString, _ table: TableBase
  ) throws(LMDBError) {
    // LMDB answers everything after a full map with BAD_TXN; the first answer is what counts, also
    // when the closure wraps or swallows it.
    if result == MDB_MAP_FULL { context.isMapFull = true }
    try core.check(result, operation, table)
  }
}

/// A table that this transaction stores in, and the cursor for it. LMDB numbers named tables from 2.
@safe private struct StoreCursor {
  var table: UInt32 = 0
  var cursor: OpaquePointer?
}

/// What the environment must learn about a write closure, whatever the closure does with its errors.
final class WriteContext {
  var isMapFull = false
  // SAFETY (of the exclusivity that is not checked, which each store would pay for): one thread uses it,
  // and nothing is called while it is read or set.
  @exclusivity(unchecked) private var isChanged = false
  /// See ``WriteTransaction/remembered``.
  private(set) var offered: AnyObject?
  var left: AnyObject?

  /// Whether it has tried to add or change anything, rather than only to delete.
  var hasStored: Bool { unsafe isChanged }

  /// Called before anything is added or changed.
  @inline(__always) func store() { unsafe isChanged = true }

  /// The next of several writes begins.
  func beginNext() {
    offered = left
    left = nil
  }

  /// What was left is no longer so.
  func forget() {
    offered = nil
    left = nil
  }
}
