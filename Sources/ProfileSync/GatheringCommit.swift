import Synchronization

/// A commit that waits a moment for more to join it, then runs beside the sending: of what, and what
/// comes of it.
///
/// A hub close by answers faster than a commit is durable: what it has answered meanwhile costs little
/// more in the same commit. One that takes its time is not waited for.
final class GatheringCommit<Item: Sendable, Outcome: Sendable>: Sendable {
  private enum Stage {
    /// Others may join.
    case gathering
    case running
    case over
  }

  private struct State {
    var stage = Stage.gathering
    var items: [Item]
  }

  private let state: Mutex<State>
  private let countMax: Int
  private let pause: Task<Void, Never>?
  private let task = Mutex<Task<Outcome, any Error>?>(nil)

  /// - Parameters:
  ///   - items: what is committed in any case.
  ///   - patience: how long others may join, unless there are `countMax` before, or somebody waits.
  init(
    _ items: [Item], countMax: Int, patience: Duration, clock: any Clock<Duration>,
    _ commit: @escaping @Sendable ([Item]) async throws -> Outcome
  ) {
    state = Mutex(State(items: items))
    self.countMax = countMax
    // It only ever ends earlier than it has to, when it is cancelled or the clock fails.
    pause =
      items.count < countMax && patience > .zero
      ? Task { try? await clock.sleep(for: patience) } : nil
    task.withLock { task in
      task = Task {
        await self.pause?.value
        defer { self.state.withLock { $0.stage = .over } }
        return try await commit(self.begin())
      }
    }
  }

  private func begin() -> [Item] {
    state.withLock { state in
      state.stage = .running
      return state.items
    }
  }

  /// - Returns: false when it has begun without.
  func join(_ item: Item) -> Bool {
    let (hasJoined, isFull) = state.withLock { state in
      guard state.stage == .gathering, state.items.count < countMax else { return (false, false) }
      state.items.append(item)
      return (true, state.items.count == countMax)
    }
    if isFull { pause?.cancel() }
    return hasJoined
  }

  /// All that it commits, or has.
  var items: [Item] { state.withLock { $0.items } }

  /// Whether ``wait()`` would not wait.
  var hasEnded: Bool { state.withLock { $0.stage == .over } }

  /// Waits for its end, also in a cancelled task: what is being written is not left alone. Nobody else
  /// is waited for any more.
  /// - Throws: what the commit threw.
  func wait() async throws -> Outcome {
    pause?.cancel()
    guard let task = task.withLock({ $0 }) else {
      preconditionFailure("a commit was begun without its task")
    }
    return try await task.value
  }
}
