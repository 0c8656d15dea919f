import Synchronization

/// A commit that runs beside the fetching or sending: of what, and what comes of it.
final class RunningCommit<Group: Sendable, Outcome: Sendable>: Sendable {
  private let isOver = Atomic(false)
  private let task = Mutex<Task<Outcome, any Error>?>(nil)
  let group: Group

  init(_ group: Group, _ commit: @escaping @Sendable () async throws -> Outcome) {
    self.group = group
    task.withLock { task in
      task = Task {
        defer { isOver.store(true, ordering: .releasing) }
        return try await commit()
      }
    }
  }

  /// Whether ``wait()`` would not wait.
  var hasEnded: Bool { isOver.load(ordering: .acquiring) }

  /// Waits for its end, also in a cancelled task: what is being written is not left alone.
  /// - Throws: what the commit threw.
  func wait() async throws -> Outcome {
    guard let task = task.withLock({ $0 }) else {
      preconditionFailure("a commit was begun without its task")
    }
    return try await task.value
  }
}
