import Foundation
import Synchronization

/// One pass of an area at a time, in all processes, first come first served.
///
/// Each waiting pass has a ticket on disk. Within this process only the first of them looks whether
/// its turn has come; the others are told.
package final class PassQueue: Sendable {
  private enum Standing {
    /// Between drawing its ticket and waiting. `isOver`: it is not to wait.
    case arriving(isOver: Bool)
    case waiting(CheckedContinuation<Bool, Never>)
    /// The first one of this process.
    case first
  }

  private struct Place {
    /// Unlike a ticket's number never given twice.
    let id: UUID
    let ticket: PassTicket
    var standing = Standing.arriving(isOver: false)
  }

  /// How long drawing a ticket may take at least, which is a matter of microseconds.
  private static let drawingTimeMin = Duration.milliseconds(100)

  /// In the order of their tickets.
  private let line = Mutex<[Place]>([])
  private let suspension = Mutex(Suspension())
  private let directory: String

  private struct Suspension {
    var isSuspended = false
    /// What ends the waits of the running pass for the network.
    var interruptions: [UUID: @Sendable () -> Void] = [:]
  }

  init(directory: String) { self.directory = directory }

  /// The right to run; it ends with this object or with ``end()``.
  package final class Turn: Sendable {
    private let queue: PassQueue
    private let id: UUID

    fileprivate init(queue: PassQueue, id: UUID) {
      self.queue = queue
      self.id = id
    }

    deinit { end() }

    /// Lets the next one go on.
    package func end() { queue.leave(id) }
  }

  /// Waits for its turn.
  /// - Parameter timeout: how long at most; nil: as long as it takes.
  /// - Returns: nil when the time was up.
  /// - Throws: `CancellationError` as soon as the waiting task is cancelled; `storage`.
  package func turn(timeout: Duration?) async throws -> Turn? {
    let deadline = timeout.map { ContinuousClock.now + $0 }
    guard let place = try await join(deadline) else { return nil }
    let turn = Turn(queue: self, id: place.id)
    guard await comesFirst(place.id, deadline) else {
      try Task.checkCancellation()
      try requireNotSuspended()
      return nil
    }
    let isFirst = try await repeating(until: deadline) {
      try place.ticket.isFirst() ? true : nil
    }
    return isFirst == nil ? nil : turn
  }

  /// How many passes of this process run or wait.
  package var count: Int { line.withLock { $0.count } }

  /// Asks again after a pause, since nothing tells us what another process does.
  private func repeating<R>(
    until deadline: ContinuousClock.Instant?, _ body: () throws -> R?
  ) async throws -> R? {
    var pause = Duration.milliseconds(2)
    while true {
      try Task.checkCancellation()
      try requireNotSuspended()
      if let value = try body() { return value }
      if let deadline, ContinuousClock.now >= deadline { return nil }
      try await Task.sleep(for: pause)
      pause = min(pause * 2, .milliseconds(50))
    }
  }

  private func join(_ deadline: ContinuousClock.Instant?) async throws -> Place? {
    let latest = deadline.map { max($0, ContinuousClock.now + Self.drawingTimeMin) }
    return try await repeating(until: latest) {
      // Drawn under the mutex, so that places and numbers have one order.
      try line.withLock { line in
        guard let ticket = try PassTicket.draw(in: directory) else { return nil }
        let place = Place(id: UUID(), ticket: ticket)
        line.append(place)
        return place
      }
    }
  }

  /// Waits until it is the first one of this process.
  /// - Returns: false when the time was up, or the task was cancelled.
  private func comesFirst(
    _ id: UUID, _ deadline: ContinuousClock.Instant?
  ) async -> Bool {
    let timer = deadline.map { deadline in
      Task {
        try await Task.sleep(until: deadline, clock: .continuous)
        self.endWait(id)
      }
    }
    defer { timer?.cancel() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if let isFirst = wait(id, continuation) { continuation.resume(returning: isFirst) }
      }
    } onCancel: {
      endWait(id)
    }
  }

  /// - Returns: nil when it has to wait.
  private func wait(_ id: UUID, _ continuation: CheckedContinuation<Bool, Never>) -> Bool? {
    line.withLock { line in
      guard let index = line.firstIndex(where: { $0.id == id }),
        case .arriving(let isOver) = line[index].standing
      else { return false }
      if index == 0 {
        // A free area is given also when there is no time to wait.
        line[0].standing = .first
        return true
      }
      if isOver { return false }
      line[index].standing = .waiting(continuation)
      return nil
    }
  }

  /// Ends a wait, unless its turn has come already.
  private func endWait(_ id: UUID) {
    let waiter = line.withLock { line -> CheckedContinuation<Bool, Never>? in
      guard let index = line.firstIndex(where: { $0.id == id }) else { return nil }
      switch line[index].standing {
      case .first: return nil
      case .arriving:
        line[index].standing = .arriving(isOver: true)
        return nil
      case .waiting(let continuation):
        line.remove(at: index).ticket.end()
        return continuation
      }
    }
    waiter?.resume(returning: false)
  }

  // MARK: Suspending

  private func requireNotSuspended() throws(StoreError) {
    if suspension.withLock(\.isSuspended) { throw StoreError.suspended }
  }

  /// Ends every wait for a turn or for the network; the pass that runs stops at its next step.
  func suspend() {
    let interruptions = suspension.withLock { suspension in
      suspension.isSuspended = true
      return suspension.interruptions.values
    }
    for interrupt in interruptions { interrupt() }
    for place in line.withLock({ $0 }) { endWait(place.id) }
  }

  func resume() { suspension.withLock { $0.isSuspended = false } }

  /// Runs what a pass waits for outside of the store, which a suspension cancels.
  /// - Throws: `suspended`; what `body` throws.
  package func interruptible<R: Sendable>(
    _ body: @escaping @Sendable () async throws -> R
  ) async throws -> R {
    try requireNotSuspended()
    let task = Task { try await body() }
    let id = UUID()
    let isSuspended = suspension.withLock { suspension in
      suspension.interruptions[id] = { task.cancel() }
      return suspension.isSuspended
    }
    // It came between the two.
    if isSuspended { task.cancel() }
    defer { suspension.withLock { $0.interruptions[id] = nil } }
    do {
      return try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
    } catch {
      try requireNotSuspended()
      throw error
    }
  }

  /// Takes it out of the line, if it is still there, and tells the next one if it was the first.
  private func leave(_ id: UUID) {
    let next = line.withLock { line -> CheckedContinuation<Bool, Never>? in
      guard let index = line.firstIndex(where: { $0.id == id }) else { return nil }
      line.remove(at: index).ticket.end()
      guard index == 0, let first = line.first, case .waiting(let continuation) = first.standing
      else { return nil }
      line[0].standing = .first
      return continuation
    }
    next?.resume(returning: true)
  }
}
