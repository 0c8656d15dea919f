import Foundation
import HubProtocol
public import ProfileStore
import Synchronization

extension Profile {
  /// Keeps the area synchronized for as long as the calling task runs, for an app that keeps its
  /// records in the area.
  ///
  /// A pass, then a wait for a change at the hub or on this device (an enqueue is sent at once), then
  /// the next pass. It hears of the hub's changes by the hub's events, over one connection that stays
  /// open; where they cannot be had, by long polls; where the hub takes none, it looks every
  /// ``SyncPace/pollInterval``. What it hears is a hint: only a pass brings anything. It begins
  /// offline, too, and goes on by itself when the hub can be reached: failures are tried again as
  /// ``RetryPause`` says, and never before the hub's `Retry-After`. After a refused token nothing is
  /// sent until the session has another one. While nobody or another account is signed in it sends
  /// nothing and waits; it never switches anything. While the store is suspended it waits, lets go of
  /// the hub, and goes on after `resume()`.
  /// - Parameters:
  ///   - account: whose area this is.
  ///   - session: counts instead of the profile's.
  ///   - resolve: decides conflicts within each pass.
  ///   - pace: intervals, clock, chance, and what happens when only the app can help.
  /// - Throws: `CancellationError` when the task is cancelled, within a second also while the hub holds
  ///   the connection; with `SyncPace.Stopping.throwing` whatever only the app can help with
  ///   (`epochChanged`, `accountMismatch`, …; see ``SyncError/retryClass``), `StoreError`; with
  ///   `reporting` only `StoreError` that no wait can end (`ownedByAnotherAccount`, `notBound`,
  ///   `erased`), `notConnected` and `closureRequired`.
  public func keepSynchronized(
    account: VerifiedAccount, session: (any AccountSession)? = nil,
    resolve: ConflictResolver? = nil, pace: SyncPace = SyncPace()
  ) async throws {
    guard registry.keepsRecords else { throw SyncError.closureRequired }
    try await keep(
      PassOrder(
        account: account, session: session, goal: .ordinary, hasClosure: false, appPosition: nil,
        waiting: .untilItsTurn, resolve: resolve, progress: nil), pace
    ) { _ in }
  }

  /// Keeps the area synchronized for as long as the calling task runs, for an app with a store of its
  /// own.
  /// - Parameters:
  ///   - appPosition: the position that the app's store has saved when the call begins; nil: not
  ///     checked. Later passes go on from what `applyChanges` has accepted.
  ///   - applyChanges: saves a batch, as for `synchronize`. What it throws ends the call, or, with
  ///     `reporting`, is tried again with the same batch after a pause.
  /// - Throws: as ``keepSynchronized(account:session:resolve:pace:)``.
  public func keepSynchronized(
    account: VerifiedAccount, session: (any AccountSession)? = nil,
    appPosition: BatchPosition? = nil, resolve: ConflictResolver? = nil,
    pace: SyncPace = SyncPace(),
    applyChanges: (borrowing ChangeBatch) async throws -> Void
  ) async throws {
    try await keep(
      PassOrder(
        account: account, session: session, goal: .ordinary, hasClosure: true,
        appPosition: appPosition, waiting: .untilItsTurn, resolve: resolve, progress: nil),
      pace, applyChanges)
  }

  private func keep(
    _ first: PassOrder, _ pace: SyncPace, _ apply: PassRunner.Apply
  ) async throws {
    try requireOutside()
    do { try requireOwned(by: first.account) } catch let error as StoreError
      where error.code == .suspended
    {
      // The first pass compares it again, once the store is resumed.
    }
    _ = try registry.transport()
    let hints = HintLine()
    defer { hints.close() }
    let waiter = SyncWaiter(
      profile: self, account: first.account, session: first.session ?? session, pace: pace,
      hints: hints)
    let board = EventBoard.of(area.signals)
    var loop = SyncLoop(pollInterval: pace.pollInterval, reports: pace.stopping == .reporting)
    var order = first
    var deferred = DeferredRecords()
    var seen = SyncWaiter.Seen()
    let time = Stopwatch(pace.clock)
    // Pauses count from what they follow, however often the wait itself begins anew.
    var since = Stopwatch(pace.clock)
    var limits = HubLimits()
    var (shown, stopped): (SyncWait?, (any Error)?) = (nil, nil)
    while true {
      try Task.checkCancellation()
      var end: SyncWaiter.End
      var hasThrown = false
      do {
        switch loop.order {
        case .look:
          seen = try waiter.look()
          end = SyncWaiter.End(.looked(isOurs: waiter.isOurs(seen.session)))
        case .pass:
          (seen, shown) = (try waiter.look(), nil)
          var hasAccepted = false
          order.waitingRecords = deferred.waiting(at: time.elapsed())
          end = try await keepPass(order, pace, &limits, &deferred, time) { batch in
            do { try await apply(batch) } catch {
              hasThrown = true
              throw error
            }
            hasAccepted = true
          }
          // What the app's closure throws says nothing of this account's session.
          if hasThrown, case .failed(.lookAgain) = end.event, let error = end.error as? StoreError {
            end = try again(error, pace)
          }
          if case .passed = end.event { hasAccepted = true }
          // From now on the area's own position counts.
          if hasAccepted { order.appPosition = nil }
        case .wait(var wait):
          if shown != wait.reason { board.post(.waiting(wait.reason)) }
          shown = wait.reason
          wait.timeUp = wait.timeUp.map { max(.zero, $0 - since.elapsed()) }
          if wait.stream == nil { hints.close() }
          do {
            end = try await waiter.wait(wait, since: seen, limits)
          } catch let error as StoreError {
            if Self.endsLoop(error) { throw error }
            end = try again(error, pace)
          }
          if case .woke(.session(_, let isNewSignIn)) = end.event {
            seen.session = waiter.session.state
            if isNewSignIn { hints.close() }
          }
        case .stop: throw stopped ?? SyncError.stateLost
        }
      } catch let error as StoreError where error.code == .suspended {
        // Of another store, if it is the app's closure that has thrown it.
        end =
          hasThrown && !registry.isSuspended(area)
          ? try again(error, pace) : SyncWaiter.End(.failed(.suspended), error)
      }
      stopped = end.error ?? stopped
      let action = loop.handle(end.event, chance: pace.chance())
      switch end.event {
      case .looked, .woke, .failed(.suspended): continue
      case .passed, .failed: since = Stopwatch(pace.clock)
      }
      if case .failed(.needsToken) = end.event { seen.session = refused(seen.session, board) }
      if case .failed(.later(let code, _)) = end.event,
        case .wait(let wait) = action, let pause = wait.timeUp
      {
        registry.observer.retryPlanned(
          after: pause, because: code, failureCount: loop.failureCount)
      }
    }
  }

  /// What the session said when the hub refused it: anything else is worth a try.
  private func refused(_ seen: SessionState, _ board: EventBoard) -> SessionState {
    board.lastUsed.withLock { $0 }.map { .account($0) } ?? seen
  }

  /// One pass, and what its end means for the loop.
  private func keepPass(
    _ order: PassOrder, _ pace: SyncPace, _ limits: inout HubLimits,
    _ deferred: inout DeferredRecords, _ time: Stopwatch, _ apply: PassRunner.Apply
  ) async throws -> SyncWaiter.End {
    do {
      let end = try await pass(order, apply)
      limits = end.limits ?? limits
      deferred.passed(
        deferred: end.deferred, leaving: order.waitingRecords, at: time.elapsed(),
        chance: pace.chance())
      let now = registry.policy.now()
      let held = try area.nextTryOfHeld().map {
        Duration.seconds(min(max(0, $0.timeIntervalSince(now)), Held.longestPause))
      }
      let due = [held, deferred.pause(at: time.elapsed())].compactMap { $0 }.min()
      return SyncWaiter.End(
        .passed(
          SyncLoop.Standing(
            hasMore: end.report.wasOutrun, waitSeconds: limits.waitSeconds,
            due: due, canListen: try registry.transport() is any HubEventTransport)))
    } catch let error as SyncError {
      // A mistake in the call, which no wait ends.
      if [.notConnected, .insideApplyClosure, .closureRequired].contains(error.code) {
        throw error
      }
      return SyncWaiter.End(.failed(SyncLoop.Failure(error)), error)
    } catch let error as StoreError {
      switch error.code {
      case .notSignedIn, .anotherAccountSignedIn, .sessionUnknown:
        return SyncWaiter.End(.failed(.lookAgain), error)
      default:
        if Self.endsLoop(error) { throw error }
        return try again(error, pace)
      }
    } catch let error as CancellationError where Task.isCancelled {
      throw error
    } catch {
      // Something else was cancelled, if that is what a closure of the app has thrown.
      return try again(error, pace)
    }
  }

  /// What no wait ends.
  private static func endsLoop(_ error: StoreError) -> Bool {
    [.ownedByAnotherAccount, .notBound, .erased, .suspended].contains(error.code)
  }

  private func again(_ error: any Error, _ pace: SyncPace) throws -> SyncWaiter.End {
    guard pace.stopping == .reporting else { throw error }
    return SyncWaiter.End(.failed(.later(nil, retryAfter: nil)), error)
  }
}

extension SyncError {
  static let closureRequired = SyncError(
    .closureRequired, "the app keeps its records itself: give applyChanges, which saves them")
}
