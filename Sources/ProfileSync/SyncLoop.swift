/// What `keepSynchronized` does next, as a value: it is told what happened and answers what to do. No
/// clock, no chance, no I/O inside.
///
/// After a pass it waits, outside of any pass and lock, for a change at the hub or on this device: by
/// the hub's events where they can be listened to, else by long polls, else by a look from time to time. A
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
    /// The store is suspended.
    case suspended
  }

  /// What a pass that came to its end leaves.
  package struct Standing: Hashable, Sendable {
    /// Others wrote faster than it read.
    package var hasMore = false
    /// The longest long poll that the hub takes, in seconds; 0: none.
    package var waitSeconds = 0
    /// When the next held mutation is to be tried, or the next that the hub wants later.
    package var due: Duration?
    /// The transport can listen to the hub's events.
    package var canListen = false

    package init(
      hasMore: Bool = false, waitSeconds: Int = 0, due: Duration? = nil,
      canListen: Bool = false
    ) {
      self.hasMore = hasMore
      self.waitSeconds = waitSeconds
      self.due = due
      self.canListen = canListen
    }
  }

  /// What has ended a wait.
  package enum Wake: Hashable, Sendable {
    /// The hub has something new.
    case hub
    /// The hub had nothing new for as long as it was asked to wait.
    case quiet
    /// The stream of events says that the account has moved on.
    case hint
    /// The stream has said nothing for so long that the hub is asked whether that is so.
    case unheard
    /// The stream is over.
    case streamOver(StreamEnd)
    /// Something was enqueued, by this process or another.
    case outbox
    case timeUp
    /// The session says something else than before.
    case session(isOurs: Bool, isNewSignIn: Bool)
    /// Somebody else's pass of the area has ended well.
    case pass
    /// The store is not suspended any more.
    case resumed
  }

  /// How a stream of events ended.
  package enum StreamEnd: Hashable, Sendable {
    /// It had been of use for a while.
    case steady
    /// It did not come about, did not say hello in time, or broke soon.
    case broken
    /// The hub has none.
    case notThere
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

  /// How the hub's events are listened to. The stream stays open over passes.
  package struct Stream: Hashable, Sendable {
    /// The pause before a new one.
    package var after: Duration
    /// How long nothing may be heard.
    package var silenceMax: Duration

    package init(after: Duration, silenceMax: Duration) {
      self.after = after
      self.silenceMax = silenceMax
    }
  }

  /// A wait, and what can end it beside a session that says something else.
  package struct Wait: Hashable, Sendable {
    package var reason: SyncWait
    package var poll: Poll?
    /// nil: no stream is open meanwhile.
    package var stream: Stream?
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

  /// Between two long polls, or streams, that brought nothing, at most.
  static let quietPauseMax = Duration.seconds(1)
  /// A stream that is there and says nothing is believed for so long. A hub, or what stands before it,
  /// that keeps a stream alive and loses its events is found out so, at the cost of six requests an
  /// hour where long polls take 65.
  package static let streamSilenceMax = Duration.seconds(600)
  /// For how many waits a stream is not tried again, at most: an hour of long polls.
  static let streamRestMax = 64

  /// What was ordered last, and stands until an event that belongs to it.
  package private(set) var order = Action.look
  private let pollInterval: Duration
  private let reports: Bool
  private var standing = Standing()
  private(set) var failureCount = 0
  /// Long polls in a row that have failed, while passes may succeed: a proxy that cuts them.
  private var pollFailureCount = 0
  /// Streams in a row that were of no use.
  private var streamFailureCount = 0
  /// For how many waits the hub is still asked by polls, since streams were of no use.
  private var streamRest = 0
  /// What the suspension of the store has put off.
  private var suspended: Action?
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
    case (.stop, _): break
    case (.wait(let wait), .failed(.suspended)) where wait.reason == .forResume: break
    case (_, .failed(.suspended)):
      suspended = order
      order = .wait(Wait(reason: .forResume))
    case (.look, .looked(isOurs: true)): order = .pass
    case (.look, .looked(isOurs: false)): order = .wait(Wait(reason: .forSignIn))
    case (.pass, .passed(let standing)): order = passed(standing)
    case (.pass, .failed(let failure)): order = failed(failure, chance)
    case (.wait(let wait), .failed(let failure)) where wait.poll != nil:
      if case .later = failure {
        pollFailureCount += 1
        failureCount = max(failureCount, pollFailureCount - 1)
      }
      order = failed(failure, chance)
    case (.wait(let wait), .failed(let failure)) where wait.stream != nil:
      if case .later = failure { restFromStreams(.broken) }
      order = failed(failure, chance)
    case (.wait(let wait), .woke(let wake)): order = woke(wake, wait, chance)
    default: break
    }
    return order
  }

  private mutating func passed(_ now: Standing) -> Action {
    standing = now
    failureCount = 0
    pausing = nil
    if now.hasMore { return .pass }
    return idle(after: now.waitSeconds > 0 ? .zero : pollInterval)
  }

  /// Waits for a change, wherever it is made.
  /// - Parameters:
  ///   - pause: before a poll.
  ///   - streamPause: before a stream.
  private mutating func idle(after pause: Duration, _ streamPause: Duration = .zero) -> Action {
    var wait = Wait(reason: .forChanges)
    if standing.canListen, streamRest == 0 {
      wait.stream = Stream(after: streamPause, silenceMax: Self.streamSilenceMax)
    } else {
      streamRest = max(0, streamRest - 1)
      wait.poll = Poll(after: pause, seconds: standing.waitSeconds)
    }
    wait.timeUp = standing.due
    wait.seesOutbox = true
    return .wait(wait)
  }

  /// Streams are of no use: the hub is asked by polls, each time for longer.
  private mutating func restFromStreams(_ end: StreamEnd) {
    streamFailureCount += 1
    streamRest =
      end == .notThere
      ? Self.streamRestMax : min(1 << min(streamFailureCount, 16), Self.streamRestMax)
  }

  private mutating func streamOver(_ end: StreamEnd, _ chance: Double) -> Action {
    if end == .steady { streamFailureCount = 0 } else { restFromStreams(end) }
    // All streams of a hub end when it stops: their clients do not come back at the same moment.
    return idle(after: Self.quietPauseMax * chance, Self.quietPauseMax * chance)
  }

  private mutating func failed(_ failure: Failure, _ chance: Double) -> Action {
    pausing = nil
    switch failure {
    case .lookAgain, .suspended: return .look
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
    case (.resumed, .forResume):
      defer { suspended = nil }
      return suspended ?? .look
    // Who is signed in is looked at when it goes on.
    case (_, .forResume): return order
    case (.session(isOurs: false, _), .forSignIn): return order
    case (.session(isOurs: false, _), _): return .wait(Wait(reason: .forSignIn))
    case (.session, .forSignIn): return pausing.map { .wait($0) } ?? .pass
    // A new sign-in or token is not a reason to be faster than the hub has asked for.
    case (.session, .toTryAgain): return order
    case (.session(_, isNewSignIn: false), .forChanges): return idle(after: .zero)
    case (.session, _): return .pass
    case (.hint, _) where wait.stream != nil:
      streamFailureCount = 0
      return .pass
    case (.streamOver(let end), _) where wait.stream != nil: return streamOver(end, chance)
    case (.unheard, _) where wait.stream != nil && wait.poll == nil:
      var look = wait
      look.poll = Poll(after: .zero, seconds: 0)
      return .wait(look)
    case (.hub, _) where wait.poll != nil:
      // The stream has not told of it.
      if wait.stream != nil { restFromStreams(.broken) }
      return .pass
    case (.quiet, _) where wait.poll != nil && wait.stream != nil: return idle(after: .zero)
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
