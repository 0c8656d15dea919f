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
  /// - Parameter body: may run more than once (the map may have to grow, or another write of the same
  ///   commit threw) and must have no effect outside the transaction but its result. It should not
  ///   block: it keeps the other writes waiting.
  /// - Throws: `CancellationError`; `mapFull` at the ceiling, `diskFull`, `readOnly`, `closed`, what
  ///   LMDB reports, and what `body` throws. What the commit reports, every write in it throws.
  /// - Cost: one shared commit, two flushes of the disk with `.durable`.
  public func write<R: Sendable>(
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    try requireOwnProcess("write")
    let job = SuspendedWrite(body)
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
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    try requireOwnProcess("write")
    let job = SuspendedWrite(body)
    return try await withCheckedThrowingContinuation { continuation in
      if job.wait(continuation) { submit(job) }
    }
  }

  /// Runs `body` in a write transaction and returns once it is committed, blocking the calling
  /// thread. For tools, tests, actors on the ``writer`` and threads that may block.
  ///
  /// A write that comes alone runs on the calling thread. One that comes while another runs shares
  /// the next commit with all that wait, as with the `async` form; its closure may then run on the
  /// thread of another of them.
  /// - Parameter body: as for the `async` form, it may run more than once.
  /// - Precondition: not inside a transaction of this environment on the same thread: LMDB would
  ///   hang for ever, so it traps.
  /// - Throws: as the `async` form.
  @available(*, noasync, message: "use `try await write`, which does not block a task's thread")
  public func write<R>(_ body: (inout WriteTransaction) throws -> R) throws -> R {
    try writeBlocking(body)
  }

  /// The blocking write, for callers of this package that run on a queue of their own.
  package func writeBlocking<R>(_ body: (inout WriteTransaction) throws -> R) throws -> R {
    try requireOwnProcess("write")
    let thread = ThreadState.current
    trapUnless(
      !thread.isWriting(self), "a write inside a write of one environment (\(path))")
    trapUnless(
      !thread.isReading(self),
      "a write inside a read of one environment (\(path)); end the read first")
    if turn.withLock({ $0.takeIfFree() }) {
      defer { passTurn() }
      return try runAlone(.storing, body)
    }
    // Inside a transaction of another environment this thread may not run other writes, which might
    // use that environment, too.
    guard thread.isOutside else { return try withTurn { try runAlone(.storing, body) } }
    return try withoutActuallyEscaping(body) { body in
      var value: R?
      let job = BlockedGroupWrite { value = try body(&$0) }
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
  /// A map that grew is at least twice as large, and a dead reader is cleared once, so this ends.
  @unsafe func untilItFits<R>(
    _ purpose: WritePurpose, _ body: (OpaquePointer, WriteContext) throws -> R
  ) throws -> R {
    while true {
      if let value = unsafe try attempt(body) { return value }
      if let error = growMap() { throw error }
    }
  }

  /// - Returns: nil when the map was too small; nothing was stored then.
  @unsafe private func attempt<R>(_ body: (OpaquePointer, WriteContext) throws -> R) throws -> R? {
    try requireUsable("write")
    let transaction = unsafe try beginWrite()
    let thread = ThreadState.current
    unsafe thread.enter(self)
    defer { thread.leave() }
    let context = WriteContext()
    let value: R
    do {
      value = unsafe try body(transaction, context)
    } catch {
      unsafe mdb_txn_abort(transaction)
      if context.isMapFull { return nil }
      throw error
    }
    if context.isMapFull {
      unsafe mdb_txn_abort(transaction)
      return nil
    }
    let number = unsafe UInt64(mdb_txn_id(transaction))
    // A commit frees the handle whatever it answers: it must never be aborted after it.
    let result = unsafe mdb_txn_commit(transaction)
    if result == MDB_MAP_FULL { return nil }
    try check(result, "mdb_txn_commit")
    countCommit(ifLast: number)
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
    // LMDB answers EACCES to a write in an environment that was opened for reading.
    if result == EACCES, configuration.access == .read { result = EROFS }
    throw LMDBError.from(result, operation: "mdb_txn_begin", path: path)
  }
}
