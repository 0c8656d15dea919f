import Synchronization

/// The tasks that find answers, so that a stop can end the waits among them.
final class AnsweringTasks: Sendable {
  private struct State {
    var nextNumber = 0
    var tasks: [Int: Task<Void, Never>] = [:]
  }

  private let state = Mutex(State())

  /// Runs a task and knows it until it has ended.
  func add(_ operation: @escaping @Sendable () async -> Void) {
    state.withLock { state in
      let number = state.nextNumber
      state.nextNumber += 1
      // It cannot end before it is in the table: its own removal waits for this lock.
      state.tasks[number] = Task { [self] in
        await operation()
        remove(number)
      }
    }
  }

  /// Cancels those that run now.
  func cancelAll() {
    let tasks = state.withLock { Array($0.tasks.values) }
    for task in tasks { task.cancel() }
  }

  private func remove(_ number: Int) {
    state.withLock { _ = $0.tasks.removeValue(forKey: number) }
  }
}
