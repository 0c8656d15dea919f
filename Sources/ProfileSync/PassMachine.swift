package import Foundation
package import HubProtocol
package import ProfileStore

/// What a pass was called for.
package enum PassGoal: Hashable, Sendable {
  /// Send, then pull.
  case ordinary
  /// From zero, again from its beginning.
  case replay
  /// The next leg of a replay.
  case continuing(scan: UUID)
}

/// One step of a pass: something that the runner does outside every lock and transaction.
package enum PassStep: Hashable, Sendable {
  /// `GET /v1/session` with a nonce.
  case verify
  /// `PUT /v1/clients/{client}`.
  case register
  /// Writes that a scan from zero has begun.
  case begin(ScanState.Kind, epoch: UUID, until: UInt64)
  /// Hands over the hub's versions of discarded mutations' records.
  case discards
  /// Sends the outbox in batches.
  case push
  /// Brings one leg of the scan, and delivers it.
  case leg
  /// The legs are done: raises the cursor.
  case finishLegs
  /// Pulls pages from the cursor.
  case pull
  /// Delivers what the scan did not bring, and ends it.
  case finishScan
}

/// The order of a pass's steps, as a value: it is told what happened and answers what to do next.
/// No clock, no I/O. (Contract sections 5 and 6.)
package struct PassMachine: Sendable {
  /// What the runner tells.
  package enum Event: Sendable {
    case verified(SessionAnswer)
    case done(PassStep)
    /// A push was done, and something was sent.
    case sent
    /// A leg was delivered; `more`: up to `until` there is more.
    case legDelivered(more: Bool)
    /// An answer that is not for use.
    case answered(AnswerAction)
  }

  /// What the runner does.
  package enum Action: Hashable, Sendable {
    case perform(PassStep)
    /// Refresh the token, then perform the step again.
    case refreshToken(then: PassStep)
    /// Remember that the account is erased at the hub, then stop.
    case freeze
    case stop(SyncError.Code)
    /// All done; `continues`: a replay has another leg.
    case finish(continues: Bool)
  }

  private static let anyScan = NSUUID(uuidBytes: [UInt8](repeating: 0, count: 16)) as UUID

  private let goal: PassGoal
  private var hasFinishedScan: Bool
  private var cursor: Cursor?
  private var scan: ScanState?
  private let lineage: [LineageEntry]
  private let isRegistered: Bool
  private let isFrozen: Bool
  private var session: SessionAnswer?
  /// What is still to do, the current step first.
  private var plan: [PassStep] = [.verify]
  private var hasRefreshed = false
  private var hasRegistered = false
  /// Whether a forced scan was finished in this pass.
  private var hasScanned = false

  package init(goal: PassGoal, facts: PassFacts) {
    self.goal = goal
    hasFinishedScan = facts.hasFinishedScan
    cursor = facts.cursor
    scan = facts.scan
    lineage = facts.lineage
    isRegistered = facts.client.isRegistered
    isFrozen = facts.isErasedAtHub
  }

  /// The first action.
  package mutating func start() -> Action {
    if isFrozen { return .stop(.accountErased) }
    if case .continuing(let id) = goal, scan?.id != id || scan?.phase != .legs {
      return .stop(.continuationExpired)
    }
    return .perform(.verify)
  }

  /// The next action after an event.
  package mutating func handle(_ event: Event) -> Action {
    switch event {
    case .verified(let answer):
      session = answer
      if let code = makePlan(answer) { return .stop(code) }
      return next()
    case .done(let step):
      if step == .register { hasRegistered = true }
      if step == .finishScan { hasScanned = true }
      if case .begin(let kind, let epoch, let until) = step {
        // Only kind and epoch count here; the area has the scan itself.
        scan = ScanState(id: PassMachine.anyScan, kind: kind, epoch: epoch, until: until)
      }
      advance(past: step)
      return next()
    case .sent:
      advance(past: .push)
      // What was sent comes back with its versions.
      if plan.isEmpty { plan = [.pull] }
      return next()
    case .legDelivered(let more):
      guard more else {
        advance(past: .leg)
        return next()
      }
      // A scan that nobody asked for goes on; a replay's next leg is the caller's to ask for.
      return goal == .ordinary ? .perform(.leg) : .finish(continues: true)
    case .answered(let action):
      return handle(action)
    }
  }

  private mutating func advance(past step: PassStep) {
    precondition(plan.first == step, "a pass was told of a step that it did not order")
    plan.removeFirst()
  }

  private func next() -> Action {
    plan.first.map { .perform($0) } ?? .finish(continues: false)
  }

  private mutating func handle(_ action: AnswerAction) -> Action {
    guard let step = plan.first else { return .stop(.badAnswer) }
    switch action {
    case .use: return .stop(.badAnswer)
    case .stopForSecurity: return .stop(.accountMismatch)
    case .epochChanged: return .stop(.epochChanged)
    case .backOff: return .stop(.hubUnavailable)
    // The push itself halves and bisects; what it cannot resolve ends here.
    case .halve, .bisect: return .stop(.refused)
    case .refreshToken:
      if hasRefreshed { return .stop(.needsAuthentication) }
      hasRefreshed = true
      return .refreshToken(then: step)
    case .registerClient:
      if hasRegistered { return .stop(.refused) }
      plan.insert(.register, at: 0)
      return .perform(.register)
    case .scanFromZero: return scanFromZero()
    case .freeze: return .freeze
    case .stop(.accountDisabled): return .stop(.accountDisabled)
    case .stop(.clientBoundElsewhere): return .stop(.clientBoundElsewhere)
    case .stop: return .stop(.refused)
    }
  }

  /// The cursor lies below what the hub still has tombstones for.
  private mutating func scanFromZero() -> Action {
    guard !hasScanned, let session else { return .stop(.cursorExpired) }
    // 410 for a scan's own `until` begins it again, as what it was.
    let kind = scan.flatMap { $0.isForced ? $0.kind : nil } ?? .expired
    hasScanned = plan.contains(.leg)
    plan = scanPlan(begin: .begin(kind, epoch: session.epoch, until: session.highWater))
    return next()
  }

  private func scanPlan(begin: PassStep?) -> [PassStep] {
    [begin, .leg, .finishLegs, .pull, .finishScan, .discards, .push].compactMap { $0 }
  }

  /// Decides the order after the hub has said where it stands.
  /// - Returns: why the pass has to stop.
  private mutating func makePlan(_ answer: SessionAnswer) -> SyncError.Code? {
    plan = isRegistered ? [] : [.register]
    let forced = scan.flatMap { $0.isForced ? $0 : nil }
    guard let epoch = forced?.epoch ?? cursor?.epoch else {
      plan += scanPlan(begin: .begin(.first, epoch: answer.epoch, until: answer.highWater))
      return nil
    }
    if epoch != answer.epoch { return planNewEpoch(answer, from: epoch) }
    if let forced, goal != .replay {
      plan += forced.phase == .legs ? scanPlan(begin: nil) : tailPlan
      return nil
    }
    let begin = PassStep.begin(
      forced?.kind ?? forcedKind(answer) ?? .replay, epoch: answer.epoch, until: answer.highWater)
    if forced != nil || forcedKind(answer) != nil {
      plan += scanPlan(begin: begin)
      return nil
    }
    switch goal {
    case .ordinary: plan += [.discards, .push, .pull]
    case .replay: plan += [.discards, .push, begin, .leg, .finishLegs, .finishScan, .pull]
    case .continuing: plan += [.discards, .push, .leg, .finishLegs, .finishScan, .pull]
    }
    return nil
  }

  private var tailPlan: [PassStep] { [.pull, .finishScan, .discards, .push] }

  /// A scan that the area's or the hub's state asks for.
  private func forcedKind(_ answer: SessionAnswer) -> ScanState.Kind? {
    if !hasFinishedScan { return .first }
    if let cursor, cursor.sequence < answer.minimumCursor { return .expired }
    return nil
  }

  /// Only a replay takes up another epoch; one that was left is never taken up again.
  private mutating func planNewEpoch(
    _ answer: SessionAnswer, from epoch: UUID
  ) -> SyncError.Code? {
    if lineage.contains(where: { $0.epoch == answer.epoch }) { return .epochAlreadyLeft }
    guard goal == .replay else { return .epochChanged }
    plan += scanPlan(begin: .begin(.newEpoch, epoch: answer.epoch, until: answer.highWater))
    return nil
  }
}
