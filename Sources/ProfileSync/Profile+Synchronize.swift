import Foundation
public import ProfileStore

extension Profile {
  /// Sends what waits and brings what is new, for an app that keeps its records in the area: records,
  /// metadata and cursor are committed in one transaction, and every change is applied exactly once.
  ///
  /// Owner, account and session are compared before anything is sent and after every wait; the hub
  /// compares the owner again. A pass of the same area that runs already is waited for.
  /// - Parameters:
  ///   - account: whose area this is.
  ///   - session: counts for this pass instead of the profile's.
  ///   - replayFromStart: brings the whole history again, without resetting anything; also the way
  ///     to take up a new epoch.
  ///   - waiting: how long to wait for a running pass of the area.
  ///   - progress: told as it goes on.
  /// - Returns: what the pass did. With ``SyncReport/continuation`` the replay has more.
  /// - Throws: ``SyncError``; `StoreError` (`ownedByAnotherAccount`, `notBound`, `notSignedIn`,
  ///   `anotherAccountSignedIn`, `sessionUnknown`, `storage`); `CancellationError`. Whatever was
  ///   committed stays, and the next pass goes on.
  @discardableResult
  public func synchronize(
    account: VerifiedAccount, session: (any AccountSession)? = nil, replayFromStart: Bool = false,
    waiting: PassWait = .untilItsTurn, progress: ProgressObserver? = nil
  ) async throws -> SyncReport {
    guard registry.keepsRecords else {
      throw SyncError(
        .closureRequired, "the app keeps its records itself: give applyChanges, which saves them")
    }
    return try await pass(
      PassOrder(
        account: account, session: session, goal: replayFromStart ? .replay : .ordinary,
        hasClosure: false, appPosition: nil, waiting: waiting, progress: progress)
    ) { _ in }
  }

  /// Sends what waits and brings what is new, for an app with a store of its own.
  ///
  /// Each batch is saved by `applyChanges`; only after it returned, and the session was looked at
  /// again, do metadata and cursor advance. If it throws, or the session changed, the pass stops and
  /// the next one delivers the same batch again.
  /// - Parameters:
  ///   - appPosition: the position that the app's store has saved, ``BatchPosition/start`` if it has
  ///     none yet; an older one than the area has throws `appStoreBehind`, except in a replay. nil:
  ///     not checked, for an app that saves none.
  ///   - applyChanges: saves a batch in one transaction of the app's own. It runs where the caller
  ///     runs (a main-actor app stays on the main actor) and may enqueue, but not synchronize.
  /// - Throws: as ``synchronize(account:session:replayFromStart:waiting:progress:)``, and what the
  ///   closure throws, as it is.
  @discardableResult
  public func synchronize(
    account: VerifiedAccount, session: (any AccountSession)? = nil, replayFromStart: Bool = false,
    appPosition: BatchPosition? = nil, waiting: PassWait = .untilItsTurn,
    progress: ProgressObserver? = nil,
    applyChanges: (borrowing ChangeBatch) async throws -> Void
  ) async throws -> SyncReport {
    try await pass(
      PassOrder(
        account: account, session: session, goal: replayFromStart ? .replay : .ordinary,
        hasClosure: true, appPosition: appPosition, waiting: waiting, progress: progress),
      applyChanges)
  }

  /// Brings the next leg of a replay.
  /// - Parameter continuation: from the report of the leg before.
  /// - Throws: `continuationExpired` when another replay has begun since; as the other forms.
  @discardableResult
  public func synchronize(
    account: VerifiedAccount, continuing continuation: ReplayContinuation,
    session: (any AccountSession)? = nil, waiting: PassWait = .untilItsTurn,
    progress: ProgressObserver? = nil
  ) async throws -> SyncReport {
    guard registry.keepsRecords else {
      throw SyncError(
        .closureRequired, "the app keeps its records itself: give applyChanges, which saves them")
    }
    return try await pass(
      PassOrder(
        account: account, session: session, goal: .continuing(scan: continuation.scan),
        hasClosure: false, appPosition: nil, waiting: waiting, progress: progress)
    ) { _ in }
  }

  /// Brings the next leg of a replay, for an app with a store of its own. A leg that was cut off is
  /// asked for with the same continuation.
  /// - Throws: `continuationExpired` when another replay has begun since, or this one is over; as the
  ///   other forms.
  @discardableResult
  public func synchronize(
    account: VerifiedAccount, continuing continuation: ReplayContinuation,
    session: (any AccountSession)? = nil, appPosition: BatchPosition? = nil,
    waiting: PassWait = .untilItsTurn, progress: ProgressObserver? = nil,
    applyChanges: (borrowing ChangeBatch) async throws -> Void
  ) async throws -> SyncReport {
    try await pass(
      PassOrder(
        account: account, session: session, goal: .continuing(scan: continuation.scan),
        hasClosure: true, appPosition: appPosition ?? continuation.position, waiting: waiting,
        progress: progress),
      applyChanges)
  }
}

/// What a pass was asked for.
private struct PassOrder {
  let account: VerifiedAccount
  let session: (any AccountSession)?
  let goal: PassGoal
  let hasClosure: Bool
  let appPosition: BatchPosition?
  let waiting: PassWait
  let progress: ProgressObserver?
}

extension Profile {
  private func pass(
    _ order: PassOrder, _ apply: PassRunner.Apply
  ) async throws -> SyncReport {
    guard !PassContext.running.contains(where: { $0.area == area.id }) else {
      throw SyncError(
        .insideApplyClosure,
        "a pass cannot run inside the apply closure of its own area: call it after the closure "
          + "returned")
    }
    let session = order.session ?? self.session
    try requireOwner(order.account, session)
    let transport = try registry.transport()
    let turn = try await turn(order.waiting)
    defer { turn.end() }
    // The session may have changed while this pass waited for its turn.
    let signedIn = try requireOwner(order.account, session)
    try await registry.noticeSignIn(of: order.account, in: session)
    let runner = try PassRunner(
      area: area, account: order.account, policy: registry.policy, session: session,
      signedIn: signedIn, transport: transport, goal: order.goal, hasClosure: order.hasClosure,
      appPosition: order.appPosition, progress: order.progress)
    do {
      let report = try await runner.run(apply)
      try await note(nil)
      return report
    } catch let stopped {
      // What stopped the pass counts, also where it cannot be noted for a person.
      do { try await note(stopped) } catch { throw stopped }
      throw stopped
    }
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
    guard let owner = try area.owner() else {
      throw StoreError(.notBound, "an unowned area does not synchronize: bind it first")
    }
    guard owner == account.bytes else { throw StoreError.anotherOwner }
    return try ProfileRegistry.require(account, in: session)
  }

  private func note(_ error: (any Error)?) async throws {
    if error is CancellationError { return }
    // An area that was erased meanwhile has nothing to note it in.
    if (error as? StoreError)?.code == .erased { return }
    let message =
      switch error {
      case let error as SyncError: error.message
      case let error as StoreError: error.message
      case nil: ""
      default: "the app's closure threw"
      }
    try await area.notePass(
      PassOutcome(endedAt: registry.policy.now(), isComplete: error == nil, message: message))
  }
}

extension StoreError {
  static let anotherOwner = StoreError(
    .ownedByAnotherAccount,
    "the area is owned by another account than the call names: use that account's profile")
}
