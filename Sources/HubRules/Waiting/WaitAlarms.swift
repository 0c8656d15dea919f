import Synchronization

/// Ends waits whose time is up.
///
/// One task looks four times a second while anybody waits, and none is there otherwise: a timer for
/// each of ten thousand would cost more than the waiting.
final class WaitAlarms: Sendable {
  /// What is needed to take an alarm back.
  struct Alarm {
    fileprivate let key: Key
    fileprivate let tick: Int64
  }

  fileprivate struct Key: Hashable {
    let subscription: UInt64
    let turn: UInt64
  }

  private struct State {
    var wheel = AlarmWheel<Key, Subscription>()
    var isRunning = false
  }

  private static let tick = Duration.milliseconds(250)
  private let state = Mutex(State())
  private let clock: any Clock<Duration>
  private let elapsed: @Sendable () -> Duration

  init(_ clock: any Clock<Duration>) {
    self.clock = clock
    elapsed = WaitAlarms.stopwatch(clock)
  }

  /// Tells how much time has passed since it was made.
  static func stopwatch(_ clock: any Clock<Duration>) -> @Sendable () -> Duration {
    func start<C: Clock>(_ clock: C) -> @Sendable () -> Duration where C.Duration == Duration {
      let start = clock.now
      return { start.duration(to: clock.now) }
    }
    return start(clock)
  }

  /// Sets the alarm of one wait.
  func set(for subscription: Subscription, turn: UInt64, within limit: Duration) -> Alarm {
    let key = Key(subscription: subscription.number, turn: turn)
    guard limit > .zero else {
      subscription.alarm(of: turn)
      return Alarm(key: key, tick: .min)
    }
    // Rounded up: no wait is shorter than was asked for.
    let due = Int64(((elapsed() + limit) / WaitAlarms.tick).rounded(.up))
    let (tick, mustRun) = state.withLock { state in
      let tick = state.wheel.set(key, subscription, at: due)
      defer { state.isRunning = true }
      return (tick, !state.isRunning)
    }
    if mustRun { Task { await run() } }
    return Alarm(key: key, tick: tick)
  }

  /// Takes an alarm back, whether it has rung or not.
  func remove(_ alarm: Alarm) {
    state.withLock { $0.wheel.remove(alarm.key, at: alarm.tick) }
  }

  private func run() async {
    while true {
      // Nobody cancels this task: the sleep ends by time alone.
      try? await clock.sleep(for: WaitAlarms.tick)
      let now = Int64(elapsed() / WaitAlarms.tick)
      let (due, isDone) = state.withLock { state in
        let due = state.wheel.takeDue(through: now)
        if state.wheel.isEmpty { state.isRunning = false }
        return (due, state.wheel.isEmpty)
      }
      // In one order, whatever the wheel's is.
      for alarm in due.sorted(by: { $0.key.subscription < $1.key.subscription }) {
        alarm.value.alarm(of: alarm.key.turn)
      }
      guard !isDone else { return }
    }
  }
}
