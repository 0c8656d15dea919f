import Foundation
import HubProtocol
import ProfileStore

/// Performs the steps that a ``PassMachine`` orders, outside every lock and transaction.
///
/// It runs in its caller's isolation and is used by one pass only.
final class PassRunner {
  typealias Apply = (borrowing ChangeBatch) async throws -> Void

  let area: Area
  let account: VerifiedAccount
  let policy: StorePolicy
  let caller: HubCaller
  var session: any AccountSession { caller.session }
  let hasClosure: Bool
  /// The area as it was when the pass began.
  let facts: PassFacts
  private let goal: PassGoal
  private let progress: ProgressObserver?
  private let board: EventBoard
  var meter: ProgressMeter
  let resolver: ConflictResolver?
  /// Conflicts that the app was asked about in this pass.
  var asked: Set<UUID> = []

  /// Where the hub stands, as it said in this pass.
  var hub: SessionAnswer?
  var report = SyncReport()
  /// Records of which nothing is sent, since their pause is not over.
  let waiting: Set<RecordID>
  /// Records that the hub has put off in this pass.
  var deferred: Set<RecordID> = []
  /// A closure of the app has thrown.
  var hasAppThrown = false
  var positions: BatchPositions

  /// An answer that is not for use, on its way to the machine.
  struct Refused: Error {
    let action: AnswerAction
    var hubCode: String?
    var detail = ""
  }

  /// - Parameter appPosition: what the app has saved; nil when it does not say.
  /// - Throws: `ownedByAnotherAccount`, `appStoreBehind`, `storage`.
  init(
    area: Area, policy: StorePolicy, caller: HubCaller, goal: PassGoal, hasClosure: Bool,
    appPosition: BatchPosition?, resolver: ConflictResolver?, progress: ProgressObserver?,
    waiting: Set<RecordID>
  ) throws {
    self.area = area
    self.waiting = waiting
    self.policy = policy
    self.caller = caller
    account = caller.account
    self.goal = goal
    self.hasClosure = hasClosure
    self.progress = progress
    board = .of(area.signals)
    self.resolver = resolver
    facts = try area.facts()
    meter = ProgressMeter(
      sending: UInt64(clamping: try area.read { try area.pendingSummary($0) }.count),
      from: facts.cursor?.sequence ?? 0)
    guard facts.owner == account.bytes else { throw StoreError.anotherOwner }
    positions = BatchPositions(stored: facts.position, app: appPosition?.number)
    if goal == .ordinary, positions.isBehind {
      throw SyncError(
        .appStoreBehind,
        "the app's store is older than the last batch that it accepted (restored from a backup?): "
          + "call with replayFromStart: true")
    }
  }

  func run(_ apply: Apply) async throws -> SyncReport {
    // What a pass that was killed had staged is deleted, not read.
    try Scratch.remove(of: area)
    var machine = PassMachine(goal: goal, facts: facts, resolves: resolver != nil)
    var refusal: Refused?
    while true {
      switch machine.order {
      case .perform(let step):
        do {
          let event = try await perform(step, apply)
          refusal = nil
          let action = machine.handle(event)
          if case .verified(let answer) = event { try await noteHub(answer, action) }
        } catch let refused as Refused {
          refusal = refused
          _ = machine.handle(.answered(refused.action))
        }
      case .freeze:
        try await area.noteErasedAtHub()
        throw SyncError(.accountErased, refusal: refusal)
      case .stop(let code):
        throw SyncError(code, refusal: refusal)
      case .finish(let continues):
        if continues { report.continuation = try continuation() }
        return report
      }
    }
  }

  private func perform(_ step: PassStep, _ apply: Apply) async throws -> PassMachine.Event {
    switch step {
    case .verify: return .verified(try await verify())
    case .register: try await register()
    case .begin(let kind, let epoch, let until):
      guard let hub else { throw SyncError.stateLost }
      try await area.begin(
        ScanState(id: UUID(), kind: kind, epoch: epoch, until: until), standing: hub)
    case .discards: try await deliverDiscards(apply)
    case .resolve: return try await resolveConflicts(apply)
    case .push:
      let before = report.sent
      try await push()
      if report.sent > before { return .sent }
    case .leg: return .legDelivered(more: try await bringLeg(apply))
    case .finishLegs: try await area.finishLegs(try scan())
    case .pull:
      report.wasOutrun = try await !pull(apply)
      if report.wasOutrun { return .pullGivenUp }
    case .finishScan: try await finishScan(apply)
    }
    return .done(step)
  }

  /// Only what belongs to an epoch that this pass goes on in; beginning a scan notes another one.
  private func noteHub(_ answer: SessionAnswer, _ action: PassMachine.Action) async throws {
    if case .stop = action { return }
    guard try area.facts().epoch.map({ $0 == answer.epoch }) ?? true else { return }
    try await area.note(answer)
  }

  /// The scan from zero that is under way.
  func scan() throws -> ScanState {
    guard let scan = try area.facts().scan else { throw SyncError.stateLost }
    return scan
  }

  private func continuation() throws -> ReplayContinuation {
    let scan = try scan()
    return ReplayContinuation(
      scan: scan.id, place: scan.place, until: scan.until,
      position: positions.isBehind ? BatchPosition(positions.app) : nil)
  }

  func show(_ phase: SyncProgress.Phase, _ completed: UInt64, of total: UInt64) {
    let now = meter.advance(phase, completed, of: total)
    progress?.observe(now)
    board.post(.progress(now))
  }
}
