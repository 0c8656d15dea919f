internal import CLMDB
import Foundation
import Synchronization

extension Environment {
  /// Opens a named table, made if the environment may be written. Cheap after the first time.
  /// - Parameters:
  ///   - name: 1 to 511 bytes of UTF-8, none of them zero.
  ///   - key: the codec of its keys.
  ///   - value: the codec of its values.
  /// - Throws: `tableMissing` when it is not there and may not be made; `tablesFull`; `incompatible`
  ///   when the table of that name has several values per key; `badKeySize` and `badForm` of the
  ///   name.
  /// - Precondition: not called from inside one of this environment's transactions.
  /// - Corresponds to `mdb_dbi_open`; the handle stays open as long as the environment.
  public func table<K, V>(
    _ name: String, key: K.Type, value: V.Type
  ) throws -> Table<K, V> {
    Table(base: try tableBase(name, hasDuplicates: false))
  }

  /// The table of that name and kind.
  /// - Throws: `incompatible` when it is of another kind; see ``table(_:key:value:)``.
  func tableBase(
    _ name: String, hasDuplicates: Bool, valueByteCount: Int? = nil
  ) throws -> TableBase {
    let flags =
      (hasDuplicates ? UInt32(MDB_DUPSORT) : 0) | (valueByteCount != nil ? UInt32(MDB_DUPFIXED) : 0)
    func base(_ known: OpenTable) throws(LMDBError) -> TableBase {
      guard known.flags == flags else {
        throw LMDBError(
          .incompatible, operation: "mdb_dbi_open", path: path, table: name,
          detail: "it has flags \(known.flags), not \(flags)")
      }
      // LMDB would cut values of another size, or fill them up with what lies behind them.
      if let known = known.valueByteCount, known != valueByteCount {
        throw LMDBError(
          .incompatible, operation: "mdb_dbi_open", path: path, table: name,
          detail: "its values have \(known) bytes, not \(valueByteCount ?? 0)")
      }
      return TableBase(
        name: name, handle: known.handle, environment: number, hasDuplicates: hasDuplicates)
    }
    try requireOwnProcess("mdb_dbi_open")
    // C ends the name there, and would open the table of the shorter one.
    guard !name.utf8.contains(0) else {
      throw LMDBError(
        .badForm, operation: "mdb_dbi_open", path: path,
        detail: "a table's name holds a zero byte")
    }
    // Empty, it takes the size of the codec that it is opened with first.
    func remember(_ opened: OpenTable?) -> OpenTable? {
      tables.withLock { tables in
        guard var table = tables[name] ?? opened else { return nil }
        if table.flags == flags { table.valueByteCount = table.valueByteCount ?? valueByteCount }
        tables[name] = table
        return table
      }
    }
    if let known = remember(nil) { return try base(known) }
    let thread = ThreadState.current
    trapUnless(
      !thread.isWriting(self) && !thread.isReading(self),
      "open table \(name) before the transaction that uses it (\(path))")
    // A table that is there needs no writer's lock, which another process may hold for long.
    // Handles may be opened by one transaction of a process at a time: the turn sees to it.
    var opened: OpenTable?
    do {
      opened = try withTurn { try openExistingTable(name) }
    } catch let error as LMDBError {
      guard error.code == .tableMissing, configuration.access != .read else { throw error }
    }
    let table =
      try opened
      ?? writeBlocking { transaction in
        do throws(LMDBError) {
          return try openTable(name, transaction.core, UInt32(MDB_CREATE) | flags)
        } catch {
          if error.rawCode == MDB_MAP_FULL { transaction.context.isMapFull = true }
          throw error
        }
      }
    return try base(remember(table) ?? table)
  }

  /// A handle opened by a read transaction lives on only if that transaction is committed.
  private func openExistingTable(_ name: String) throws(LMDBError) -> OpenTable {
    let reader = try beginOwnReading(ThreadState.current, hasWriterTurn: true)
    // The commit ends the transaction, so that the slot keeps none.
    defer { unsafe gate.leave(slot: reader.slot, keeping: nil) }
    do {
      let opened = try openTable(name, reader.core, 0)
      unsafe try check(mdb_txn_commit(reader.core.handle), "mdb_txn_commit", name)
      return opened
    } catch {
      if error.operation != "mdb_txn_commit" { unsafe mdb_txn_abort(reader.core.handle) }
      throw error
    }
  }

  func openTable(
    _ name: String, _ core: TransactionCore, _ flags: UInt32
  ) throws(LMDBError) -> OpenTable {
    var table: MDB_dbi = 0
    let result = unsafe mdb_dbi_open(core.handle, name, flags, &table)
    if result == MDB_NOTFOUND {
      throw LMDBError(
        .tableMissing, rawCode: result, operation: "mdb_dbi_open", path: path, table: name)
    }
    try check(result, "mdb_dbi_open", name)
    // LMDB opens an existing table of another kind without a word.
    var found: UInt32 = 0
    try check(unsafe mdb_dbi_flags(core.handle, table, &found), "mdb_dbi_flags", name)
    return OpenTable(
      handle: table, flags: found,
      valueByteCount: try firstValueByteCount(core, table, flags: found, name))
  }

  /// The size of the values of a table that has several of one size per key; nil where it has none.
  private func firstValueByteCount(
    _ core: TransactionCore, _ table: MDB_dbi, flags: UInt32, _ name: String
  ) throws(LMDBError) -> Int? {
    guard flags & UInt32(MDB_DUPFIXED) != 0 else { return nil }
    var opened: OpaquePointer?
    try check(unsafe mdb_cursor_open(core.handle, table, &opened), "mdb_cursor_open", name)
    defer { unsafe mdb_cursor_close(opened) }
    var key = unsafe MDB_val()
    var value = unsafe MDB_val()
    let result = unsafe mdb_cursor_get(opened, &key, &value, MDB_FIRST)
    return try checkFound(result, "mdb_cursor_get", name) ? unsafe value.mv_size : nil
  }

  /// The names of all tables, in byte order. Corresponds to reading the unnamed database.
  /// - Precondition: not called from inside one of this environment's transactions.
  /// - Throws: `closed`, `readersFull`, what LMDB reports.
  public func tableNames() throws -> [String] {
    let main = try mainTable()
    return try read { transaction in
      var names: [String] = []
      try transaction.scan(main) { key, _ in
        names.append(try TextCodec.decode(key))
        return .next
      }
      return names
    }
  }

  func mainTable() throws -> Table<TextCodec, BytesCodec> {
    // LMDB keeps the unnamed database under a number of its own; no flag is needed to open it.
    Table(base: TableBase(name: "", handle: 1, environment: number))
  }

  func requireOwn(_ table: TableBase) {
    trapUnless(
      table.environment == number,
      "table \(table.name) belongs to another environment than \(path)")
  }

  func check(_ result: Int32, _ operation: String, _ table: String? = nil) throws(LMDBError) {
    guard result != 0 else { return }
    var descriptor: Int32 = -1
    // Asked only where it matters: the handle is LMDB's as long as a transaction runs.
    if result == EIO { _ = unsafe mdb_env_get_fd(handle, &descriptor) }
    throw LMDBError.from(
      result, operation: operation, path: path, table: table, descriptor: descriptor)
  }

  func checkFound(
    _ result: Int32, _ operation: String, _ table: String
  ) throws(LMDBError) -> Bool {
    if result == MDB_NOTFOUND { return false }
    try check(result, operation, table)
    return true
  }

  func checkKey(
    _ key: borrowing KeyBuffer, _ operation: String, _ table: String
  ) throws(LMDBError) {
    try checkKey(byteCount: key.byteCount, operation, table)
  }

  func checkKey(
    byteCount: Int, _ operation: String, _ table: String
  ) throws(LMDBError) {
    guard byteCount >= 1, byteCount <= KeyBuffer.byteCountMax else {
      throw LMDBError(
        .badKeySize, rawCode: MDB_BAD_VALSIZE, operation: operation, path: path, table: table,
        detail: "\(byteCount) bytes")
    }
  }
}
