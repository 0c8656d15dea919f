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
  ///   - resolve: decides conflicts within the pass; without one they are parked, for
  ///     `Profile.resolve(_:seen:account:_:)`.
  ///   - progress: told as it goes on.
  /// - Returns: what the pass did. With ``SyncReport/continuation`` the replay has more.
  /// - Throws: ``SyncError``; `StoreError` (`ownedByAnotherAccount`, `notBound`, `notSignedIn`,
  ///   `anotherAccountSignedIn`, `sessionUnknown`, `storage`); `CancellationError`. Whatever was
  ///   committed stays, and the next pass goes on.
  @discardableResult
  public func synchronize(
    account: VerifiedAccount, session: (any AccountSession)? = nil, replayFromStart: Bool = false,
    waiting: PassWait = .untilItsTurn, resolve: ConflictResolver? = nil,
    progress: ProgressObserver? = nil
  ) async throws -> SyncReport {
    guard registry.keepsRecords else { throw SyncError.closureRequired }
    return try await pass(
      PassOrder(
        account: account, session: session, goal: replayFromStart ? .replay : .ordinary,
        hasClosure: false, appPosition: nil, waiting: waiting, resolve: resolve,
        progress: progress)
    ) { _ in }.report
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
  /// - Throws: as ``synchronize(account:session:replayFromStart:waiting:resolve:progress:)``, and what the
  ///   closure throws, as it is.
  @discardableResult
  public func synchronize(
    account: VerifiedAccount, session: (any AccountSession)? = nil, replayFromStart: Bool = false,
    appPosition: BatchPosition? = nil, waiting: PassWait = .untilItsTurn,
    resolve: ConflictResolver? = nil, progress: ProgressObserver? = nil,
    applyChanges: (borrowing ChangeBatch) async throws -> Void
  ) async throws -> SyncReport {
    try await pass(
      PassOrder(
        account: account, session: session, goal: replayFromStart ? .replay : .ordinary,
        hasClosure: true, appPosition: appPosition, waiting: waiting, resolve: resolve,
        progress: progress),
      applyChanges
    ).report
  }

  /// Brings the next leg of a replay.
  /// - Parameter continuation: from the report of the leg before.
  /// - Throws: `continuationExpired` when another replay has begun since; as the other forms.
  @discardableResult
  public func synchronize(
    account: VerifiedAccount, continuing continuation: ReplayContinuation,
    session: (any AccountSession)? = nil, waiting: PassWait = .untilItsTurn,
    resolve: ConflictResolver? = nil, progress: ProgressObserver? = nil
  ) async throws -> SyncReport {
    guard registry.keepsRecords else { throw SyncError.closureRequired }
    return try await pass(
      PassOrder(
        account: account, session: session, goal: .continuing(scan: continuation.scan),
        hasClosure: false, appPosition: nil, waiting: waiting, resolve: resolve,
        progress: progress)
    ) { _ in }.report
  }

  /// Brings the next leg of a replay, for an app with a store of its own. A leg that was cut off is
  /// asked for with the same continuation.
  /// - Throws: `continuationExpired` when another replay has begun since, or this one is over; as the
  ///   other forms.
  @discardableResult
  public func synchronize(
    account: VerifiedAccount, continuing continuation: ReplayContinuation,
    session: (any AccountSession)? = nil, appPosition: BatchPosition? = nil,
    waiting: PassWait = .untilItsTurn, resolve: ConflictResolver? = nil,
    progress: ProgressObserver? = nil,
    applyChanges: (borrowing ChangeBatch) async throws -> Void
  ) async throws -> SyncReport {
    try await pass(
      PassOrder(
        account: account, session: session, goal: .continuing(scan: continuation.scan),
        hasClosure: true, appPosition: appPosition ?? continuation.position, waiting: waiting,
        resolve: resolve, progress: progress),
      applyChanges
    ).report
  }
}
