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
    /// A pull ended before it had all: others write faster than this device reads.
    case pullGivenUp
    /// A leg was delivered; `more`: up to `until` there is more.
    case legDelivered(more: Bool)
    /// An answer that is not for use.
    case answered(AnswerAction)
  }

  /// What the runner does.
  package enum Action: Hashable, Sendable {
    case perform(PassStep)
    /// Remember that the account is erased at the hub, then stop.
    case freeze
    case stop(SyncError.Code)
    /// All done; `continues`: a replay has another leg.
    case finish(continues: Bool)
  }

  /// How often one pass lets the hub send it back to zero.
  static let expiryCountMax = 2

  private let goal: PassGoal
  private let lineage: [LineageEntry]
  private let isFrozen: Bool
  private var isRegistered: Bool
  private var hasFinishedScan: Bool
  private var cursor: Cursor?
  private var scan: ScanState?
  /// What is still to do, the current step first.
  private var plan: [PassStep] = [.verify]
  /// Whether the client was registered in this pass.
  private var hasRegistered = false
  /// The scan that a 410 asks for, until it is planned.
  private var demanded: ScanState.Kind?
  private var expiryCount = 0
  /// Whether a forced scan was finished in this pass.
  private var hasScanned = false

  package init(goal: PassGoal, facts: PassFacts) {
    self.goal = goal
    lineage = facts.lineage
    isFrozen = facts.isErasedAtHub
    isRegistered = facts.client.isRegistered
    hasFinishedScan = facts.hasFinishedScan
    cursor = facts.cursor
    scan = facts.scan
  }

  /// The first action.
  package func start() -> Action {
    if isFrozen { return .stop(.accountErased) }
    if case .continuing(let id) = goal, scan?.id != id { return .stop(.continuationExpired) }
    return .perform(.verify)
  }

  /// The next action after an event.
  /// - Precondition: the event belongs to the step that was ordered last.
  package mutating func handle(_ event: Event) -> Action {
    switch event {
    case .verified(let answer):
      advance(past: .verify)
      if let code = makePlan(answer) { return .stop(code) }
    case .done(let step):
      advance(past: step)
      note(step)
    case .sent:
      advance(past: .push)
      // What was sent comes back with its versions.
      if plan.isEmpty { plan = [.pull] }
    case .pullGivenUp:
      advance(past: .pull)
      // What lies behind would be taken for deleted: the next pass goes on with the tail.
      if plan.first == .finishScan { return .finish(continues: false) }
    case .legDelivered(more: true):
      precondition(plan.first == .leg, "a pass was told of a leg that it did not order")
      // A scan that nobody asked for goes on; a replay's next leg is the caller's to ask for.
      if goal != .ordinary { return .finish(continues: true) }
    case .legDelivered(more: false):
      advance(past: .leg)
    case .answered(let action):
      return handle(action)
    }
    return plan.first.map { .perform($0) } ?? .finish(continues: false)
  }

  private mutating func advance(past step: PassStep) {
    precondition(plan.first == step, "a pass was told of a step that it did not order")
    plan.removeFirst()
  }

  /// Keeps in step with what the runner has committed.
  private mutating func note(_ step: PassStep) {
    switch step {
    case .register:
      isRegistered = true
      hasRegistered = true
    case .begin(let kind, let epoch, let until):
      // The area has the scan with its real name; here only kind, epoch and end count.
      scan = ScanState(id: Self.anyScan, kind: kind, epoch: epoch, until: until)
    case .finishLegs:
      guard let ended = scan else { return }
      let before = cursor.flatMap { $0.epoch == ended.epoch ? $0.sequence : nil } ?? 0
      cursor = Cursor(epoch: ended.epoch, sequence: max(before, ended.until))
      scan?.phase = .tail
    case .finishScan:
      if scan?.isForced == true {
        hasFinishedScan = true
        hasScanned = true
      }
      scan = nil
    case .verify, .discards, .push, .leg, .pull: break
    }
  }

  private static let anyScan = NSUUID(uuidBytes: [UInt8](repeating: 0, count: 16)) as UUID

  private mutating func handle(_ action: AnswerAction) -> Action {
    switch action {
    case .stopForSecurity: return .stop(.accountMismatch)
    case .epochChanged: return .stop(.epochChanged)
    case .networkTrouble: return .stop(.badAnswer)
    case .backOff, .failed: return .stop(.hubUnavailable)
    // The push itself halves and bisects; what it cannot resolve ends here.
    case .halve(isFromHub: false): return .stop(.hubUnavailable)
    case .halve(isFromHub: true), .bisect: return .stop(.refused)
    // The request was repeated with a new token already.
    case .refreshToken: return .stop(.needsAuthentication)
    case .registerClient:
      if hasRegistered { return .stop(.refused) }
      plan.insert(.register, at: 0)
      return .perform(.register)
    case .scanFromZero: return scanFromZero()
    case .freeze: return .freeze
    case .stop(.accountDisabled): return .stop(.accountDisabled)
    case .stop(.clientBoundElsewhere): return .stop(.clientBoundElsewhere)
    case .stop: return .stop(.refused)
    case .use: preconditionFailure("a usable answer is an event of its own")
    }
  }

  // MARK: The order

  /// The hub has purged tombstones that the request needs. It is asked again where it stands, since a
  /// scan that ends below its minimum would be refused like the request.
  private mutating func scanFromZero() -> Action {
    guard !hasScanned, expiryCount < Self.expiryCountMax else { return .stop(.cursorExpired) }
    expiryCount += 1
    switch scan {
    case let scan? where scan.isForced: demanded = scan.kind
    case .some where plan.first == .leg: demanded = .replay
    default: demanded = .expired
    }
    plan = [.verify]
    return .perform(.verify)
  }

  /// Decides the order after the hub has said where it stands.
  /// - Returns: why the pass has to stop.
  private mutating func makePlan(_ answer: SessionAnswer) -> SyncError.Code? {
    plan = isRegistered ? [] : [.register]
    let forced = scan.flatMap { $0.isForced ? $0 : nil }
    func begin(_ kind: ScanState.Kind) -> PassStep {
      .begin(kind, epoch: answer.epoch, until: answer.highWater)
    }
    guard let epoch = forced?.epoch ?? cursor?.epoch else {
      plan += [begin(.first)] + Self.scanSteps
      return nil
    }
    if epoch != answer.epoch {
      // Only a replay takes up another epoch; one that was left is never taken up again.
      if lineage.contains(where: { $0.epoch == answer.epoch }) { return .epochAlreadyLeft }
      guard goal == .replay else { return .epochChanged }
      plan += [begin(.newEpoch)] + Self.scanSteps
      return nil
    }
    if let kind = scanToBegin(answer, forced) {
      plan += kind == .replay ? [begin(kind)] + Self.replaySteps : [begin(kind)] + Self.scanSteps
      return nil
    }
    if let forced {
      plan += forced.phase == .legs ? Self.scanSteps : Self.tailSteps
      return nil
    }
    plan += [.discards, .push]
    switch goal {
    case .ordinary: plan += [.pull]
    case .replay: plan += [begin(.replay)] + Self.replaySteps
    case .continuing where scan?.phase == .tail: plan += [.finishScan, .pull]
    case .continuing:
      // 410 for its own `until` begins it again.
      if let scan, scan.until < answer.minimumCursor { plan += [begin(.replay)] }
      plan += Self.replaySteps
    }
    return nil
  }

  /// Pulled first and sent after.
  private static let scanSteps: [PassStep] = [.leg, .finishLegs] + tailSteps
  private static let tailSteps: [PassStep] = [.pull, .finishScan, .discards, .push]
  /// Of a replay that nothing forces.
  private static let replaySteps: [PassStep] = [.leg, .finishLegs, .finishScan, .pull]

  /// A scan that has to begin before anything is sent; nil when none has.
  private mutating func scanToBegin(
    _ answer: SessionAnswer, _ forced: ScanState?
  ) -> ScanState.Kind? {
    defer { demanded = nil }
    if let forced {
      // Its own end, or the cursor that it has raised, lies below what the hub still tells whole.
      let end = forced.phase == .legs ? forced.until : cursor?.sequence ?? forced.until
      let mustBegin = goal == .replay || demanded != nil || end < answer.minimumCursor
      return mustBegin ? forced.kind : nil
    }
    if !hasFinishedScan { return .first }
    if let cursor, cursor.sequence < answer.minimumCursor { return .expired }
    return demanded
  }
}
