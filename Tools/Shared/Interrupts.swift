import Foundation
import Synchronization

/// Ends a tool in order when it is interrupted: by Control-C, `kill`, or a terminal that goes away.
///
/// The first call takes over `SIGINT`, `SIGTERM` and `SIGHUP` for the rest of the process. A signal
/// that the process was started with as ignored stays ignored, as `nohup` and shells that start a
/// job in the background want it.
public enum Interrupts {
  /// A cleanup that waits for a signal.
  public struct Registration: Sendable {
    let id: Int

    /// Takes the cleanup back, once the thing is cleaned up in the ordinary way.
    ///
    /// Returns `false` if an interrupt already took it: then it runs or ran.
    @discardableResult
    public func cancel() -> Bool {
      plan.withLock { $0.removeCleanup(id) }
    }
  }

  /// Runs `cleanup` once if the process is interrupted; then the process ends by that signal, so
  /// that a shell sees what happened.
  ///
  /// Several cleanups run one after the other, the newest first. They run on a thread of their own,
  /// while the rest of the program goes on; a second signal ends the process at once, so that a
  /// cleanup that hangs can be stopped.
  ///
  /// - Parameter cleanup: stops what was started and removes what must not stay. It must not wait
  ///   for the program's other work.
  public static func onInterrupt(
    _ cleanup: @escaping @Sendable (InterruptSignal) -> Void
  ) -> Registration {
    let id = plan.withLock { $0.addCleanup(cleanup) }
    InterruptListener.start()
    return Registration(id: id)
  }

  /// From now on the first interrupt does not end the process: it is kept for ``next()``, which
  /// answers it at once if it came before.
  ///
  /// Call it before something is started, or announced, that an interrupt must end in order. A
  /// second interrupt runs the cleanups and ends the process, though nobody waits yet.
  public static func listen() {
    plan.withLock { $0.listen() }
    InterruptListener.start()
  }

  /// Waits for the first interrupt and answers it; the process goes on, for the caller to end it in
  /// order. `nil` if the waiting task was cancelled.
  ///
  /// From then on the next signal runs the cleanups, if there are any, and ends the process.
  public static func next() async -> InterruptSignal? {
    await next(onceWaiting: {})
  }

  static func next(onceWaiting: () -> Void) async -> InterruptSignal? {
    let waiter = Waiter()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        waiter.begin(continuation)
        InterruptListener.start()
        onceWaiting()
      }
    } onCancel: {
      waiter.cancel()
    }
  }

  static func signalArrived(_ signal: InterruptSignal) {
    switch plan.withLock({ $0.arrived(signal) }) {
    case .resume(let waiters):
      for resume in waiters { resume(signal) }
    case .end(let cleanups):
      InterruptListener.restoreDefaults()
      for cleanup in cleanups { cleanup(signal) }
      InterruptListener.endProcess(by: signal)
    }
  }
}

private let plan = Mutex(InterruptPlan())

/// One call of `Interrupts.next()`. A cancellation may come before, while or after it begins.
private final class Waiter: Sendable {
  private enum State {
    case new
    case waiting(id: Int)
    case cancelled
  }

  private enum Beginning {
    case waits
    case isOver(InterruptSignal?)
  }

  private let state = Mutex(State.new)

  func begin(_ continuation: CheckedContinuation<InterruptSignal?, Never>) {
    let beginning = state.withLock { state in
      if case .cancelled = state { return Beginning.isOver(nil) }
      return plan.withLock { plan in
        if let kept = plan.takeKept() { return .isOver(kept) }
        state = .waiting(id: plan.addWaiter { continuation.resume(returning: $0) })
        return .waits
      }
    }
    if case .isOver(let signal) = beginning { continuation.resume(returning: signal) }
  }

  func cancel() {
    let resume: InterruptPlan.Resume? = state.withLock { state in
      defer { state = .cancelled }
      guard case .waiting(let id) = state else { return nil }
      return plan.withLock { $0.removeWaiter(id) }
    }
    resume?(nil)
  }
}
