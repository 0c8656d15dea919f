/// How long to wait before a pass is tried again. A value; the app has the clock.
///
/// As the hub said (`Retry-After`, up to 5 minutes), else with full jitter: any time up to a bound
/// that doubles with each failure, from 1 second to 5 minutes, so that many devices do not come back
/// at the same moment. (Protocol's last table, rows 429, 503 and 5xx.)
public enum RetryPause {
  /// The bound after the first failure.
  public static let first = Duration.seconds(1)
  /// The longest pause.
  public static let longest = Duration.seconds(300)

  /// The pause before the next attempt.
  /// - Parameters:
  ///   - error: what stopped the last pass.
  ///   - failureCount: how many passes in a row have failed, that one included; from 1.
  ///   - generator: where chance comes from.
  /// - Returns: nil when trying again does not help by itself; see ``SyncError/retryClass``.
  public static func after(
    _ error: SyncError, failureCount: Int, using generator: inout some RandomNumberGenerator
  ) -> Duration? {
    switch error.retryClass {
    case .now: return .zero
    case .needsTheApp, .never: return nil
    case .later: break
    }
    if let asked = error.retryAfter { return min(asked, longest) }
    // 53 random bits make a fraction of one.
    return pause(
      failureCount: failureCount, chance: Double(generator.next() >> 11) * 0x1p-53)
  }

  /// Full jitter.
  /// - Parameter chance: from 0 up to 1.
  package static func pause(failureCount: Int, chance: Double) -> Duration {
    let doublings = min(max(failureCount, 1) - 1, 16)
    return min(first * (1 << doublings), longest) * chance
  }

  /// The same, with the system's chance.
  public static func after(_ error: SyncError, failureCount: Int) -> Duration? {
    var generator = SystemRandomNumberGenerator()
    return after(error, failureCount: failureCount, using: &generator)
  }
}
