import Foundation
package import HubProtocol
package import ProfileStore

/// The order of a pass's steps, as a value: it is told what happened and answers what to do next.
/// No clock, no I/O. (Contract sections 5 and 6.)
package struct PassMachine: Hashable, Sendable {
  /// What the runner tells.
  package enum Event: Hashable, Sendable {
    case verified(SessionAnswer)
    case done(PassStep)
    /// A push was done, and something was sent.
    case sent
    /// The app was asked about each conflict. `sendsAgain`: a decided one waits to be sent;
    /// `discards`: the hub's version of one is to be handed over.
    case resolved(sendsAgain: Bool, discards: Bool)
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
  /// How often one pass sends again what the app has decided: others may write faster than it decides.
  static let resolveCountMax = 3

  /// What was ordered last, and stands until the event that belongs to it.
  package private(set) var order: Action
  let goal: PassGoal
  let lineage: [LineageEntry]
  let resolves: Bool
  var isRegistered: Bool
  var hasFinishedScan: Bool
  var cursor: Cursor?
  var scan: ScanState?
  /// What is still to do, the current step first.
  var plan: [PassStep] = [.verify]
  /// Whether the client was registered in this pass.
  private var hasRegistered = false
  /// The scan that a 410 asks for, until it is planned.
  var demanded: ScanState.Kind?
  var expiryCount = 0
  /// Whether a forced scan was finished in this pass.
  var hasScanned = false
  /// Whether something was sent that no pull has brought back.
  private var isUnpulled = false
  private var resolveCount = 0

  /// - Parameter resolves: the app decides conflicts within the pass.
  package init(goal: PassGoal, facts: PassFacts, resolves: Bool = false) {
    self.goal = goal
    self.resolves = resolves
    lineage = facts.lineage
    isRegistered = facts.client.isRegistered
    hasFinishedScan = facts.hasFinishedScan
    cursor = facts.cursor
    scan = facts.scan
    order = .perform(.verify)
    if case .continuing(let id) = goal, scan?.id != id { order = .stop(.continuationExpired) }
    if facts.isErasedAtHub { order = .stop(.accountErased) }
  }

  /// The next action after an event. An event that does not belong to what was ordered changes
  /// nothing: the order stands.
  package mutating func handle(_ event: Event) -> Action {
    guard case .perform(let step) = order, Self.belongs(event, to: step) else { return order }
    order = next(event)
    return order
  }

  /// Whether a step can end so.
  private static func belongs(_ event: Event, to step: PassStep) -> Bool {
    switch (step, event) {
    case (_, .answered(.use)): false
    case (.verify, .verified), (.push, .sent), (.resolve, .resolved), (.pull, .pullGivenUp),
      (.leg, .legDelivered), (_, .answered):
      true
    case (.verify, .done), (.resolve, .done), (.leg, .done): false
    case (_, .done(let done)): done == step
    default: false
    }
  }

  private mutating func next(_ event: Event) -> Action {
    switch event {
    case .verified(let answer):
      advance(past: .verify)
      if let code = makePlan(answer) { return .stop(code) }
    case .done(let step):
      advance(past: step)
      note(step)
    case .sent:
      advance(past: .push)
      isUnpulled = true
    case .resolved(let sendsAgain, let discards):
      advance(past: .resolve)
      if sendsAgain, plan.first != .push {
        resolveCount += 1
        // The last time nothing is asked any more, so that all that was decided is sent.
        plan.insert(
          contentsOf: resolveCount < Self.resolveCountMax ? [.push, .resolve] : [.push], at: 0)
      }
      if discards { plan.insert(.discards, at: 0) }
    case .pullGivenUp:
      advance(past: .pull)
      isUnpulled = false
      // What lies behind would be taken for deleted: the next pass goes on with the tail.
      if plan.first == .finishScan { return .finish(continues: false) }
    case .legDelivered(more: true):
      // A scan that nobody asked for goes on; a replay's next leg is the caller's to ask for.
      if goal != .ordinary { return .finish(continues: true) }
    case .legDelivered(more: false):
      advance(past: .leg)
    case .answered(let action):
      return handle(action)
    }
    // What was sent comes back with its versions.
    if plan.isEmpty, isUnpulled { plan = [.pull] }
    return plan.first.map { .perform($0) } ?? .finish(continues: false)
  }

  private mutating func advance(past step: PassStep) {
    precondition(plan.first == step, "a pass's plan is not in step with what it has ordered")
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
    case .pull: isUnpulled = false
    case .verify, .discards, .resolve, .push, .leg: break
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
    // A usable answer is an event of its own, and gets no further than `belongs`.
    case .use: return order
    }
  }
}
