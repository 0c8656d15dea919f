package import HubProtocol
import Synchronization

/// Who waits for changes, by account; the store wakes them after the commit that changed something.
///
/// A signal says *look again* and nothing else: whoever is woken reads the account anew, so one too
/// many does no harm, and several become one. Any number may wait; none takes a thread.
package final class AccountSignals: Sendable {
  private struct State {
    var subscriptions: [AccountID: [UInt64: Subscription]] = [:]
    var last: UInt64 = 0
    var count = 0
    var isClosed = false
  }

  private let state = Mutex(State())
  private let clock: any Clock<Duration>
  private let alarms: WaitAlarms

  /// - Parameter clock: by which waits end.
  package init(clock: any Clock<Duration> = ContinuousClock()) {
    self.clock = clock
    alarms = WaitAlarms(clock)
  }

  /// Tells how much time has passed since it was made.
  package func stopwatch() -> @Sendable () -> Duration { WaitAlarms.stopwatch(clock) }

  /// Sleeps by the clock by which waits end.
  /// - Throws: when the task is cancelled.
  package func sleep(for duration: Duration) async throws { try await clock.sleep(for: duration) }

  /// How many wait or are about to.
  package var count: Int { state.withLock { $0.count } }

  /// Begins to listen; to be given back with ``unsubscribe(_:)``. One that comes after
  /// ``close()`` is over from the start.
  package func subscribe(to account: AccountID) -> Subscription {
    let (subscription, isClosed) = state.withLock { state in
      state.last += 1
      let subscription = Subscription(account: account, number: state.last, alarms: alarms)
      state.subscriptions[account, default: [:]][state.last] = subscription
      state.count += 1
      return (subscription, state.isClosed)
    }
    if isClosed { subscription.end(.stopping) }
    return subscription
  }

  /// Listens no longer.
  package func unsubscribe(_ subscription: Subscription) {
    state.withLock { state in
      let account = subscription.account
      let removed = state.subscriptions[account]?.removeValue(forKey: subscription.number)
      if removed != nil { state.count -= 1 }
      if state.subscriptions[account]?.isEmpty ?? false { state.subscriptions[account] = nil }
    }
  }

  /// Something of the account may have changed, and is committed. Who came first is told first.
  package func wake(_ account: AccountID) {
    let woken = state.withLock { state in state.subscriptions[account].map { Array($0.values) } }
    for subscription in (woken ?? []).sorted(by: { $0.number < $1.number }) {
      subscription.change()
    }
  }

  /// The hub stops: ends every wait, and every later one as it begins.
  package func close() {
    let all = state.withLock { state in
      state.isClosed = true
      return state.subscriptions.values.flatMap(\.values)
    }
    for subscription in all { subscription.end(.stopping) }
  }
}
