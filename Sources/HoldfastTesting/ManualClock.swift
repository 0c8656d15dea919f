import Synchronization

/// A clock whose time goes on only when a test says so: for every place that takes an
/// `any Clock<Duration>`.
///
/// ```swift
/// let clock = ManualClock()
/// let loop = Task {
///   try await profile.keepSynchronized(account: account, pace: SyncPace(clock: clock))
/// }
/// try await clock.waitForSleepers()
/// clock.advance(by: .seconds(60))
/// ```
///
/// A test waits for those who sleep instead of sleeping itself. No wake-up is lost: whoever begins to
/// sleep towards a deadline that has passed goes on at once. It may be used from many tasks.
public final class ManualClock: Clock {
  /// A moment of this clock.
  public struct Instant: InstantProtocol {
    /// From the clock's beginning.
    public var offset: Duration

    /// The moment that is so long after the clock's beginning.
    public init(offset: Duration) { self.offset = offset }

    /// The moment that is so much later.
    public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

    /// From this moment to another one.
    public func duration(to other: Instant) -> Duration { other.offset - offset }

    /// Earlier or later.
    public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
  }

  private struct Sleeper {
    var deadline: Duration
    /// Counts arrivals: of two with one deadline the earlier one wakes first.
    var arrival: UInt64
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct Watcher {
    var holds: @Sendable ([Duration]) -> Bool
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var now: Duration
    var lastID: UInt64 = 0
    var sleepers: [UInt64: Sleeper] = [:]
    var watchers: [UInt64: Watcher] = [:]

    var sleeping: [Duration] { sleepers.values.map { $0.deadline - now }.sorted() }

    mutating func nextID() -> UInt64 {
      lastID += 1
      return lastID
    }

    /// Moves on, and takes out who wakes by that, in their order.
    mutating func move(to moment: Duration) -> [Sleeper] {
      precondition(moment >= now, "HoldfastTesting: a manual clock does not go back")
      now = moment
      let due = sleepers.filter { $0.value.deadline <= moment }
      for id in due.keys { sleepers[id] = nil }
      return due.values.sorted { ($0.deadline, $0.arrival) < ($1.deadline, $1.arrival) }
    }

    /// Takes out who waited for those who sleep to be as they are.
    mutating func satisfied() -> [Watcher] {
      guard !watchers.isEmpty else { return [] }
      let sleeping = sleeping
      let satisfied = watchers.filter { $0.value.holds(sleeping) }
      for id in satisfied.keys { watchers[id] = nil }
      return Array(satisfied.values)
    }
  }

  private let state: Mutex<State>

  /// Makes a clock that stands.
  /// - Parameter offset: where it begins; zero by default.
  public init(offset: Duration = .zero) { state = Mutex(State(now: offset)) }

  /// The moment at which it stands.
  public var now: Instant { Instant(offset: state.withLock(\.now)) }

  /// Zero: every sleep ends exactly at its deadline.
  public var minimumResolution: Duration { .zero }

  /// How long those who sleep have still to sleep, the shortest first.
  public var sleeping: [Duration] { state.withLock(\.sleeping) }

  // MARK: Time

  /// Lets time pass, and wakes whoever's deadline that reaches: by deadline, then in the order in which
  /// they began to sleep.
  /// - Parameter duration: zero or more; time does not go back.
  public func advance(by duration: Duration) {
    wake(state.withLock { $0.move(to: $0.now + duration) })
  }

  /// Lets time pass up to a moment, as ``advance(by:)`` does.
  /// - Parameter moment: ``now`` or later.
  public func advance(to moment: Instant) {
    wake(state.withLock { $0.move(to: moment.offset) })
  }

  /// Lets time pass up to the earliest deadline, and wakes those who have it.
  /// - Returns: the moment that it is now; nil when nobody sleeps, and no time passed.
  @discardableResult
  public func advanceToNextDeadline() -> Instant? {
    let woken: (sleepers: [Sleeper], now: Duration)? = state.withLock { state in
      guard let next = state.sleepers.values.map(\.deadline).min() else { return nil }
      return (state.move(to: max(next, state.now)), state.now)
    }
    guard let woken else { return nil }
    wake(woken.sleepers)
    return Instant(offset: woken.now)
  }

  private func wake(_ sleepers: [Sleeper]) {
    for sleeper in sleepers { sleeper.continuation.resume() }
  }

  /// Sleeps until the clock was moved to a moment, or beyond it.
  /// - Parameters:
  ///   - deadline: the moment; one that has passed ends it at once.
  ///   - tolerance: not looked at.
  /// - Throws: `CancellationError` as soon as the task is cancelled.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    let id = state.withLock { $0.nextID() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let (result, satisfied): (Result<Void, any Error>?, [Watcher]) = state.withLock { state in
          // A handler that ran before this has found nobody to wake.
          if Task.isCancelled { return (.failure(CancellationError()), []) }
          if deadline.offset <= state.now { return (.success(()), []) }
          state.sleepers[id] = Sleeper(
            deadline: deadline.offset, arrival: id, continuation: continuation)
          return (nil, state.satisfied())
        }
        if let result { continuation.resume(with: result) }
        for watcher in satisfied { watcher.continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation
        .resume(throwing: CancellationError())
    }
  }

  // MARK: Waiting for those who sleep

  /// Waits until at least so many sleep: what a test does before it moves the clock.
  /// - Throws: `CancellationError` as soon as the task is cancelled.
  public func waitForSleepers(_ count: Int = 1) async throws {
    try await waitForSleepers { $0.count >= count }
  }

  /// Waits until those who sleep are as a test wants them.
  /// - Parameter holds: is given what ``sleeping`` says, at once and whenever somebody begins to
  ///   sleep. It must not use the clock.
  /// - Throws: `CancellationError` as soon as the task is cancelled.
  public func waitForSleepers(where holds: @escaping @Sendable ([Duration]) -> Bool) async throws {
    let id = state.withLock { $0.nextID() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result: Result<Void, any Error>? = state.withLock { state in
          if Task.isCancelled { return .failure(CancellationError()) }
          if holds(state.sleeping) { return .success(()) }
          state.watchers[id] = Watcher(holds: holds, continuation: continuation)
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      state.withLock { $0.watchers.removeValue(forKey: id) }?.continuation
        .resume(throwing: CancellationError())
    }
  }
}
