internal import CLMDB
import Synchronization

extension Environment {
  /// Opens the tables that exist, all in one transaction: what comes to use them finds them open.
  ///
  /// One after the other they would cost a transaction each, which is most of what opening a small
  /// environment with many tables takes.
  /// - Parameter isWanted: called with each table's name, in byte order.
  /// - Returns: the names of those that were opened, or were open already.
  /// - Throws: `tablesFull`; `incompatible` for an entry that is no table; `badForm` for a name that
  ///   is not UTF-8; `closed`, `readersFull`.
  /// - Precondition: not called from inside one of this environment's transactions.
  /// - Cost: about a microsecond per table. Corresponds to `mdb_dbi_open`.
  @discardableResult
  package func openTables(where isWanted: (String) -> Bool = { _ in true }) throws -> [String] {
    try requireOwnProcess("mdb_dbi_open")
    let thread = ThreadState.current
    trapUnless(
      !thread.isWriting(self) && !thread.isReading(self),
      "open the tables before the transaction that uses them (\(path))")
    // Handles may be opened by one transaction of a process at a time: the turn sees to it.
    return try withTurn { try openTables(thread, where: isWanted) }
  }

  private func openTables(
    _ thread: ThreadState, where isWanted: (String) -> Bool
  ) throws -> [String] {
    try openingTables(thread) { core in
      let main = try mainTable()
      var names: [String] = []
      try ReadTransaction(core).scan(main) { key, _ in
        let name = try TextCodec.decode(key)
        if isWanted(name) { names.append(name) }
        return .next
      }
      let known = tables.withLock { $0 }
      var opened: [String: OpenTable] = [:]
      for name in names where known[name] == nil { opened[name] = try openTable(name, core, 0) }
      return (names, opened)
    }
  }

  /// Runs `body` in a snapshot whose table handles outlive it, and notes what it opened.
  private func openingTables<R>(
    _ thread: ThreadState, _ body: (TransactionCore) throws -> (R, [String: OpenTable])
  ) throws -> R {
    let reader = try beginOwnReading(thread, hasWriterTurn: true)
    // The commit ends the transaction, so that the slot keeps none.
    defer { unsafe gate.leave(slot: reader.slot, keeping: nil) }
    let value: R
    let opened: [String: OpenTable]
    do {
      (value, opened) = try body(reader.core)
    } catch {
      unsafe mdb_txn_abort(reader.core.handle)
      throw error
    }
    try check(unsafe mdb_txn_commit(reader.core.handle), "mdb_txn_commit")
    tables.withLock { $0.merge(opened) { known, _ in known } }
    return value
  }
}

extension Environment {
  /// Opens again, where it was, an environment that was closed. Its tables are tables of the new
  /// one, too: who holds one goes on with it.
  ///
  /// For a store that lets go of its files for a while. The file may have been replaced meanwhile;
  /// tables that are not in it are made, empty.
  /// - Throws: `busy` when somebody has it open already; as ``open(at:configuration:)`` and
  ///   ``table(_:key:value:)``.
  /// - Precondition: `closed` was closed, and is opened again once at a time.
  package static func open(again closed: Environment) throws -> Environment {
    precondition(closed.isClosed, "LMDB: an environment is opened again while it is open")
    var configuration = closed.configuration
    if configuration.access == .createOrWrite { configuration.access = .write }
    let environment = try open(at: closed.path, configuration: configuration, number: closed.number)
    guard environment.number == closed.number else {
      throw LMDBError(
        .busy, operation: "open again", path: closed.path, detail: "it is open already")
    }
    do {
      try environment.reopenTables(of: closed)
    } catch {
      try environment.close()
      throw error
    }
    return environment
  }

  /// LMDB numbers tables in the order in which they are opened, so that order gives each its number.
  private func reopenTables(of closed: Environment) throws {
    let wanted = closed.tables.withLock { $0 }.sorted { $0.value.handle < $1.value.handle }
    do {
      try withTurn {
        try openingTables(ThreadState.current) { core in
          var opened: [String: OpenTable] = [:]
          for (name, _) in wanted { opened[name] = try openTable(name, core, 0) }
          return ((), opened)
        }
      }
    } catch let error as LMDBError where error.code == .tableMissing {
      for (name, table) in wanted {
        _ = try tableBase(
          name, hasDuplicates: table.flags & UInt32(MDB_DUPSORT) != 0,
          valueByteCount: table.flags & UInt32(MDB_DUPFIXED) != 0 ? table.valueByteCount : nil)
      }
    }
    try tables.withLock { tables in
      for (name, table) in wanted {
        guard let found = tables[name], found.handle == table.handle, found.flags == table.flags
        else {
          throw LMDBError(
            .incompatible, operation: "open again", path: path, table: name,
            detail: "it is another table than before")
        }
        tables[name]?.valueByteCount = table.valueByteCount
      }
    }
  }
}
