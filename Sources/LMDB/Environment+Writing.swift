internal import CLMDB
import Foundation
import Synchronization

extension Environment {
  /// Runs `body` in a write transaction and returns what it returned once that is committed.
  ///
  /// Writes that arrive while a commit runs share the next one, up to 512 of them, each with its own
  /// result or error: a closure that throws undoes its own changes and no other's.
  ///
  /// A cancelled task's write that has not begun is dropped. Once begun it is not cancelled: it
  /// returns committed, or throws not committed.
  /// - Parameter purpose: ``WritePurpose/draining`` for a write that frees more than it stores: it goes
  ///   through at the ceiling and on a full disk.
  /// - Parameter body: may run more than once (the map may have to grow, or another write of the same
  ///   commit threw) and must have no effect outside the transaction but its result. It should not
  ///   block: it keeps the other writes waiting.
  /// - Throws: `CancellationError`; `mapFull` at the ceiling, `diskFull`, `busy` when a reader of this
  ///   process kept the map from growing for 30 seconds, `readOnly`, `closed`, what
  ///   LMDB reports, and what `body` throws. What the commit reports, every write in it throws.
  /// - Cost: one shared commit, two flushes of the disk with `.durable`.
  public func write<R: Sendable>(
    for purpose: WritePurpose = .storing,
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    try requireOwnProcess("write")
    let job = SuspendedWrite(purpose, body)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        if job.wait(continuation) { submit(job) }
      }
    } onCancel: {
      job.cancel()
    }
  }

  /// The same, but it is not dropped when its task is cancelled: for what must be done to the end.
  package func writeIgnoringCancellation<R: Sendable>(
    for purpose: WritePurpose = .storing,
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    try requireOwnProcess("write")
    let job = SuspendedWrite(purpose, body)
    return try await withCheckedThrowingContinuation { continuation in
      if job.wait(continuation) { submit(job) }
    }
  }

  /// Runs `body` in a write transaction and returns once it is committed, blocking the calling
  /// thread. For tools, tests, actors on the ``writer`` and threads that may block.
  ///
  /// A write that comes alone runs on the calling thread. One that comes while another runs shares
  /// the next commit with all that wait, as with the `async` form; its closure may then run on the
  /// thread of another of them, so it must not take a lock that its caller holds.
  ///
  /// Within a write of another environment it is allowed. Two threads that do so in opposite order
  /// wait for each other for ever: take environments in one order.
  /// - Parameter purpose: as for the `async` form.
  /// - Parameter body: as for the `async` form, it may run more than once.
  /// - Precondition: not inside a transaction of this environment on the same thread: LMDB would
  ///   hang for ever, so it traps.
  /// - Throws: as the `async` form.
  @available(*, noasync, message: "use `try await write`, which does not block a task's thread")
  public func write<R>(
    for purpose: WritePurpose = .storing, _ body: (inout WriteTransaction) throws -> R
  ) throws -> R {
    try writeBlocking(for: purpose, body)
  }

  /// The blocking write, for callers of this package that run on a queue of their own.
  package func writeBlocking<R>(
    for purpose: WritePurpose = .storing, _ body: (inout WriteTransaction) throws -> R
  ) throws -> R {
    try requireOwnProcess("write")
    let thread = ThreadState.current
    trapUnless(
      !thread.isWriting(self), "a write inside a write of one environment (\(path))")
    trapUnless(
      !thread.isReading(self),
      "a write inside a read of one environment (\(path)); end the read first")
    if turn.withLock({ $0.takeIfFree() }) {
      defer { passTurn() }
      return try runAlone(purpose, body)
    }
    // Inside a transaction of another environment this thread may not run other writes, which might
    // use that environment, too.
    guard thread.isOutside else { return try withTurn { try runAlone(purpose, body) } }
    return try withoutActuallyEscaping(body) { body in
      var value: R?
      let job = BlockedGroupWrite(purpose) { value = try body(&$0) }
      submitAndWait(job)
      if let failure = job.failure { throw failure }
      guard let value else {
        preconditionFailure("LMDB: a write was committed without its result")
      }
      return value
    }
  }

  func runAlone<R>(
    _ purpose: WritePurpose, _ body: (inout WriteTransaction) throws -> R
  ) throws -> R {
    try unsafe untilItFits(purpose) { handle, context in
      var transaction = WriteTransaction(
        unsafe TransactionCore(handle: handle, environment: self), context)
      return try body(&transaction)
    }
  }

  /// Runs `body` in a top transaction and commits; enlarges the map and runs it again as needed.
  ///
  /// A write that only deletes counts as draining when the ceiling or a full disk is in its way.
  ///
  /// A map that grew is at least twice as large, and a dead reader is cleared once, so this ends.
  @unsafe func untilItFits<R>(
    _ purpose: WritePurpose, _ body: (OpaquePointer, WriteContext) throws -> R
  ) throws -> R {
    var purpose = purpose
    var mustNotStore = false
    while true {
      let context = WriteContext()
      if let value = unsafe try attempt(purpose, context, mustNotStore, body) { return value }
      if purpose == .storing, !context.hasStored,
        numbers().mapByteCount >= configuration.mapSizeByteCountMax
      {
        purpose = .draining
        mustNotStore = true
      }
      if let error = growMap(for: purpose) { throw error }
    }
  }

  /// - Returns: nil when the map was too small; nothing was stored then.
  @unsafe private func attempt<R>(
    _ purpose: WritePurpose, _ context: WriteContext, _ mustNotStore: Bool,
    _ body: (OpaquePointer, WriteContext) throws -> R
  ) throws -> R? {
    try requireUsable("write")
    guard configuration.access != .read else {
      throw LMDBError(.readOnly, rawCode: EROFS, operation: "mdb_txn_begin", path: path)
    }
    if purpose == .storing { try lowerMapToCeiling() }
    let transaction = unsafe try beginWrite()
    let thread = ThreadState.current
    let value: R
    var lackOfRoom: LMDBError?
    do {
      do throws(LMDBError) {
        try keepFileReserve(purpose)
      } catch {
        guard error.code == .diskFull else { throw error }
        lackOfRoom = error
      }
      let room = purpose == .storing ? unsafe try CeilingRoom(self, transaction) : nil
      unsafe thread.enter(self)
      defer { thread.leave() }
      value = unsafe try body(transaction, context)
      // One that only deletes counts as draining here, too.
      if context.hasStored, let lackOfRoom { throw lackOfRoom }
      if context.hasStored, !context.isMapFull { unsafe try room?.check(self, transaction) }
    } catch {
      unsafe mdb_txn_abort(transaction)
      if context.isMapFull { return nil }
      throw error
    }
    if context.isMapFull {
      unsafe mdb_txn_abort(transaction)
      return nil
    }
    if mustNotStore, context.hasStored {
      unsafe mdb_txn_abort(transaction)
      throw LMDBError(.mapFull, rawCode: MDB_MAP_FULL, operation: "write", path: path)
    }
    let number = unsafe UInt64(mdb_txn_id(transaction))
    // A commit frees the handle whatever it answers: it must never be aborted after it.
    let result = unsafe mdb_txn_commit(transaction)
    if result == MDB_MAP_FULL { return nil }
    try check(result, "mdb_txn_commit")
    let numbers = numbers()
    countCommit(number, numbers)
    careForMap(numbers)
    return value
  }

  @unsafe private func beginWrite() throws(LMDBError) -> OpaquePointer {
    var result: Int32 = 0
    for _ in 0..<Self.adoptionCountMax {
      var created: OpaquePointer?
      result = unsafe mdb_txn_begin(handle, nil, 0, &created)
      if result == 0, let transaction = unsafe created { return unsafe transaction }
      guard result == MDB_MAP_RESIZED else { break }
      if let error = adoptMapSize() { throw error }
    }
    if result == MDB_PANIC { giveUp() }
    throw LMDBError.from(result, operation: "mdb_txn_begin", path: path)
  }

  /// LMDB could not write a meta page once and refuses everything since: closed, so that opening it
  /// again gives a new one. Where a long reader stands in the way the next write tries again.
  private func giveUp() {
    _ = gate.exclusively(patience: .milliseconds(100)) {
      closeHandle(sealing: 0)
      return .broken
    }
  }
}
