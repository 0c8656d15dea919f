import Synchronization

/// Counts the requests that are being answered, and lets a stop wait for them.
///
/// libmicrohttpd ends the process when it is stopped with a suspended connection, so none may be
/// suspended once draining began, and the stop waits until those before are finished.
final class DrainGate: Sendable {
  private struct State {
    var isDraining = false
    var count = 0
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// Whether a stop has begun.
  var isDraining: Bool { state.withLock { $0.isDraining } }

  /// Counts a request; false once draining began.
  func enter() -> Bool {
    state.withLock { state in
      guard !state.isDraining else { return false }
      state.count += 1
      return true
    }
  }

  /// Counts a request that is finished: its answer was sent, or its connection ended.
  func leave() {
    let waiters: [CheckedContinuation<Void, Never>] = state.withLock { state in
      state.count -= 1
      precondition(state.count >= 0, "a request left that never entered")
      guard state.count == 0, state.isDraining else { return [] }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Lets nobody in from now on.
  func beginDraining() { state.withLock { $0.isDraining = true } }

  /// Returns once nobody is in. Call ``beginDraining()`` before.
  func waitUntilEmpty() async {
    await withCheckedContinuation { continuation in
      let isEmpty = state.withLock { state in
        if state.count > 0 { state.waiters.append(continuation) }
        return state.count == 0
      }
      if isEmpty { continuation.resume() }
    }
  }
}
