package import HubProtocol
import Synchronization

/// One who waits for changes of an account: a long poll or an event stream.
///
/// It listens from the moment it is made. Whoever reads the account after that misses nothing: a
/// change in between is told by the next wait. Waiting takes no thread.
package final class Subscription: Sendable {
  package let account: AccountID
  /// In the order of listening.
  let number: UInt64
  private let alarms: WaitAlarms
  private let state = Mutex(State())

  private struct State {
    var wait = WaitState()
    var continuation: CheckedContinuation<WaitSignal, Never>?

    /// Whom to tell once the lock is free.
    mutating func taken(_ signal: WaitSignal?) -> (() -> Void)? {
      guard let signal, let waiting = continuation else { return nil }
      continuation = nil
      return { waiting.resume(returning: signal) }
    }
  }

  init(account: AccountID, number: UInt64, alarms: WaitAlarms) {
    self.account = account
    self.number = number
    self.alarms = alarms
  }

  /// Waits for the next signal; one wait at a time.
  /// - Parameter limit: how long at most, to a quarter of a second; not above 0 means not at all.
  package func next(within limit: Duration) async -> WaitSignal {
    let turn = state.withLock { $0.wait.prepare() }
    let alarm = alarms.set(for: self, turn: turn, within: limit)
    defer { alarms.remove(alarm) }
    return await withCheckedContinuation { continuation in
      let signal = state.withLock { state in
        let signal = state.wait.begin()
        if signal == nil { state.continuation = continuation }
        return signal
      }
      if let signal { continuation.resume(returning: signal) }
    }
  }

  /// Something of the account may have changed.
  func change() { tell { $0.change() } }

  /// The time of a wait is up.
  func alarm(of turn: UInt64) { tell { $0.alarm(of: turn) } }

  /// There is nothing to wait for any more.
  package func end(_ reason: WaitEnd) { tell { $0.end(reason) } }

  private func tell(_ event: (inout WaitState) -> WaitSignal?) {
    let resume = state.withLock { state in state.taken(event(&state.wait)) }
    resume?()
  }
}
