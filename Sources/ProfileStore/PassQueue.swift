import Foundation
import Synchronization

/// One pass of an area at a time: first come first served in this process, a file lock between
/// processes. A process that dies releases its place.
package final class PassQueue: Sendable {
  private struct Waiter {
    let id: UInt64
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var isTaken = false
    var nextID: UInt64 = 0
    var waiters: [Waiter] = []
    /// Those between asking and waiting.
    var arriving: Set<UInt64> = []
  }

  private let state = Mutex(State())
  private let lockFile: String

  init(lockFile: String) { self.lockFile = lockFile }

  /// The right to run; it ends with this object or with ``end()``.
  package final class Turn: Sendable {
    private let queue: PassQueue
    private let lock: Mutex<FileLock?>

    fileprivate init(queue: PassQueue, lock: FileLock) {
      self.queue = queue
      self.lock = Mutex(lock)
    }

    deinit { end() }

    /// Lets the next one go on.
    package func end() {
      let wasHeld = lock.withLock { lock in
        defer { lock = nil }
        return lock != nil
      }
      // The file's lock is gone by now: whoever is next finds it free.
      if wasHeld { queue.release() }
    }
  }

  /// Waits for its turn.
  /// - Parameter timeout: how long at most; nil: as long as it takes.
  /// - Returns: nil when the time was up.
  /// - Throws: `CancellationError` as soon as the waiting task is cancelled; what the lock file says.
  package func turn(timeout: Duration?) async throws -> Turn? {
    let deadline = timeout.map { ContinuousClock.now + $0 }
    guard try await enter(deadline: deadline) else { return nil }
    do {
      var pause = Duration.milliseconds(2)
      while true {
        try Task.checkCancellation()
        if let lock = try FileLock.ifFree(lockFile) { return Turn(queue: self, lock: lock) }
        if let deadline, ContinuousClock.now >= deadline {
          release()
          return nil
        }
        // Another process holds it; nothing tells us when it lets go.
        try await Task.sleep(for: pause)
        pause = min(pause * 2, .milliseconds(50))
      }
    } catch {
      release()
      throw error
    }
  }

  private enum Arrival {
    case mine
    case over
    case waits
  }

  private func enter(deadline: ContinuousClock.Instant?) async throws -> Bool {
    let id = state.withLock { state in
      state.nextID += 1
      state.arriving.insert(state.nextID)
      return state.nextID
    }
    let timer = deadline.map { deadline in
      Task {
        try await Task.sleep(until: deadline, clock: .continuous)
        self.endWait(id)
      }
    }
    defer { timer?.cancel() }
    let isMine = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        switch arrive(Waiter(id: id, continuation: continuation)) {
        case .mine: continuation.resume(returning: true)
        case .over: continuation.resume(returning: false)
        case .waits: break
        }
      }
    } onCancel: {
      endWait(id)
    }
    if isMine { return true }
    try Task.checkCancellation()
    return false
  }

  private func arrive(_ waiter: Waiter) -> Arrival {
    state.withLock { state in
      // Ended while it was still on its way here.
      guard state.arriving.remove(waiter.id) != nil else { return .over }
      guard state.isTaken else {
        state.isTaken = true
        return .mine
      }
      state.waiters.append(waiter)
      return .waits
    }
  }

  private func endWait(_ id: UInt64) {
    let waiter: Waiter? = state.withLock { state in
      state.arriving.remove(id)
      return state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
    }
    waiter?.continuation.resume(returning: false)
  }

  private func release() {
    let next: Waiter? = state.withLock { state in
      guard !state.waiters.isEmpty else {
        state.isTaken = false
        return nil
      }
      return state.waiters.removeFirst()
    }
    next?.continuation.resume(returning: true)
  }
}
