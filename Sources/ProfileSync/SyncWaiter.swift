import Foundation
import HubProtocol
import ProfileStore

/// Waits between two passes, outside of any pass, lock and transaction, until one of several things
/// happens.
struct SyncWaiter: Sendable {
  let profile: Profile
  let account: VerifiedAccount
  let session: any AccountSession
  let pace: SyncPace
  let hints: HintLine

  /// What was there before the last pass: whatever came since ends a wait at once.
  struct Seen: Sendable {
    var outbox: UInt64 = 0
    var mark = OutboxMark()
    var passes: UInt64 = 0
    var session = SessionState.unknown
  }

  /// An end of a wait, and the error behind it.
  struct End: Sendable {
    var event: SyncLoop.Event
    var error: (any Error)?

    init(_ event: SyncLoop.Event, _ error: (any Error)? = nil) {
      self.event = event
      self.error = error
    }
  }

  func look() throws -> Seen {
    Seen(
      outbox: profile.area.signals.outbox.count, mark: try profile.area.outboxMark(),
      passes: profile.area.signals.passes.count, session: session.state)
  }

  func isOurs(_ state: SessionState) -> Bool {
    guard case .account(let signedIn) = state else { return false }
    return signedIn.account == account.bytes
  }

  /// - Parameter limits: what the hub announced last.
  func wait(
    _ wait: SyncLoop.Wait, since seen: Seen, _ limits: HubLimits
  ) async throws -> End {
    if wait.reason == .forResume { return try await resumption() }
    return try await withThrowingTaskGroup { group in
      group.addTask { try await suspension() }
      // A long poll and a stream get themselves another token: one that came by it is no reason to
      // begin anew.
      group.addTask {
        try await sessionChange(
          since: seen.session, onlySignIns: wait.poll != nil || wait.stream != nil)
      }
      if let pause = wait.timeUp {
        group.addTask {
          try await pace.clock.sleep(for: pause)
          return End(.woke(.timeUp))
        }
      }
      if let poll = wait.poll { group.addTask { try await self.poll(poll, limits) } }
      if let stream = wait.stream {
        group.addTask { try await hint(stream) }
        if wait.poll == nil {
          group.addTask {
            try await pace.clock.sleep(for: stream.silenceMax)
            return End(.woke(.unheard))
          }
        }
      }
      if wait.seesOutbox {
        group.addTask {
          await profile.area.signals.outbox.wait(past: seen.outbox)
          try Task.checkCancellation()
          return End(.woke(.outbox))
        }
        group.addTask { try await othersSendMore(since: seen.mark) }
      }
      if wait.seesPasses {
        group.addTask {
          await profile.area.signals.passes.wait(past: seen.passes)
          try Task.checkCancellation()
          return End(.woke(.pass))
        }
      }
      defer { group.cancelAll() }
      guard let end = try await group.next() else { throw CancellationError() }
      return end
    }
  }

  /// The store is suspended: its files are let go of, and so is the hub.
  private func suspension() async throws -> End {
    try await suspends(true)
    return End(.failed(.suspended))
  }

  private func resumption() async throws -> End {
    try await suspends(false)
    return End(.woke(.resumed))
  }

  private func suspends(_ isSuspended: Bool) async throws {
    let signal = profile.area.signals.suspensions
    while true {
      let count = signal.count
      if profile.registry.isSuspended(profile.area) == isSuspended { return }
      await signal.wait(past: count)
      try Task.checkCancellation()
    }
  }

  private func sessionChange(
    since seen: SessionState, onlySignIns: Bool
  ) async throws -> End {
    while true {
      let signal = (session as? any SignallingSession)?.changes
      let count = signal?.count ?? 0
      let now = session.state
      let isOther =
        onlySignIns
        ? isOurs(now) != isOurs(seen) || generation(now) != generation(seen) : now != seen
      if isOther {
        return End(
          .woke(.session(isOurs: isOurs(now), isNewSignIn: generation(now) != generation(seen))))
      }
      if let signal {
        await signal.wait(past: count)
        try Task.checkCancellation()
      } else {
        try await pace.clock.sleep(for: pace.lookInterval)
      }
    }
  }

  private func generation(_ state: SessionState) -> UInt64? {
    if case .account(let signedIn) = state { signedIn.generation } else { nil }
  }

  /// What another process enqueues or decides raises no signal in this one.
  private func othersSendMore(since mark: OutboxMark) async throws -> End {
    while true {
      if try profile.area.outboxMark() != mark { return End(.woke(.outbox)) }
      try await pace.clock.sleep(for: pace.lookInterval)
    }
  }

  /// Asks the hub whether there is anything new. What it says is a hint: only a pass takes it in.
  private func poll(_ poll: SyncLoop.Poll, _ limits: HubLimits) async throws -> End {
    try await pace.clock.sleep(for: poll.after)
    guard case .account(let signedIn) = session.state, signedIn.account == account.bytes else {
      return End(.failed(.lookAgain))
    }
    guard let cursor = try profile.area.facts().cursor else { return End(.woke(.hub)) }
    let query = ChangesQuery(
      after: cursor.sequence, epoch: cursor.epoch, limit: 1, waitSeconds: poll.seconds)
    do {
      let caller = try profile.registry.caller(
        for: account, in: profile.area, session, signedIn)
      let response = try await caller.ask(.changes(query), .pull, as: .poll, limits: limits)
      let page = try AnswerBody.outline(from: response)
      try caller.requireOurs(
        response, hub: page.hub, account: page.account, epoch: page.epoch,
        expecting: cursor.epoch)
      if let fault = PageCheck.fault(in: page, asked: query) { throw SyncError.badAnswer(fault) }
      return End(.woke(page.records.isEmpty && page.next <= query.after ? .quiet : .hub))
    } catch let refused as PassRunner.Refused {
      return end(refused)
    } catch let error as SyncError {
      return End(error)
    }
  }

  /// Listens until the hub hints at something that the area has not.
  private func hint(_ order: SyncLoop.Stream) async throws -> End {
    let stream: HintStream
    // A sign-in that came during a pass is not noticed as one here: what was opened before is not its.
    if let open = hints.stream, open.generation == generation(session.state) {
      stream = open
    } else {
      hints.close()
      try await pace.clock.sleep(for: order.after)
      guard case .account(let signedIn) = session.state, signedIn.account == account.bytes else {
        return End(.failed(.lookAgain))
      }
      stream = try hints.open(
        profile.registry.caller(for: account, in: profile.area, session, signedIn), of: profile,
        pace.clock)
    }
    while true {
      let count = stream.changed.count
      if let end = stream.end {
        hints.close()
        return end
      }
      if let cursor = try profile.area.facts().cursor, stream.takeNews(beyond: cursor) {
        return End(.woke(.hint))
      }
      await stream.changed.wait(past: count)
      try Task.checkCancellation()
    }
  }

  private func end(_ refused: PassRunner.Refused) -> End {
    switch refused.action {
    case .stopForSecurity:
      profile.reportSecurityEvent()
      return End(.accountMismatch, refused)
    case .networkTrouble: return End(.badAnswer, refused)
    case .backOff: return End(.hubUnavailable, refused)
    case .refreshToken: return End(.needsAuthentication, refused)
    case .stop(.accountDisabled): return End(.accountDisabled, refused)
    case .stop(.clientBoundElsewhere): return End(.clientBoundElsewhere, refused)
    case .stop: return End(.refused, refused)
    // A pass finds out by itself what that means.
    default: return End(.woke(.hub))
    }
  }
}

extension SyncWaiter.End {
  /// A failure with this code.
  init(_ code: SyncError.Code, _ refused: PassRunner.Refused) {
    self.init(SyncError(code, refusal: refused))
  }

  init(_ error: SyncError) { self.init(.failed(SyncLoop.Failure(error)), error) }
}

extension SyncLoop.Failure {
  /// What an error means for whoever goes on by itself.
  package init(_ error: SyncError) {
    switch error.code {
    case .sessionChanged: self = .lookAgain
    case .needsAuthentication: self = .needsToken
    // A hotel's network, which answers for everybody until one has paid: it goes over by itself.
    case .hubNotTrusted: self = .later(error.code, retryAfter: nil)
    default:
      switch error.retryClass {
      case .now, .later: self = .later(error.code, retryAfter: error.retryAfter)
      case .needsTheApp, .never: self = .needsTheApp(error.code)
      }
    }
  }
}
