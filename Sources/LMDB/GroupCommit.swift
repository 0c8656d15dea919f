internal import CLMDB
import Foundation

/// How the last commits of several writes went; used with the turn to write.
struct GroupHistory {
  /// So many commits to come give each write a nested transaction.
  var nestedCommits = 0
  /// Who may come back behind the last commit.
  var returning = ReturningWriters()
}

extension Environment {
  /// How many waiting writes share one commit at most.
  static let groupCountMax = 512
  /// How long the closures of one commit run at most before it begins; one closure may take longer.
  static let groupDuration = Duration.milliseconds(5)
  /// A commit with a closure that threw is repeated with nested transactions, and so many more
  /// have them from the start.
  static let nestedCommitCount = 16

  /// Commits jobs together; each learns its own outcome. With the turn to write.
  /// - Returns: those that the commit had no time for; they have not run.
  func commit(_ jobs: [WriteJob]) -> ArraySlice<WriteJob> {
    guard jobs.count > 1 else {
      for job in jobs where job.begin() { commitAlone(job) }
      return []
    }
    do {
      if history.nestedCommits > 0 {
        history.nestedCommits -= 1
        return try commitNested(jobs)
      }
      if let rest = try commitFlat(jobs) { return rest }
      // One of them threw, and what it had changed cannot be taken out: all of it was undone.
      history.nestedCommits = Self.nestedCommitCount
      return try commitNested(jobs)
    } catch let error as LMDBError
      where error.code == .mapFull || error.code == .diskFull || error.rawCode == MDB_BAD_TXN
    {
      // Together they do not fit; some may fit alone, and those that drain have room of their own.
      // Or one closure went on after an error that had ended its own nested transaction: LMDB ends
      // the one around it with that.
      for job in jobs where job.begin() { commitAlone(job) }
    } catch {
      for job in jobs where job.begin() { job.finish(error) }
    }
    return []
  }

  /// All in one transaction: the fast way, as long as none throws.
  /// - Returns: those that there was no time for; nil when one threw, and nothing is stored then.
  private func commitFlat(_ jobs: [WriteJob]) throws -> ArraySlice<WriteJob>? {
    struct Undone: Error {}
    var end = 0
    do {
      try unsafe untilItFits(Self.purpose(of: jobs)) { handle, context in
        var transaction = WriteTransaction(
          unsafe TransactionCore(handle: handle, environment: self), context)
        end = try runInTime(jobs) { job in
          context.beginNext()
          do { try job.run(&transaction) } catch { throw Undone() }
        }
      }
    } catch is Undone {
      return nil
    } catch let error as LMDBError where error.rawCode == MDB_BAD_TXN {
      // A closure went on after an error that had ended the transaction.
      return nil
    }
    for job in jobs[..<end] where job.begin() { job.finish(nil) }
    return jobs[end...]
  }

  /// Each in a transaction nested in the group's, so that its failure is its own.
  private func commitNested(_ jobs: [WriteJob]) throws -> ArraySlice<WriteJob> {
    var failures: [(any Error)?] = []
    var end = 0
    try unsafe untilItFits(Self.purpose(of: jobs)) { transaction, context in
      failures = Array(repeating: nil, count: jobs.count)
      var index = 0
      end = try runInTime(jobs) { job in
        while jobs[index] !== job { index += 1 }
        failures[index] = unsafe try runNested(job, in: transaction, context)
      }
    }
    for index in 0..<end where jobs[index].begin() { jobs[index].finish(failures[index]) }
    return jobs[end...]
  }

  /// Runs jobs until the commit's time is over, cancelled ones left out.
  /// - Returns: the index behind the last one that ran.
  private func runInTime(_ jobs: [WriteJob], _ run: (WriteJob) throws -> Void) rethrows -> Int {
    let deadline = ContinuousClock.now + Self.groupDuration
    for index in jobs.indices {
      // Asking the clock costs as much as a small write.
      if index > 0, index & 15 == 0, ContinuousClock.now >= deadline { return index }
      if jobs[index].begin() { try run(jobs[index]) }
    }
    return jobs.count
  }

  /// Those that drain get their own room only without those that store.
  private static func purpose(of jobs: [WriteJob]) -> WritePurpose {
    jobs.allSatisfy { $0.purpose == .draining } ? .draining : .storing
  }

  private func commitAlone(_ job: WriteJob) {
    do {
      try runAlone(job.purpose) { try job.run(&$0) }
      job.finish(nil)
    } catch {
      job.finish(error)
    }
  }

  /// - Returns: what the job threw, or nil.
  /// - Throws: what concerns the whole group.
  @unsafe private func runNested(
    _ job: WriteJob, in parent: OpaquePointer, _ context: WriteContext
  ) throws -> (any Error)? {
    if context.isMapFull { return nil }  // the group is about to be repeated
    // What the one before has left may have been undone.
    context.forget()
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
    switch committed {
    case 0: return nil
    case MDB_MAP_FULL:
      context.isMapFull = true
      return nil
    default:
      throw LMDBError.from(committed, operation: "mdb_txn_commit", path: path)
    }
  }
}
