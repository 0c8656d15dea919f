import Foundation
import HubProtocol
import ProfileStore

/// How a pass ended.
struct PassEnd {
  let report: SyncReport
  /// What the hub announced in it.
  let limits: HubLimits?
  /// The records that the hub wants later.
  let deferred: Set<RecordID>
}

/// What a pass was asked for.
struct PassOrder {
  let account: VerifiedAccount
  let session: (any AccountSession)?
  let goal: PassGoal
  let hasClosure: Bool
  var appPosition: BatchPosition?
  let waiting: PassWait
  let resolve: ConflictResolver?
  let progress: ProgressObserver?
  /// Records of which nothing is sent: the hub has put them off, and their pause is not over.
  var waitingRecords: Set<RecordID> = []
}

extension Profile {
  /// Runs one pass when its turn has come.
  func pass(
    _ order: PassOrder, _ apply: PassRunner.Apply
  ) async throws -> PassEnd {
    try requireOutside()
    let session = order.session ?? self.session
    try requireOwner(order.account, session)
    _ = try registry.transport()
    let waiting = Stopwatch(registry.clock)
    let turn = try await turn(order.waiting)
    defer { turn.end() }
    let waited = waiting.elapsed()
    // The session may have changed while this pass waited for its turn.
    let signedIn = try requireOwner(order.account, session)
    try await registry.noticeSignIn(of: order.account, in: session)
    var caller = try registry.caller(for: order.account, in: area, session, signedIn)
    caller.passes = area.passes
    let runner = try PassRunner(
      area: area, policy: registry.policy, caller: caller, goal: order.goal,
      hasClosure: order.hasClosure, appPosition: order.appPosition, resolver: order.resolve,
      progress: order.progress, waiting: order.waitingRecords)
    let time = Stopwatch(registry.clock)
    let board = EventBoard.of(area.signals)
    board.post(.passBegan)
    do {
      let report = try await runner.run(apply)
      try await note(nil)
      registry.observer.passEnded(
        PassMeasurement(
          report: report, failure: nil, storeFailure: nil, stoppedByApp: false,
          wasCancelled: false, waited: waited, duration: time.elapsed()))
      board.post(.passEnded(report))
      area.signals.passes.raise()
      return PassEnd(
        report: report, limits: runner.hub?.limits, deferred: runner.deferred)
    } catch let stopped {
      let isOwn = !runner.hasAppThrown
      let wasCancelled = stopped is CancellationError
      let failure = isOwn ? (stopped as? SyncError)?.code : nil
      registry.observer.passEnded(
        PassMeasurement(
          report: runner.report, failure: failure,
          storeFailure: isOwn ? (stopped as? StoreError)?.code : nil,
          stoppedByApp: !isOwn && !wasCancelled, wasCancelled: wasCancelled, waited: waited,
          duration: time.elapsed()))
      if failure == .accountMismatch { reportSecurityEvent() }
      board.post(.passStopped(failure, message: Self.message(of: stopped)))
      // What stopped the pass counts, also where it cannot be noted for a person.
      do { try await note(stopped) } catch { throw stopped }
      throw stopped
    }
  }

  func reportSecurityEvent() {
    registry.observer.securityEvent()
    EventBoard.of(area.signals).post(.securityEvent)
  }

  /// A pass that waits for one whose closure it is called in would wait for ever.
  func requireOutside() throws(SyncError) {
    guard PassContext.running.contains(where: { $0.area == area.id }) else { return }
    throw SyncError(
      .insideApplyClosure,
      "a pass cannot run inside a closure of a pass of its own area: call it after the closure "
        + "returned")
  }

  private func turn(_ waiting: PassWait) async throws -> PassQueue.Turn {
    do {
      if let turn = try await area.passes.turn(timeout: waiting.timeout) { return turn }
    } catch let error as StoreError {
      // The line is in the area's directory, which goes when it is erased.
      _ = try area.owner()
      throw error
    }
    throw SyncError(.busy, "another pass of this area is running: wait longer, or try again")
  }

  /// Owner = account = session, else nothing is sent.
  @discardableResult
  private func requireOwner(
    _ account: VerifiedAccount, _ session: any AccountSession
  ) throws -> SignedInAccount {
    try requireOwned(by: account)
    return try ProfileRegistry.require(account, in: session)
  }

  func requireOwned(by account: VerifiedAccount) throws {
    guard let owner = try area.owner() else {
      throw StoreError(.notBound, "an unowned area does not synchronize: bind it first")
    }
    guard owner == account.bytes else { throw StoreError.anotherOwner }
  }

  private func note(_ error: (any Error)?) async throws {
    if error is CancellationError { return }
    // An area that was erased meanwhile has nothing to note it in.
    if (error as? StoreError)?.code == .erased { return }
    try await area.notePass(
      PassOutcome(
        endedAt: registry.policy.now(), isComplete: error == nil,
        message: error.map { Self.message(of: $0) } ?? ""))
  }

  /// A sentence without anything of the app's.
  static func message(of error: any Error) -> String {
    switch error {
    case let error as SyncError: error.message
    case let error as StoreError: error.message
    case is CancellationError: "the pass was cancelled"
    default: "the app's closure threw"
    }
  }
}

extension StoreError {
  static let anotherOwner = StoreError(
    .ownedByAnotherAccount,
    "the area is owned by another account than the call names: use that account's profile")
}
