/// How `keepSynchronized` paces itself: its intervals, its clock and its chance.
public struct SyncPace: Sendable {
  /// What happens when a pass stops for a reason that only the app, or a person, can end.
  public enum Stopping: Sendable, Hashable {
    /// The call throws it.
    case throwing
    /// It is told to `Profile.syncEvents`, and nothing is sent until there is another sign-in or
    /// token, or until a pass that the app has called ends well. What a closure of the app throws, and
    /// a store that cannot be read or written, is tried again after a pause.
    case reporting
  }

  /// Between two looks at the hub where it takes no long poll; a minute by default.
  public var pollInterval: Duration
  /// How often a session that is no `AppSession`, and the outbox, which another process may have
  /// written to, are looked at while nothing else happens; 5 seconds by default. Cost: one short read.
  public var lookInterval: Duration
  /// What happens when the app has to do something first; `throwing` by default.
  public var stopping: Stopping
  /// The clock that pauses are measured by; one that goes on while the device sleeps, by default.
  public var clock: any Clock<Duration>
  /// Chance, from 0 up to 1, for pauses; the system's by default.
  public var chance: @Sendable () -> Double

  /// The defaults, but for what is given.
  public init(
    pollInterval: Duration = .seconds(60), lookInterval: Duration = .seconds(5),
    stopping: Stopping = .throwing, clock: any Clock<Duration> = ContinuousClock(),
    chance: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    self.pollInterval = pollInterval
    self.lookInterval = lookInterval
    self.stopping = stopping
    self.clock = clock
    self.chance = chance
  }
}
