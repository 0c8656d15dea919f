/// Whom the next commit waits for: tasks that write again and again, and come back when a commit of
/// theirs is done.
///
/// Without it they fall into two halves, of which one waits while the other commits, and each commit
/// serves half of them at the price of the whole. So behind a commit of several writes the next one
/// waits until as many are in the line as were told or waited then, as long as more keep coming. One
/// that waits in vain is followed by more and more that do not wait.
struct ReturningWriters {
  /// Nobody comes for so long: nobody else will. A quarter of what the last commit took, within this.
  static let pauseRange = Duration.microseconds(40)...Duration.microseconds(250)
  /// After waiting in vain so many commits do not wait, at most.
  static let skipCountMax = 64

  /// What a commit waits for.
  struct Wait: Equatable {
    /// So many writes in the line.
    var count: Int
    /// The longest time between two that come.
    var pause: Duration
    /// The longest time in all: as long as a commit takes.
    var durationMax: Duration
  }

  private var next: Wait?
  private var servedAt: ContinuousClock.Instant?
  private var skipCount = 0
  private var skipsLeft = 0

  /// A commit that began at `start` has ended and told `count` tasks; `waiting` others came meanwhile.
  mutating func note(
    served count: Int, waiting: Int, since start: ContinuousClock.Instant,
    now: ContinuousClock.Instant
  ) {
    servedAt = now
    let duration = now - start
    next =
      count < 2
      ? nil
      : Wait(
        count: min(count + waiting, Environment.groupCountMax),
        pause: min(max(duration / 4, Self.pauseRange.lowerBound), Self.pauseRange.upperBound),
        durationMax: duration)
  }

  /// A commit is about to begin.
  /// - Returns: what it waits for; nil when it does not wait. It never does for one that comes alone, or
  ///   later than a pause behind the last commit.
  mutating func wait(now: @autoclosure () -> ContinuousClock.Instant) -> Wait? {
    guard let wait = next, let servedAt else { return nil }
    next = nil
    guard skipsLeft == 0 else {
      skipsLeft -= 1
      return nil
    }
    return now() - servedAt < wait.pause ? wait : nil
  }

  /// It has waited.
  mutating func note(came: Bool) {
    skipCount = came ? 0 : min(max(1, skipCount * 2), Self.skipCountMax)
    skipsLeft = skipCount
  }
}
