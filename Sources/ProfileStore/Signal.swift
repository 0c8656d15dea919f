package import Synchronization

/// Counts what happens and wakes whoever waits for more of it. A raise between two waits is not lost:
/// the waiter names the count that it has seen.
package final class Signal: Sendable {
  private struct State {
    var count: UInt64 = 0
    var lastWaiter: UInt64 = 0
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// How often it was raised.
  package var count: UInt64 { state.withLock(\.count) }

  package func raise() {
    let waiters = state.withLock { state in
      state.count += 1
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume() }
  }

  /// Waits until it was raised more often than that, or the task is cancelled.
  package func wait(past seen: UInt64) async {
    let id = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.count > seen || Task.isCancelled { return true }
          state.waiters[id] = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }
}

/// What goes on in an area within this process, for whoever waits for it. One per open area.
package final class AreaSignals: Sendable {
  /// Something may be there to send: an enqueue, a retry, a decision on a conflict.
  package let outbox = Signal()
  /// A pass has ended well.
  package let passes = Signal()
  /// The store was suspended, or resumed.
  package let suspensions = Signal()
  /// What a later module attaches: who listens to this area's passes.
  package let attachment = Mutex<(any Sendable)?>(nil)

  package init() {}
}
