internal import CLMDB
import Dispatch
import Foundation
import Synchronization

/// One LMDB environment: a directory with a data file, opened once per process however many hold it.
///
/// Reads run on any thread and never wait for the writer. Writes run one after the other; those that
/// arrive while a commit runs share the next one. The map grows by itself up to a ceiling. Corresponds to `MDB_env`.
@safe public final class Environment: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): `handle` is set once and used as LMDB allows (readers behind
  // `gate`, writers with the `turn`); all other mutable state is atomic, behind a mutex or used with
  // the turn only.

  /// The directory as it was given to the first open.
  public let path: String
  /// How it was opened.
  public let configuration: Configuration
  let fileID: EnvironmentRegistry.FileID
  /// Never given twice in a process: a table tells its environment by it.
  let number: UInt64

  let handle: OpaquePointer
  let gate = ReaderGate()
  let readerSlots: LockFile.Slots
  let turn = Mutex(WriterTurn())
  /// Signalled once for each count of writes that the thread with the turn waits for.
  let returned = DispatchSemaphore(value: 0)
  // Used with the turn to write only.
  var history = GroupHistory()
  var care = MapCare()
  var fileReserve = FileReserve()
  let tables = Mutex<[String: OpenTable]>([:])
  private let executor = Mutex<WriterExecutor?>(nil)
  private let commits = Atomic<UInt64>(0)
  let fork = ForkGeneration.current

  /// A table's number in this process, its flags in the file, and the size that its values have
  /// where one key has several of one size.
  struct OpenTable {
    var handle: UInt32
    var flags: UInt32
    var valueByteCount: Int?
  }

  /// Opens the environment in a directory, or returns the one this process has open.
  ///
  /// - Parameters:
  ///   - path: the directory; made with mode 0700 when access is `createOrWrite`.
  ///   - configuration: how it is opened; without effect where this process has it open already.
  /// - Throws: `missing`, `notADirectory`, `noPermission`; `damaged` and `versionMismatch` when the
  ///   data file is not what its head says (it is checked before it is mapped); `diskFull` (nothing
  ///   is left by halves: open it again when there is room); `lockMismatch` when other processes
  ///   have it open under another lock file; `networkFileSystem`; `outOfResources`.
  /// - Cost: about 0.1 ms when it exists. Corresponds to `mdb_env_open` with `MDB_NOTLS`.
  public static func open(
    at path: String, configuration: Configuration = Configuration()
  ) throws(LMDBError) -> Environment {
    try open(at: path, configuration: configuration, number: nextNumber())
  }

  /// - Parameter number: what it gets if it is not open yet; see ``open(again:)``.
  static func open(
    at path: String, configuration: Configuration, number: UInt64
  ) throws(LMDBError) -> Environment {
    let file = path + "/data.mdb"
    checkAhead(path, configuration)
    let environment = try EnvironmentRegistry.shared.environment(file: file, in: path) {
      (found: consuming DataFile?) throws(LMDBError) in
      if let found = found.take() {
        return try Environment(
          path: path, file: found, configuration: configuration, number: number)
      }
      try makeFile(file, in: path, configuration)
      guard let made = try DataFile(file, in: path) else {
        throw LMDBError(.missing, operation: "open", path: path)
      }
      return try Environment(
        path: path, file: made, configuration: configuration, number: number)
    }
    if configuration.isCheckedAtOpen { try environment.requireIntact() }
    return environment
  }

  /// Makes the data file, and the directory where there is none.
  private static func makeFile(
    _ file: String, in path: String, _ configuration: Configuration
  ) throws(LMDBError) {
    let numbers = FileNumbers(path: path)
    guard numbers != nil || errno == ENOENT else {
      throw LMDBError.from(errno, operation: "stat", path: path)
    }
    guard configuration.access == .createOrWrite else {
      throw LMDBError(.missing, operation: "open", path: path)
    }
    if numbers == nil {
      guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else {
        throw LMDBError.from(errno, operation: "mkdir", path: path)
      }
    }
    try FileSystem(of: path).requireLocal(path, configuration)
    try NewDataFile.make(file, in: path, configuration: configuration)
  }

  private init(
    path: String, file: borrowing DataFile, configuration: Configuration, number: UInt64
  ) throws(LMDBError) {
    self.path = path
    self.number = number
    self.configuration = configuration
    try FileSystem(of: path).requireLocal(path, configuration)
    let meta = try MetaPages(file, directory: path)
    if configuration.access != .read, meta.usedByteCount <= configuration.sealedByteCountMax {
      try Self.requireUnharmed(file.id, in: path)
    }
    var mapByteCount = configuration.mapSizeByteCount
    // A map that just fits the file would have no room for the next write.
    mapByteCount = max(mapByteCount, meta.mapByteCount, meta.usedByteCount / 4 * 5)
    mapByteCount = min(mapByteCount, max(configuration.mapSizeByteCountMax, meta.usedByteCount))
    let flags = Self.flags(for: configuration, at: path)
    let isLocking = flags & UInt32(MDB_NOLOCK) == 0
    // Without a lock file readers have no slots.
    let slotCount = isLocking ? try LockFile.reserve(in: path) : Int.max
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
      result = unsafe mdb_env_open(handle, path, flags, 0o600)
    }
    guard result == 0 else {
      // The handle must be closed after a failed open, too.
      unsafe mdb_env_close(handle)
      throw LMDBError.from(result, operation: "mdb_env_open", path: path)
    }
    do {
      unsafe try LockFile.claim(handle, in: path, isLocking: isLocking)
    } catch {
      unsafe mdb_env_close(handle)
      throw error
    }
    // LMDB opened the path a second time: it may have been another file by then.
    var descriptor: Int32 = -1
    unsafe mdb_env_get_fd(handle, &descriptor)
    guard let numbers = FileNumbers(descriptor: descriptor),
      EnvironmentRegistry.FileID(numbers) == file.id
    else {
      unsafe LockFile.disclaim(handle)
      unsafe mdb_env_close(handle)
      throw LMDBError(
        .missing, operation: "open", path: path, detail: "it was replaced while it was opened")
    }
    unsafe self.handle = handle
    fileID = file.id
    readerSlots = LockFile.Slots(reservedCount: slotCount)
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
      // Without a lock file nobody has it open, which the claims prove. A reader must not leave one
      // behind: made by another user it would keep the app out. On a file system that is read-only
      // LMDB would do without it, too.
      if unsafe access(LockFile.path(in: path), W_OK) != 0, errno == ENOENT || errno == EROFS {
        flags |= UInt32(MDB_NOLOCK)
      }
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
    if !isClosed, fork.isOurs { closeHandle(sealing: .max) }
  }

  /// Closes it for every holder: waits for the running transactions, then later calls throw `closed`.
  ///
  /// Without it the environment closes when its last holder lets go.
  /// - Throws: `busy` when a reader of this process has not ended after 30 seconds; it stays open.
  /// - Precondition: not called from inside one of its transactions.
  public func close() throws(LMDBError) { try close(patience: .seconds(30)) }

  /// The same with another patience.
  /// - Parameter sealing: up to how many bytes it is sealed where the time to close it is short; see
  ///   ``Configuration/sealedByteCountMax``, which holds, too.
  package func close(patience: Duration, sealing: Int = .max) throws(LMDBError) {
    try requireOwnProcess("close")
    let thread = ThreadState.current
    trapUnless(
      !thread.isWriting(self) && !thread.isReading(self),
      "an environment cannot be closed from inside one of its transactions (\(path))")
    let isDone = withTurn {
      isClosed
        || gate.exclusively(patience: patience) {
          closeHandle(sealing: sealing)
          return .closed
        }
    }
    guard isDone else { throw LMDBError(.busy, operation: "close", path: path) }
  }

  /// - Parameter sealing: up to how many bytes it is sealed; 0 where what is left behind may not be whole.
  func closeHandle(sealing: Int) {
    sealIfSmall(byteCountMax: sealing)
    EnvironmentRegistry.shared.close(fileID) {
      unsafe gate.takeAll { unsafe mdb_txn_abort($0) }
      unsafe LockFile.disclaim(handle)
      unsafe mdb_env_close(handle)
      readerSlots.close()
    }
  }

  /// Where writes are run that did not find the writer free; made on first use.
  ///
  /// An actor may share it, see ``WriterExecutor``.
  public var writer: WriterExecutor {
    executor.withLock { executor in
      if let executor { return executor }
      let made = WriterExecutor()
      executor = made
      return made
    }
  }

  /// Whether ``close()`` has ended.
  public var isClosed: Bool { gate.isClosed }

  /// How many write transactions this process has committed here: for tests and benchmarks.
  public var commitCount: UInt64 { commits.load(ordering: .relaxed) }

  /// How many writes wait for the turn: for tests.
  package var waitingWriteCount: Int { turn.withLock(\.waitingCount) }

  /// A transaction that changed nothing commits without writing and takes no number.
  func countCommit(_ number: UInt64, _ numbers: Statistics) {
    guard numbers.lastTransaction == number else { return }
    let before = commits.wrappingAdd(1, ordering: .relaxed).oldValue
    // From here on it says nothing any more; see ``Seal``.
    if before == 0, configuration.sealedByteCountMax > 0 { Seal.empty(in: path) }
  }

  /// Before anything that waits: in a forked child a lock or queue that a thread of the parent was
  /// inside of stays shut for ever.
  func requireOwnProcess(_ operation: String) throws(LMDBError) {
    guard fork.isOurs else { throw LMDBError(.forked, operation: operation, path: path) }
  }

  func requireUsable(_ operation: String) throws(LMDBError) {
    try requireOwnProcess(operation)
    if gate.isBroken { throw LMDBError(.broken, operation: operation, path: path) }
    if gate.isClosed { throw LMDBError(.closed, operation: operation, path: path) }
  }
}
