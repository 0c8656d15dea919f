internal import CLMDB

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
  func scanValues(
    of key: RawSpan, from first: RawSpan, _ table: TableBase, _ limit: Int,
    _ body: (_ value: RawSpan) throws -> ScanStep
  ) throws {
    try checkKey(byteCount: first.byteCount, "mdb_cursor_get", table)
    guard limit > 0 else { return }
    _ = unsafe try onPair(key, first, in: table, MDB_GET_BOTH_RANGE) { cursor, found in
      var key = unsafe MDB_val()
      var value = unsafe found
      var left = limit
      // SAFETY: the value stays until the cursor moves, which happens after `body` returned.
      while unsafe try body(value.lent.bytes) == .next {
        left -= 1
        guard left > 0 else { return }
        let result = unsafe mdb_cursor_get(cursor, &key, &value, MDB_NEXT_DUP)
        guard try checkFound(result, "mdb_cursor_get", table) else { return }
      }
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
    _ key: RawSpan, _ value: RawSpan, _ valueByteCount: Int?, in table: TableBase,
    _ mode: StoreMode = .unlessPaired
  ) throws(LMDBError) -> Bool {
    try core.checkKey(byteCount: value.byteCount, "mdb_put", table)
    if let valueByteCount, value.byteCount != valueByteCount {
      throw unsafe LMDBError(
        .badForm, operation: "encode", path: core.environment.path, table: table.name,
        detail: "a value of \(value.byteCount) bytes by a codec of \(valueByteCount)")
    }
    return try store(value, for: key, in: table, mode)
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
    context.store()
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

  /// - Returns: whether the key had this value alone, and was deleted.
  @usableFromInline
  mutating func deleteSingle(
    _ key: RawSpan, _ value: RawSpan, in table: TableBase
  ) throws(LMDBError) -> Bool {
    core.requireOwn(table)
    try core.checkKey(byteCount: key.byteCount, "mdb_cursor_get", table)
    try core.checkKey(byteCount: value.byteCount, "mdb_cursor_get", table)
    var opened: OpaquePointer?
    unsafe try check(
      mdb_cursor_open(core.handle, table.handle, &opened), "mdb_cursor_open", table)
    defer { unsafe mdb_cursor_close(opened) }
    var found = unsafe MDB_val()
    let result = unsafe key.withUnsafeBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_cursor_get(opened, &key, &found, MDB_SET)
    }
    guard try core.checkFound(result, "mdb_cursor_get", table) else { return false }
    var count = 0
    unsafe try check(mdb_cursor_count(opened, &count), "mdb_cursor_count", table)
    // SAFETY: the value stays until the cursor moves or deletes.
    let isEqual = unsafe value.withUnsafeBytes { unsafe $0.elementsEqual(found.lent) }
    guard count == 1, isEqual else { return false }
    try check(unsafe mdb_cursor_del(opened, 0), "mdb_cursor_del", table)
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

  /// Collects the pairs first, for the same reason.
  @usableFromInline
  mutating func deletePairs(
    in table: TableBase, _ edges: borrowing Edges,
    _ isUnwanted: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws -> Int {
    var unwanted: [(key: [UInt8], value: [UInt8])] = []
    try core.scan(table, edges, reversed: false, limit: .max, prefetch: .none) { key, value in
      if try isUnwanted(key, value) {
        unwanted.append((key.copiedBytes(), value.copiedBytes()))
      }
      return .next
    }
    for pair in unwanted {
      _ = unsafe try deletePair(pair.key.span.bytes, pair.value.span.bytes, in: table)
    }
    return unwanted.count
  }
}
