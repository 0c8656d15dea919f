internal import CLMDB
import Dispatch
import Foundation
import Synchronization

/// One LMDB environment: a directory with a data file, opened once per process however many hold it.
///
/// Reads run on any thread and never wait for the writer. Writes run one after the other on a queue
/// of the environment's own; `async` writes that arrive while a commit runs share the next one. The
/// map grows by itself up to a ceiling. Corresponds to `MDB_env`.
@safe public final class Environment: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): `handle` is set once and used as LMDB allows (readers behind
  // `gate`, writers on `queue`); all other mutable state is behind a mutex.

  /// The directory as it was given to the first open.
  public let path: String
  /// How it was opened.
  public let configuration: Configuration
  let fileID: EnvironmentRegistry.FileID
  /// Never given twice in a process: a table tells its environment by it.
  let number = Environment.nextNumber()

  let handle: OpaquePointer
  let gate = ReaderGate()
  let queue = DispatchQueue(label: "holdfast.lmdb.writer")
  let pending = Mutex(PendingWrites())
  private let tables = Mutex<[String: OpenTable]>([:])
  private let idleReaders = IdleReaders()
  private let flags = Mutex(Flags())
  private let forkGeneration = ForkGeneration.current

  /// A table's number in this process, and its flags in the file.
  private struct OpenTable {
    var handle: UInt32
    var flags: UInt32
  }

  private struct Flags {
    var isClosed = false
    var isBroken = false
    var commitCount: UInt64 = 0
  }

  /// Opens the environment in a directory, or returns the one this process has open.
  ///
  /// - Parameter path: the directory; made with mode 0700 when access is `createOrWrite`.
  /// - Throws: `missing`, `notADirectory`, `noPermission`; `damaged` and `versionMismatch` when the
  ///   data file is not what its head says (it is checked before it is mapped); `outOfResources`.
  /// - Cost: about 0.1 ms when it exists. Corresponds to `mdb_env_open` with `MDB_NOTLS`.
  public static func open(
    at path: String, configuration: Configuration = Configuration()
  ) throws(LMDBError) -> Environment {
    if let numbers = FileNumbers(path: path) {
      guard numbers.isDirectory else {
        throw LMDBError(.notADirectory, operation: "open", path: path)
      }
    } else if errno == ENOENT, configuration.access == .createOrWrite {
      guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else {
        throw LMDBError.from(errno, operation: "mkdir", path: path)
      }
    } else {
      throw LMDBError.from(errno, operation: "stat", path: path)
    }
    let file = path + "/data.mdb"
    return try EnvironmentRegistry.shared.environment(file: file) { () throws(LMDBError) in
      try Environment(path: path, file: file, configuration: configuration)
    }
  }

  private init(path: String, file: String, configuration: Configuration) throws(LMDBError) {
    self.path = path
    self.configuration = configuration
    var mapByteCount = configuration.mapSizeByteCount
    if unsafe access(file, F_OK) == 0 {
      let meta = try MetaPages(file: file, directory: path)
      // A map that just fits the file would have no room for the next write.
      mapByteCount = max(mapByteCount, meta.mapByteCount, meta.usedByteCount / 4 * 5)
    } else if configuration.access != .createOrWrite {
      throw LMDBError(.missing, operation: "open", path: path)
    }
    var created: OpaquePointer?
    var result = unsafe mdb_env_create(&created)
    guard result == 0, let handle = unsafe created else {
      throw LMDBError.from(result, operation: "mdb_env_create", path: path)
    }
    result = unsafe mdb_env_set_mapsize(handle, mapByteCount)
    if result == 0 {
      result = unsafe mdb_env_set_maxdbs(handle, UInt32(configuration.tableCountMax))
    }
    if result == 0 {
      result = unsafe mdb_env_set_maxreaders(handle, UInt32(configuration.readerCountMax))
    }
    if result == 0 {
      result = unsafe mdb_env_open(handle, path, Self.flags(for: configuration, at: path), 0o600)
    }
    guard result == 0 else {
      // The handle must be closed after a failed open, too.
      unsafe mdb_env_close(handle)
      throw LMDBError.from(result, operation: "mdb_env_open", path: path)
    }
    guard let fileID = EnvironmentRegistry.FileID(file: file) else {
      // Renamed or removed meanwhile; the registry's lock is held, so nobody has opened it again.
      let number = errno
      unsafe mdb_env_close(handle)
      throw LMDBError.from(number, operation: "stat", path: path)
    }
    unsafe self.handle = handle
    self.fileID = fileID
    _ = hasClearedDeadReaders()
  }

  private static func nextNumber() -> UInt64 {
    numbersGiven.wrappingAdd(1, ordering: .relaxed).newValue
  }
  private static let numbersGiven = Atomic<UInt64>(0)

  private static func flags(for configuration: Configuration, at path: String) -> UInt32 {
    // Tasks hop between threads, so reader slots must not be tied to them.
    var flags = UInt32(MDB_NOTLS)
    if configuration.access == .read {
      flags |= UInt32(MDB_RDONLY)
      // Without a lock file nobody has it open. A reader must not leave one behind: made by another
      // user it would keep the app out.
      if unsafe access(path + "/lock.mdb", F_OK) != 0 { flags |= UInt32(MDB_NOLOCK) }
    }
    switch configuration.durability {
    case .durable: break
    case .mayLoseLastCommit: flags |= UInt32(MDB_NOMETASYNC)
    case .unsafeWithoutSync: flags |= UInt32(MDB_NOSYNC)
    }
    return flags
  }

  deinit {
    // In a forked child the handle belongs to the parent.
    if !isClosed, forkGeneration == ForkGeneration.current { closeHandle() }
  }

  /// Closes it for every holder: waits for the running transactions, then later calls throw `closed`.
  ///
  /// Without it the environment closes when its last holder lets go.
  /// - Throws: `busy` when a reader of this process has not ended after 30 seconds; it stays open.
  /// - Precondition: not called from inside one of its transactions.
  public func close() throws(LMDBError) {
    let thread = ThreadState.current
    precondition(
      !thread.isWriting(self) && !thread.isReading(self),
      "LMDB: an environment cannot be closed from inside one of its transactions (\(path))")
    let outcome: Bool? = queue.sync {
      if isClosed { return true }
      return gate.exclusively(timeout: 30) { isClosing in
        isClosing = true
        flags.withLock { $0.isClosed = true }
        closeHandle()
        return true
      }
    }
    guard outcome != nil else { throw LMDBError(.busy, operation: "close", path: path) }
  }

  private func closeHandle() {
    EnvironmentRegistry.shared.close(fileID) {
      while let reader = unsafe idleReaders.take() { unsafe mdb_txn_abort(reader) }
      unsafe mdb_env_close(handle)
    }
  }

  /// Whether ``close()`` has ended.
  public var isClosed: Bool { flags.withLock { $0.isClosed } }

  /// How many write transactions this process has committed here: for tests and benchmarks.
  public var commitCount: UInt64 { flags.withLock { $0.commitCount } }

  /// A transaction that changed nothing commits without writing and takes no number.
  func countCommit(ifLast number: UInt64) {
    guard numbers().lastTransaction == number else { return }
    flags.withLock { $0.commitCount += 1 }
  }

  func requireUsable(_ operation: String) throws(LMDBError) {
    guard forkGeneration == ForkGeneration.current else {
      throw LMDBError(.forked, operation: operation, path: path)
    }
    let (isClosed, isBroken) = flags.withLock { ($0.isClosed, $0.isBroken) }
    if isBroken { throw LMDBError(.broken, operation: operation, path: path) }
    if isClosed { throw LMDBError(.closed, operation: operation, path: path) }
  }
}

// MARK: - Reading

extension Environment {
  /// Lends a snapshot to `body` and returns what it returns.
  ///
  /// The snapshot is that of the last commit when `body` begins; writers go on meanwhile. Keep it
  /// short: pages that it sees are not reused until it ends.
  /// - Throws: `closed`, `readersFull`, what LMDB reports, and what `body` throws.
  /// - Cost: well under a microsecond. Corresponds to `mdb_txn_begin` with `MDB_RDONLY`.
  public func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    let thread = ThreadState.current
    let reader = unsafe try enterAsReader(isNested: thread.isReading(self), isOnQueue: false)
    defer { gate.leave() }
    thread.beginReading(self)
    defer {
      thread.endReading()
      unsafe retire(reader)
    }
    return try body(ReadTransaction(unsafe TransactionCore(handle: reader, environment: self)))
  }

  /// Passes the gate and begins a snapshot. The caller retires it, then leaves the gate.
  /// - Parameter isOnQueue: the caller runs on the writer's queue.
  /// - Throws: with the gate left.
  @unsafe func enterAsReader(
    isNested: Bool, isOnQueue: Bool
  ) throws(LMDBError) -> OpaquePointer {
    var result: Int32 = 0
    for _ in 0..<4 {
      guard gate.enter(isNested: isNested) else {
        throw LMDBError(.closed, operation: "read", path: path)
      }
      do {
        try requireUsable("read")
      } catch {
        gate.leave()
        throw error
      }
      if let reader = unsafe beginRead(&result) { return unsafe reader }
      gate.leave()
      // Moving the map needs every reader out: a nested one's outer reader cannot be.
      guard result == MDB_MAP_RESIZED, !isNested else { break }
      let error = isOnQueue ? adoptMapSize() : queue.sync { adoptMapSize() }
      if let error { throw error }
    }
    throw LMDBError.from(result, operation: "mdb_txn_begin", path: path)
  }

  /// A snapshot, or nil and why not.
  @unsafe private func beginRead(_ result: inout Int32) -> OpaquePointer? {
    if let reader = unsafe idleReaders.take() {
      result = unsafe mdb_txn_renew(reader)
      if result == 0 { return unsafe reader }
      unsafe mdb_txn_abort(reader)
      return nil
    }
    var created: OpaquePointer?
    result = unsafe mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &created)
    if result == MDB_READERS_FULL, hasClearedDeadReaders() {
      result = unsafe mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &created)
    }
    return result == 0 ? unsafe created : nil
  }

  /// Frees the slots of readers whose process has died, and with them the pages that they kept.
  /// - Returns: whether there were any.
  func hasClearedDeadReaders() -> Bool {
    var dead: Int32 = 0
    return unsafe mdb_reader_check(handle, &dead) == 0 && dead > 0
  }

  @unsafe private func retire(_ reader: OpaquePointer) {
    unsafe mdb_txn_reset(reader)
    if !(unsafe idleReaders.keep(reader)) { unsafe mdb_txn_abort(reader) }
  }
}

// MARK: - The map

extension Environment {
  /// Takes over the size that another process gave the map. On the writer's queue only.
  /// - Returns: what stopped it.
  func adoptMapSize() -> LMDBError? {
    resize(to: 0)
  }

  /// Doubles the map, up to its ceiling. On the writer's queue, with no write transaction open.
  ///
  /// A reader that was killed with its snapshot keeps every page since: clearing it may be all that
  /// is needed, so the transaction is tried again before the map grows.
  /// - Returns: what stopped it.
  func growMap() -> LMDBError? {
    if hasClearedDeadReaders() { return nil }
    let old = numbers().mapByteCount
    let ceiling = configuration.mapSizeByteCountMax
    guard old < ceiling else {
      return LMDBError(
        .mapFull, rawCode: MDB_MAP_FULL, operation: "grow", path: path,
        detail: "map \(old) bytes, ceiling \(ceiling)")
    }
    return resize(to: min(old * 2, ceiling))
  }

  private func resize(to byteCount: Int) -> LMDBError? {
    let outcome: LMDBError?? = gate.exclusively(timeout: 30) { isClosing in
      if isClosed { return LMDBError(.closed, operation: "resize", path: path) }
      let result = unsafe mdb_env_set_mapsize(handle, byteCount)
      guard result != 0 else { return nil }
      // A failed resize leaves the environment unmapped, and the next transaction would crash: it is
      // closed here, so that it can be opened again.
      flags.withLock {
        $0.isBroken = true
        $0.isClosed = true
      }
      isClosing = true
      closeHandle()
      return LMDBError.from(result, operation: "mdb_env_set_mapsize", path: path)
    }
    guard let outcome else { return LMDBError(.busy, operation: "resize", path: path) }
    return outcome
  }

  /// The map's size now, in bytes; 0 once it is closed.
  public var mapByteCount: Int {
    guard gate.enter(isNested: ThreadState.current.isReading(self)) else { return 0 }
    defer { gate.leave() }
    return isClosed ? 0 : numbers().mapByteCount
  }
}

// MARK: - Tables and checks

extension Environment {
  /// Opens a named table, made if the environment may be written. Cheap after the first time.
  /// - Throws: `tableMissing` when it is not there and may not be made; `tablesFull`.
  /// - Precondition: not called from inside one of this environment's transactions.
  /// - Corresponds to `mdb_dbi_open`; the handle stays open as long as the environment.
  public func table<K, V>(
    _ name: String, key: K.Type, value: V.Type
  ) throws -> Table<K, V> {
    Table(base: try tableBase(name, hasDuplicates: false, hasFixedSize: false))
  }

  /// The table of that name and kind.
  /// - Throws: `incompatible` when it is of another kind; see ``table(_:key:value:)``.
  func tableBase(
    _ name: String, hasDuplicates: Bool, hasFixedSize: Bool
  ) throws -> TableBase {
    let flags =
      (hasDuplicates ? UInt32(MDB_DUPSORT) : 0) | (hasFixedSize ? UInt32(MDB_DUPFIXED) : 0)
    func base(_ known: OpenTable) throws(LMDBError) -> TableBase {
      guard known.flags == flags else {
        throw LMDBError(
          .incompatible, operation: "mdb_dbi_open", path: path, table: name,
          detail: "it has flags \(known.flags), not \(flags)")
      }
      return TableBase(
        name: name, handle: known.handle, environment: number, hasDuplicates: hasDuplicates)
    }
    if let known = tables.withLock({ $0[name] }) { return try base(known) }
    let thread = ThreadState.current
    precondition(
      !thread.isWriting(self) && !thread.isReading(self),
      "LMDB: open table \(name) before the transaction that uses it (\(path))")
    let opened: OpenTable
    if configuration.access == .read {
      // Handles may be opened by one transaction of a process at a time: the queue sees to it.
      opened = try queue.sync { try openExistingTable(name) }
    } else {
      opened = try writeBlocking { transaction in
        try openTable(name, transaction.core, UInt32(MDB_CREATE) | flags)
      }
    }
    tables.withLock { $0[name] = opened }
    return try base(opened)
  }

  /// A handle opened by a read transaction lives on only if that transaction is committed.
  private func openExistingTable(_ name: String) throws(LMDBError) -> OpenTable {
    let reader = unsafe try enterAsReader(isNested: false, isOnQueue: true)
    defer { gate.leave() }
    do {
      let core = unsafe TransactionCore(handle: reader, environment: self)
      let opened = try openTable(name, core, 0)
      unsafe try check(mdb_txn_commit(reader), "mdb_txn_commit", name)
      return opened
    } catch {
      if error.operation == "mdb_dbi_open" { unsafe mdb_txn_abort(reader) }
      throw error
    }
  }

  private func openTable(
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
    return OpenTable(handle: table, flags: found)
  }

  /// The names of all tables, in byte order. Corresponds to reading the unnamed database.
  /// - Precondition: not called from inside one of this environment's transactions.
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

  private func mainTable() throws -> Table<TextCodec, BytesCodec> {
    // LMDB keeps the unnamed database under a number of its own; no flag is needed to open it.
    Table(base: TableBase(name: "", handle: 1, environment: number))
  }

  func requireOwn(_ table: TableBase) {
    precondition(
      table.environment == number,
      "LMDB: table \(table.name) belongs to another environment than \(path)")
  }

  func check(_ result: Int32, _ operation: String, _ table: String? = nil) throws(LMDBError) {
    guard result != 0 else { return }
    throw LMDBError.from(result, operation: operation, path: path, table: table)
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

/// Counts the forks behind this process, so that a child never uses its parent's environments.
enum ForkGeneration {
  private static let counter: Atomic<Int> = {
    let result = pthread_atfork(nil, nil) { ForkGeneration.increment() }
    precondition(result == 0, "LMDB: pthread_atfork failed with \(result)")
    return Atomic(0)
  }()

  static var current: Int { counter.load(ordering: .relaxed) }
  private static func increment() { counter.wrappingAdd(1, ordering: .relaxed) }
}
