import ProfileSync
import Testing

private typealias Event = SyncLoop.Event
private typealias Action = SyncLoop.Action
private typealias Wait = SyncLoop.Wait

/// Where the loop stands after a list of events, and what leads on from there.
private struct LoopStand: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let reports: Bool
  let events: [Event]
  /// What each event that belongs there leads to; every other one changes nothing.
  let next: [Event: Action]

  /// - Parameter isOver: nothing leads on; everywhere else a suspension of the store does.
  init(
    _ name: String, reports: Bool = false, isOver: Bool = false, _ events: [Event],
    _ next: [Event: Action]
  ) {
    testDescription = name
    self.reports = reports
    self.events = events
    self.next = isOver ? next : next.merging([suspended: wait(.forResume)]) { $1 }
  }

  /// Chance is always a half here.
  var loop: SyncLoop {
    var loop = SyncLoop(pollInterval: .seconds(60), reports: reports)
    for event in events { _ = loop.handle(event, chance: 0.5) }
    return loop
  }
}

private func wait(_ reason: SyncWait, _ change: (inout Wait) -> Void = { _ in }) -> Action {
  var wait = Wait(reason: reason)
  change(&wait)
  return .wait(wait)
}

private func idle(after: Duration, seconds: Int = 0, due: Duration? = nil) -> Action {
  wait(.forChanges) {
    $0.poll = SyncLoop.Poll(after: after, seconds: seconds)
    $0.timeUp = due
    $0.seesOutbox = true
  }
}

private func listens(
  after: Duration = .zero, due: Duration? = nil, looking: Bool = false
) -> Action {
  wait(.forChanges) {
    $0.stream = SyncLoop.Stream(after: after, silenceMax: .seconds(600))
    if looking { $0.poll = SyncLoop.Poll(after: .zero, seconds: 0) }
    $0.timeUp = due
    $0.seesOutbox = true
  }
}

private func pause(_ duration: Duration) -> Action {
  wait(.toTryAgain(after: duration)) { $0.timeUp = duration }
}

private let signedOut = wait(.forSignIn)
private let ours = Event.woke(.session(isOurs: true, isNewSignIn: true))
private let newToken = Event.woke(.session(isOurs: true, isNewSignIn: false))
private let others = Event.woke(.session(isOurs: false, isNewSignIn: true))
private let nobody = Event.woke(.session(isOurs: false, isNewSignIn: false))
private let later = Event.failed(.later(.hubUnavailable, retryAfter: nil))
private let asked = Event.failed(.later(.hubUnavailable, retryAfter: .seconds(7)))
private let forHours = Event.failed(.later(.badAnswer, retryAfter: .seconds(40_000)))
private let needsTheApp = Event.failed(.needsTheApp(.epochChanged))
private let quietHub = Event.passed(SyncLoop.Standing())
private let pollingHub = Event.passed(SyncLoop.Standing(waitSeconds: 55))
private let holding = Event.passed(SyncLoop.Standing(waitSeconds: 55, due: .seconds(90)))
private let suspended = Event.failed(.suspended)
private let outrun = Event.passed(SyncLoop.Standing(hasMore: true))

private let listening = Event.passed(SyncLoop.Standing(waitSeconds: 55, canListen: true))
private let listeningHolding = Event.passed(
  SyncLoop.Standing(due: .seconds(90), canListen: true))

private let begun: [Event] = [.looked(isOurs: true)]

/// What a failed pass or look for changes leads to.
private let failures: [Event: Action] = [
  later: pause(.seconds(0.5)), asked: pause(.seconds(7)), forHours: pause(.seconds(300)),
  .failed(.lookAgain): .look, .failed(.needsToken): wait(.forNewToken),
  needsTheApp: .stop(.epochChanged),
]
/// What a session leads to that says something else.
private let sessions: [Event: Action] = [
  ours: .pass, newToken: .pass, others: signedOut, nobody: signedOut,
]

private let stands: [LoopStand] = [
  LoopStand(
    "at the beginning", [],
    [.looked(isOurs: true): .pass, .looked(isOurs: false): signedOut]),
  LoopStand(
    "a pass runs", begun,
    failures.merging([
      quietHub: idle(after: .seconds(60)), pollingHub: idle(after: .zero, seconds: 55),
      holding: idle(after: .zero, seconds: 55, due: .seconds(90)),
      outrun: .pass,
      listening: listens(), listeningHolding: listens(due: .seconds(90)),
    ]) { $1 }),
  LoopStand(
    "a pass runs, whose end is only reported", reports: true, begun,
    failures.merging([
      quietHub: idle(after: .seconds(60)), pollingHub: idle(after: .zero, seconds: 55),
      holding: idle(after: .zero, seconds: 55, due: .seconds(90)),
      outrun: .pass,
      listening: listens(), listeningHolding: listens(due: .seconds(90)),
      needsTheApp: wait(.forTheApp(.epochChanged)) { $0.seesPasses = true },
    ]) { $1 }),
  LoopStand(
    "it waits for changes, by long poll", begun + [pollingHub],
    failures.merging([
      .woke(.hub): .pass, .woke(.quiet): idle(after: .seconds(0.5), seconds: 55),
      .woke(.outbox): .pass, ours: .pass, newToken: idle(after: .zero, seconds: 55),
      others: signedOut, nobody: signedOut,
    ]) { $1 }),
  LoopStand(
    "it waits for changes, of a hub that takes no long poll", begun + [quietHub],
    failures.merging([
      .woke(.hub): .pass, .woke(.quiet): idle(after: .seconds(60)), .woke(.outbox): .pass,
      ours: .pass, newToken: idle(after: .zero), others: signedOut, nobody: signedOut,
    ]) { $1 }),
  LoopStand(
    "it waits for changes, and for a held mutation's time", begun + [holding],
    failures.merging([
      .woke(.hub): .pass,
      .woke(.quiet): idle(after: .seconds(0.5), seconds: 55, due: .seconds(90)),
      .woke(.outbox): .pass, .woke(.timeUp): .pass, ours: .pass,
      newToken: idle(after: .zero, seconds: 55, due: .seconds(90)), others: signedOut,
      nobody: signedOut,
    ]) { $1 }),
  LoopStand(
    "it listens to the hub's events", begun + [listening],
    failures.merging([
      .woke(.hint): .pass, .woke(.unheard): listens(looking: true),
      .woke(.streamOver(.steady)): listens(after: .seconds(0.5)),
      .woke(.streamOver(.broken)): idle(after: .seconds(0.5), seconds: 55),
      .woke(.streamOver(.notThere)): idle(after: .seconds(0.5), seconds: 55),
      .woke(.outbox): .pass, ours: .pass, newToken: listens(), others: signedOut,
      nobody: signedOut,
    ]) { $1 }),
  LoopStand(
    "it listens, and looks whether what it has heard is all", begun + [listening, .woke(.unheard)],
    failures.merging([
      .woke(.hint): .pass, .woke(.hub): .pass, .woke(.quiet): listens(),
      .woke(.streamOver(.steady)): listens(after: .seconds(0.5)),
      .woke(.streamOver(.broken)): idle(after: .seconds(0.5), seconds: 55),
      .woke(.streamOver(.notThere)): idle(after: .seconds(0.5), seconds: 55),
      .woke(.outbox): .pass, ours: .pass, newToken: listens(), others: signedOut,
      nobody: signedOut,
    ]) { $1 }),
  LoopStand(
    "it listens, and waits for a held mutation's time", begun + [listeningHolding],
    failures.merging([
      .woke(.hint): .pass,
      .woke(.unheard): listens(due: .seconds(90), looking: true),
      .woke(.streamOver(.steady)): listens(after: .seconds(0.5), due: .seconds(90)),
      .woke(.streamOver(.broken)): idle(after: .seconds(0.5), due: .seconds(90)),
      .woke(.streamOver(.notThere)): idle(after: .seconds(0.5), due: .seconds(90)),
      .woke(.outbox): .pass, .woke(.timeUp): .pass, ours: .pass,
      newToken: listens(due: .seconds(90)), others: signedOut, nobody: signedOut,
    ]) { $1 }),
  // Neither an enqueue nor a new token makes the pause shorter than the hub has asked for.
  LoopStand(
    "it waits to try again", begun + [asked],
    [.woke(.timeUp): .pass, others: signedOut, nobody: signedOut]),
  LoopStand("it waits for a new token", begun + [.failed(.needsToken)], sessions),
  LoopStand(
    "it waits for a sign-in", [.looked(isOurs: false)], [ours: .pass, newToken: .pass]),
  LoopStand(
    "it waits for the app", reports: true, begun + [needsTheApp],
    sessions.merging([.woke(.pass): .pass]) { $1 }),
  LoopStand("it has stopped", isOver: true, begun + [needsTheApp], [:]),
  LoopStand(
    "the store is suspended", isOver: true, begun + [asked, suspended],
    [.woke(.resumed): pause(.seconds(7))]),
]

private let allEvents: [Event] = [
  .looked(isOurs: true), .looked(isOurs: false), quietHub, pollingHub, holding, outrun, suspended,
  .woke(.resumed),
  later, asked, forHours, .failed(.lookAgain), .failed(.needsToken), needsTheApp, .woke(.hub),
  .woke(.quiet), .woke(.outbox), .woke(.timeUp), .woke(.pass), ours, newToken, others, nobody,
  listening, listeningHolding, .woke(.hint), .woke(.unheard), .woke(.streamOver(.steady)),
  .woke(.streamOver(.broken)), .woke(.streamOver(.notThere)),
]

@Suite("What keeps an area synchronized")
struct SyncLoopTests {
  @Test("every event where it belongs leads on, and changes nothing elsewhere", arguments: stands)
  private func table(stand: LoopStand) {
    #expect(Set(stand.next.keys).isSubset(of: allEvents))
    for event in allEvents {
      let before = stand.loop
      var loop = before
      let action = loop.handle(event, chance: 0.5)
      if let next = stand.next[event] {
        #expect(action == next, "\(event)")
        #expect(loop.order == next, "\(event)")
      } else {
        #expect(loop == before, "\(event) changed something")
        #expect(action == before.order, "\(event)")
      }
    }
  }

  @Test("pauses double up to 5 minutes, with full jitter; a pass that ends well begins anew")
  func pauses() {
    var loop = SyncLoop(pollInterval: .seconds(60), reports: false)
    _ = loop.handle(.looked(isOurs: true), chance: 0)
    for _ in 0..<2 {
      for bound in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        #expect(loop.handle(later, chance: 0.25) == pause(.seconds(bound) * 0.25))
        #expect(loop.handle(.woke(.timeUp), chance: 0) == .pass)
      }
      _ = loop.handle(quietHub, chance: 0)
      _ = loop.handle(.woke(.hub), chance: 0)
    }
  }

  @Test("a look for changes that fails counts like a pass that fails")
  func polls() {
    var loop = SyncLoop(pollInterval: .seconds(60), reports: false)
    for event in begun + [pollingHub, later, .woke(.timeUp)] {
      _ = loop.handle(event, chance: 0.5)
    }
    #expect(loop.order == .pass)
    #expect(loop.handle(later, chance: 0.5) == pause(.seconds(1)))
  }

  @Test("long polls that are cut, while passes succeed, make the pauses longer, too")
  func cutPolls() {
    var loop = SyncLoop(pollInterval: .seconds(60), reports: false)
    _ = loop.handle(.looked(isOurs: true), chance: 0)
    for _ in 0..<2 {
      for bound in [1, 2, 4, 8, 16] {
        _ = loop.handle(pollingHub, chance: 0)
        #expect(loop.handle(later, chance: 0.5) == pause(.seconds(bound) * 0.5))
        #expect(loop.handle(.woke(.timeUp), chance: 0) == .pass)
      }
      // One that is answered begins anew.
      _ = loop.handle(pollingHub, chance: 0)
      _ = loop.handle(.woke(.hub), chance: 0)
    }
  }

  @Test("streams of no use are asked for again after more and more waits, 64 at most")
  func streams() {
    var loop = SyncLoop(pollInterval: .seconds(60), reports: false)
    for event in begun + [listening] { _ = loop.handle(event, chance: 0) }
    /// How often the hub is polled until it is listened to again.
    func polls(after end: Event) -> Int {
      var action = loop.handle(end, chance: 0)
      if action == .pass { action = loop.handle(listening, chance: 0) }
      var count = 0
      while action == idle(after: .zero, seconds: 55) {
        count += 1
        action = loop.handle(.woke(.quiet), chance: 0)
      }
      #expect(action == listens())
      return count
    }
    let broken = Event.woke(.streamOver(.broken))
    #expect((1...7).map { _ in polls(after: broken) } == [2, 4, 8, 16, 32, 64, 64])
    // One that was of use begins anew, but for a moment's pause.
    #expect(polls(after: .woke(.hint)) == 0)
    #expect(polls(after: broken) == 2)
    #expect(polls(after: .woke(.streamOver(.steady))) == 0)
    #expect(polls(after: broken) == 2)
    // A hub without one is hardly ever asked again.
    #expect(polls(after: .woke(.streamOver(.notThere))) == 64)
    // What a look has found, and a stream has not told, makes the stream one of no use.
    _ = loop.handle(.woke(.hint), chance: 0)
    for event in [listening, .woke(.unheard)] { _ = loop.handle(event, chance: 0) }
    #expect(polls(after: .woke(.hub)) == 2)
  }

  @Test("signing out and in does not make a pause shorter that the hub has asked for")
  func pauseStays() {
    var loop = SyncLoop(pollInterval: .seconds(60), reports: false)
    for event in begun + [asked] { _ = loop.handle(event, chance: 0.5) }
    let pause = loop.order
    #expect(loop.handle(nobody, chance: 0.5) == signedOut)
    #expect(loop.handle(ours, chance: 0.5) == pause)
    #expect(loop.handle(.woke(.timeUp), chance: 0.5) == .pass)
    _ = loop.handle(quietHub, chance: 0.5)
    #expect(loop.handle(nobody, chance: 0.5) == signedOut)
    #expect(loop.handle(ours, chance: 0.5) == .pass)
  }

  @Test("a resumed store goes on with what the suspension has put off", arguments: stands)
  private func resumed(stand: LoopStand) {
    guard stand.next[suspended] != nil else { return }
    let before = stand.loop
    var loop = before
    _ = loop.handle(suspended, chance: 0.5)
    #expect(loop != before)
    #expect(loop.handle(.woke(.resumed), chance: 0.5) == before.order)
    #expect(loop == before)
  }

  @Test(
    "an error leads to one of four things",
    arguments: [
      (.hubUnreachable, .later(.hubUnreachable, retryAfter: nil)),
      (.hubUnavailable, .later(.hubUnavailable, retryAfter: nil)),
      (.badAnswer, .later(.badAnswer, retryAfter: nil)),
      (.hubNotTrusted, .later(.hubNotTrusted, retryAfter: nil)),
      (.busy, .later(.busy, retryAfter: nil)),
      (.sessionChanged, .lookAgain), (.needsAuthentication, .needsToken),
      (.accountMismatch, .needsTheApp(.accountMismatch)),
      (.epochChanged, .needsTheApp(.epochChanged)),
      (.epochAlreadyLeft, .needsTheApp(.epochAlreadyLeft)),
      (.cursorExpired, .needsTheApp(.cursorExpired)),
      (.appStoreBehind, .needsTheApp(.appStoreBehind)),
      (.badHubAddress, .needsTheApp(.badHubAddress)), (.refused, .needsTheApp(.refused)),
      (.accountDisabled, .needsTheApp(.accountDisabled)),
      (.accountErased, .needsTheApp(.accountErased)),
      (.clientBoundElsewhere, .needsTheApp(.clientBoundElsewhere)),
    ] as [(SyncError.Code, SyncLoop.Failure)])
  func failures(code: SyncError.Code, failure: SyncLoop.Failure) {
    #expect(SyncLoop.Failure(SyncError(code, "of a test")) == failure)
  }
}
