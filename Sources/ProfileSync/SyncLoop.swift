/// What `keepSynchronized` does next, as a value: it is told what happened and answers what to do. No
/// clock, no chance, no I/O inside.
///
/// After a pass it waits, outside of any pass and lock, for a change at the hub or on this device. A
/// pass that failed is tried again after a pause, which nothing but time ends: a person who goes on
/// typing does not make it shorter than the hub has asked for. While the account is not the one that
/// is signed in, and after a refused token, nothing is sent.
package struct SyncLoop: Hashable, Sendable {
  /// Why a pass, or a look for changes, has failed.
  package enum Failure: Hashable, Sendable {
    /// Trying again may help; no code: a closure of the app threw, or the store could not be used.
    case later(SyncError.Code?, retryAfter: Duration?)
    /// The session is not what it was.
    case lookAgain
    /// The hub refuses the token.
    case needsToken
    /// The app has to do something first.
    case needsTheApp(SyncError.Code)
  }

  /// What a pass that came to its end leaves.
  package struct Standing: Hashable, Sendable {
    /// Others wrote faster than it read.
    package var hasMore = false
    /// The longest long poll that the hub takes, in seconds; 0: none.
    package var waitSeconds = 0
    /// When the next held mutation is to be tried.
    package var heldDue: Duration?
    /// The hub wants some mutations later.
    package var hasDeferred = false

    package init(
      hasMore: Bool = false, waitSeconds: Int = 0, heldDue: Duration? = nil,
      hasDeferred: Bool = false
    ) {
      self.hasMore = hasMore
      self.waitSeconds = waitSeconds
      self.heldDue = heldDue
      self.hasDeferred = hasDeferred
    }
  }

  /// What has ended a wait.
  package enum Wake: Hashable, Sendable {
    /// The hub has something new.
    case hub
    /// The hub had nothing new for as long as it was asked to wait.
    case quiet
    /// Something was enqueued, by this process or another.
    case outbox
    case timeUp
    /// The session says something else than before.
    case session(isOurs: Bool, isNewSignIn: Bool)
    /// Somebody else's pass of the area has ended well.
    case pass
  }

  package enum Event: Hashable, Sendable {
    /// Whether the session says the account.
    case looked(isOurs: Bool)
    case passed(Standing)
    case failed(Failure)
    case woke(Wake)
  }

  /// How the hub is asked for changes.
  package struct Poll: Hashable, Sendable {
    /// The pause before it.
    package var after: Duration
    /// How long the hub may wait.
    package var seconds: Int

    package init(after: Duration, seconds: Int) {
      self.after = after
      self.seconds = seconds
    }
  }

  /// A wait, and what can end it beside a session that says something else.
  package struct Wait: Hashable, Sendable {
    package var reason: SyncWait
    package var poll: Poll?
    package var timeUp: Duration?
    package var seesOutbox = false
    package var seesPasses = false

    package init(reason: SyncWait) { self.reason = reason }
  }

  package enum Action: Hashable, Sendable {
    /// Look who is signed in.
    case look
    case pass
    case wait(Wait)
    /// Throw what stopped the last pass.
    case stop(SyncError.Code)
  }

  /// Between two long polls that brought nothing, at most.
  static let quietPauseMax = Duration.seconds(1)

  /// What was ordered last, and stands until an event that belongs to it.
  package private(set) var order = Action.look
  private let pollInterval: Duration
  private let reports: Bool
  private var standing = Standing()
  private(set) var failureCount = 0
  /// Long polls in a row that have failed, while passes may succeed: a proxy that cuts them.
  private var pollFailureCount = 0
  private var deferredCount = 0
  /// The pause after the last failure: signing out and in does not make it shorter.
  private var pausing: Wait?

  /// - Parameters:
  ///   - pollInterval: between two looks where the hub takes no long poll.
  ///   - reports: what needs the app is waited for; else it stops.
  package init(pollInterval: Duration, reports: Bool) {
    self.pollInterval = pollInterval
    self.reports = reports
  }

  /// The next action after an event. An event that does not belong to what was ordered changes
  /// nothing: the order stands.
  /// - Parameter chance: from 0 up to 1, new each time.
  package mutating func handle(_ event: Event, chance: Double) -> Action {
    switch (order, event) {
    case (.look, .looked(isOurs: true)): order = .pass
    case (.look, .looked(isOurs: false)): order = .wait(Wait(reason: .forSignIn))
    case (.pass, .passed(let standing)): order = passed(standing, chance)
    case (.pass, .failed(let failure)): order = failed(failure, chance)
    case (.wait(let wait), .failed(let failure)) where wait.poll != nil:
      if case .later = failure {
        pollFailureCount += 1
        failureCount = max(failureCount, pollFailureCount - 1)
      }
      order = failed(failure, chance)
    case (.wait(let wait), .woke(let wake)): order = woke(wake, wait, chance)
    default: break
    }
    return order
  }

  private mutating func passed(_ now: Standing, _ chance: Double) -> Action {
    standing = now
    failureCount = 0
    pausing = nil
    deferredCount = now.hasDeferred ? deferredCount + 1 : 0
    if now.hasMore { return .pass }
    if now.hasDeferred {
      let pause = RetryPause.pause(failureCount: deferredCount, chance: chance)
      standing.heldDue = min(now.heldDue ?? pause, pause)
    }
    return idle(after: now.waitSeconds > 0 ? .zero : pollInterval)
  }

  /// Waits for a change, wherever it is made.
  private func idle(after pause: Duration) -> Action {
    var wait = Wait(reason: .forChanges)
    wait.poll = Poll(after: pause, seconds: standing.waitSeconds)
    wait.timeUp = standing.heldDue
    wait.seesOutbox = true
    return .wait(wait)
  }

  private mutating func failed(_ failure: Failure, _ chance: Double) -> Action {
    pausing = nil
    switch failure {
    case .lookAgain: return .look
    case .needsToken: return .wait(Wait(reason: .forNewToken))
    case .needsTheApp(let code):
      guard reports else { return .stop(code) }
      var wait = Wait(reason: .forTheApp(code))
      wait.seesPasses = true
      return .wait(wait)
    case .later(_, let retryAfter):
      failureCount += 1
      let pause =
        retryAfter.map { min($0, RetryPause.longest) }
        ?? RetryPause.pause(failureCount: failureCount, chance: chance)
      var wait = Wait(reason: .toTryAgain(after: pause))
      wait.timeUp = pause
      pausing = wait
      return .wait(wait)
    }
  }

  private mutating func woke(_ wake: Wake, _ wait: Wait, _ chance: Double) -> Action {
    if wait.poll != nil, wake == .quiet || wake == .hub { pollFailureCount = 0 }
    switch (wake, wait.reason) {
    case (.session(isOurs: false, _), .forSignIn): return order
    case (.session(isOurs: false, _), _): return .wait(Wait(reason: .forSignIn))
    case (.session, .forSignIn): return pausing.map { .wait($0) } ?? .pass
    // A new sign-in or token is not a reason to be faster than the hub has asked for.
    case (.session, .toTryAgain): return order
    case (.session(_, isNewSignIn: false), .forChanges): return idle(after: .zero)
    case (.session, _): return .pass
    case (.hub, _) where wait.poll != nil: return .pass
    case (.quiet, _) where wait.poll != nil:
      return idle(
        after: standing.waitSeconds > 0 ? Self.quietPauseMax * chance : pollInterval)
    case (.outbox, _) where wait.seesOutbox: return .pass
    case (.timeUp, _) where wait.timeUp != nil: return .pass
    case (.pass, _) where wait.seesPasses: return .pass
    default: return order
    }
  }
}
