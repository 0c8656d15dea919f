import Dispatch
import Synchronization

/// One thread or task that waits for the pool to change; it is told once.
final class PoolWaiter: Sendable {
  enum Outcome: Sendable {
    /// Something changed: look again.
    case woken
    case timedOut
    case cancelled
  }

  private struct State {
    var outcome: Outcome?
    var continuation: CheckedContinuation<Outcome, Never>?
  }

  private let state = Mutex(State())
  private let semaphore = DispatchSemaphore(value: 0)

  /// Tells it.
  /// - Returns: whether it was the first to do so.
  @discardableResult
  func resolve(_ outcome: Outcome) -> Bool {
    let (isFirst, continuation) = state.withLock { state in
      guard state.outcome == nil else {
        return (false, nil as CheckedContinuation<Outcome, Never>?)
      }
      state.outcome = outcome
      defer { state.continuation = nil }
      return (true, state.continuation)
    }
    guard isFirst else { return false }
    semaphore.signal()
    continuation?.resume(returning: outcome)
    return true
  }

  func waitBlocking(until deadline: ContinuousClock.Instant) -> Outcome {
    let left = ContinuousClock.now.duration(to: deadline)
    _ = semaphore.wait(timeout: .now() + left.seconds)
    resolve(.timedOut)
    return state.withLock { $0.outcome } ?? .timedOut
  }

  func wait(until deadline: ContinuousClock.Instant) async -> Outcome {
    let left = ContinuousClock.now.duration(to: deadline)
    DispatchQueue.global().asyncAfter(deadline: .now() + left.seconds) { [weak self] in
      self?.resolve(.timedOut)
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state in
          if state.outcome == nil { state.continuation = continuation }
          return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      resolve(.cancelled)
    }
  }
}

extension Duration {
  /// In seconds, 0 at least.
  var seconds: Double {
    max(0, Double(components.seconds) + Double(components.attoseconds) / 1e18)
  }
}
