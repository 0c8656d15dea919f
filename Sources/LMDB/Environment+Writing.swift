internal import CLMDB
import Dispatch
import Foundation
import Synchronization

/// The `async` writes that wait for the writer's queue.
struct PendingWrites {
  var jobs: [WriteJob] = []
  var isScheduled = false
}

/// One `async` write: what it runs, and whom it tells.
struct WriteJob: Sendable {
  /// Runs the closure; what it returned is kept until `finish(nil)`.
  let run: @Sendable (inout WriteTransaction) throws -> Void
  /// Called once, after the commit or with what stopped it.
  let finish: @Sendable ((any Error)?) -> Void
}

extension Environment {
  /// How many waiting writes share one commit at most.
  static let groupCountMax = 512

  /// Runs `body` in a write transaction and returns what it returned once that is committed.
  ///
  /// Writes that arrive while a commit runs share the next one, each with its own result or error: a
  /// closure that throws undoes its own changes and no other's. Once begun it is not cancelled: it
  /// returns committed, or throws not committed.
  /// - Parameter body: may run more than once (the map may have to grow) and must have no effect
  ///   outside the transaction but its result.
  /// - Throws: `mapFull` at the ceiling, `diskFull`, `readOnly`, `closed`, what LMDB reports, and
  ///   what `body` throws.
  /// - Cost: one shared commit, two flushes of the disk with `.durable`.
  public func write<R: Sendable>(
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    try requireOwnProcess("write")
    let outcome = Outcome<R>()
    return try await withCheckedThrowingContinuation { continuation in
      submit(
        WriteJob(
          run: { transaction in
            let value = try body(&transaction)
            outcome.value.withLock { $0 = value }
          },
          finish: { error in
            if let error {
              continuation.resume(throwing: error)
            } else if let value = outcome.value.withLock({ $0 }) {
              continuation.resume(returning: value)
            } else {
              preconditionFailure("LMDB: a write was committed without its result")
            }
          }))
    }
  }

  /// Runs `body` in a write transaction of its own and returns once it is committed, blocking the
  /// calling thread. For tools, tests and threads that may block.
  ///
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
    return try queue.sync { try runAlone(body) }
  }

  private func submit(_ job: WriteJob) {
    let mustSchedule = pending.withLock { pending in
      pending.jobs.append(job)
      defer { pending.isScheduled = true }
      return !pending.isScheduled
    }
    if mustSchedule { queue.async { self.drain() } }
  }

  private func drain() {
    let (group, isMoreWaiting) = pending.withLock { pending in
      let group = Array(pending.jobs.prefix(Self.groupCountMax))
      pending.jobs.removeFirst(group.count)
      pending.isScheduled = !pending.jobs.isEmpty
      return (group, pending.isScheduled)
    }
    // Scheduled before the commit runs, so that blocking writes take their turn in between.
    if isMoreWaiting { queue.async { self.drain() } }
    commit(group)
  }

  /// Commits all jobs together; each learns its own outcome.
  private func commit(_ jobs: [WriteJob]) {
    guard jobs.count > 1 else {
      for job in jobs { commitAlone(job) }
      return
    }
    do {
      let failures = try unsafe untilItFits { transaction, context in
        try jobs.map { job in unsafe try runNested(job, in: transaction, context) }
      }
      for (job, failure) in zip(jobs, failures) { job.finish(failure) }
    } catch let error as LMDBError where error.code == .mapFull {
      // Together they do not fit under the ceiling; some may fit alone.
      for job in jobs { commitAlone(job) }
    } catch {
      for job in jobs { job.finish(error) }
    }
  }

  private func commitAlone(_ job: WriteJob) {
    do {
      try runAlone(job.run)
      job.finish(nil)
    } catch {
      job.finish(error)
    }
  }

  private func runAlone<R>(_ body: (inout WriteTransaction) throws -> R) throws -> R {
    try unsafe untilItFits { handle, context in
      var transaction = WriteTransaction(
        unsafe TransactionCore(handle: handle, environment: self), context)
      return try body(&transaction)
    }
  }

  /// Runs one job in a transaction nested in the group's, so that its failure is its own.
  /// - Returns: what the job threw, or nil.
  /// - Throws: what concerns the whole group.
  @unsafe private func runNested(
    _ job: WriteJob, in parent: OpaquePointer, _ context: WriteContext
  ) throws -> (any Error)? {
    if context.isMapFull { return nil }  // the group is about to be repeated
    var created: OpaquePointer?
    let result = unsafe mdb_txn_begin(handle, parent, 0, &created)
    guard result == 0, let nested = unsafe created else {
      throw LMDBError.from(result, operation: "mdb_txn_begin", path: path)
    }
    do {
      var transaction = WriteTransaction(
        unsafe TransactionCore(handle: nested, environment: self), context)
      try job.run(&transaction)
    } catch {
      unsafe mdb_txn_abort(nested)
      return error
    }
    if context.isMapFull {
      unsafe mdb_txn_abort(nested)
      return nil
    }
    let committed = unsafe mdb_txn_commit(nested)
    if committed == MDB_MAP_FULL { context.isMapFull = true }
    if committed != 0, committed != MDB_MAP_FULL {
      throw LMDBError.from(committed, operation: "mdb_txn_commit", path: path)
    }
    return nil
  }

  /// Runs `body` in a top transaction and commits; enlarges the map and runs it again as needed.
  private func untilItFits<R>(_ body: (OpaquePointer, WriteContext) throws -> R) throws -> R {
    while true {
      if let value = unsafe try attempt(body) { return value }
      if let error = growMap() { throw error }
    }
  }

  /// - Returns: nil when the map was too small; nothing was stored then.
  private func attempt<R>(_ body: (OpaquePointer, WriteContext) throws -> R) throws -> R? {
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
    for _ in 0..<3 {
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

/// Carries a result from the writer's queue to the task that waits for it.
private final class Outcome<R: Sendable>: Sendable {
  let value = Mutex<R?>(nil)
}
