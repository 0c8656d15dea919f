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
  let session: any AccountSession
  let hasClosure: Bool
  private let transport: any HubTransport
  private let goal: PassGoal
  /// Who was signed in when the pass began; anything else ends it.
  private let signedIn: SignedInAccount
  private let onProgress: (@Sendable (SyncProgress) -> Void)?

  private(set) var facts: PassFacts
  private(set) var hub: SessionAnswer?
  var report = SyncReport()
  /// The position of the last accepted batch: the area's, or the app's if that is newer.
  private var position: UInt64
  /// What the last refused answer was, for the error's text.
  private var lastRefusal: Refused?

  /// An answer that is not for use, on its way to the machine.
  struct Refused: Error {
    let action: AnswerAction
    var hubCode: String?
    var detail = ""
  }

  init(
    area: Area, account: VerifiedAccount, policy: StorePolicy, session: any AccountSession,
    signedIn: SignedInAccount, transport: any HubTransport, goal: PassGoal, hasClosure: Bool,
    appPosition: BatchPosition?, onProgress: (@Sendable (SyncProgress) -> Void)?
  ) throws {
    self.area = area
    self.account = account
    self.policy = policy
    self.session = session
    self.signedIn = signedIn
    self.transport = transport
    self.goal = goal
    self.hasClosure = hasClosure
    self.onProgress = onProgress
    facts = try area.facts()
    position = facts.position
    guard facts.owner == account.bytes else {
      throw StoreError(
        .ownedByAnotherAccount,
        "the area is owned by another account than the call names: use that account's profile")
    }
    guard let appPosition else { return }
    if goal == .ordinary, appPosition.number < facts.position {
      throw SyncError(
        .appStoreBehind,
        "the app's store is older than the last batch that it accepted (restored from a backup?): "
          + "call with replayFromStart: true")
    }
    position = max(position, appPosition.number)
  }

  // MARK: The loop

  func run(_ apply: Apply) async throws -> SyncReport {
    var machine = PassMachine(goal: goal, facts: facts)
    var action = machine.start()
    while true {
      switch action {
      case .perform(let step):
        do {
          let event = try await perform(step, apply)
          action = machine.handle(event)
          if case .verified(let answer) = event { try await noteHub(answer, action) }
        } catch let refused as Refused {
          lastRefusal = refused
          action = machine.handle(.answered(refused.action))
        }
      case .refreshToken(let step):
        try await refreshToken()
        action = .perform(step)
      case .freeze:
        try await area.noteErasedAtHub()
        throw error(.accountErased)
      case .stop(let code):
        throw error(code)
      case .finish(let continues):
        if continues, let scan = try area.facts().scan {
          report.continuation = ReplayContinuation(
            scan: scan.id, place: scan.place, until: scan.until)
        }
        return report
      }
    }
  }

  private func perform(_ step: PassStep, _ apply: Apply) async throws -> PassMachine.Event {
    switch step {
    case .verify: return .verified(try await verify())
    case .register:
      try await register()
    case .begin(let kind, let epoch, let until):
      let scan = ScanState(id: UUID(), kind: kind, epoch: epoch, until: until)
      try await area.begin(scan, lineage: hub?.lineage ?? [])
    case .discards:
      try await deliverDiscards(apply)
    case .push:
      let before = report.sent
      try await push()
      if report.sent > before { return .sent }
    case .leg:
      return .legDelivered(more: try await bringLeg(apply))
    case .finishLegs:
      guard let scan = try area.facts().scan else { throw error(.badAnswer) }
      try await area.finishLegs(scan)
    case .pull:
      try await pull(apply)
    case .finishScan:
      try await finishScan(apply)
    }
    return .done(step)
  }

  /// Only what belongs to an epoch that this pass goes on in.
  private func noteHub(_ answer: SessionAnswer, _ action: PassMachine.Action) async throws {
    if case .stop = action { return }
    let epoch = facts.scan.flatMap { $0.isForced ? $0.epoch : nil } ?? facts.cursor?.epoch
    guard epoch == nil || epoch == answer.epoch else { return }
    try await area.note(
      limits: answer.limits, highWater: Cursor(epoch: answer.epoch, sequence: answer.highWater),
      lineage: answer.lineage)
  }

  private func refreshToken() async throws {
    do {
      try await session.refreshToken()
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      throw self.error(.needsAuthentication)
    }
    try requireSession()
  }

  // MARK: Asking the hub

  /// Requires that the session says what it said when the pass began.
  func requireSession() throws(SyncError) {
    guard case .account(let now) = session.state, now.account == signedIn.account,
      now.generation == signedIn.generation
    else {
      throw SyncError(
        .sessionChanged,
        "the session changed while the pass ran: nothing of the batch in hand was committed, and "
          + "nothing more was sent")
    }
  }

  /// Sends one call with the owner's name and returns an answer that is for use.
  /// - Throws: ``Refused`` for the machine; `sessionChanged`, `hubUnreachable`.
  func ask(_ call: HubCall, _ kind: Expectation.Call) async throws -> HubResponse {
    try Task.checkCancellation()
    try requireSession()
    guard case .account(let now) = session.state, let token = now.token else {
      throw Refused(action: .refreshToken)
    }
    let request = call.request(
      token: token, account: account.id, format: .cbor, limits: hub?.limits ?? HubLimits())
    let response: HubResponse
    do {
      response = try await transport.send(request)
    } catch {
      if error.code == .cancelled || Task.isCancelled { throw CancellationError() }
      throw SyncError(
        .hubUnreachable, "no answer came from the hub: what was sent will be sent again",
        cause: error)
    }
    try requireSession()
    let expected = Expectation(hub: account.hub, account: account.id, call: kind)
    let action = AnswerJudge.action(for: response, expecting: expected)
    guard action == .use else {
      let problem = AnswerJudge.problem(of: response)
      throw Refused(action: action, hubCode: problem?.code, detail: "status \(response.status)")
    }
    return response
  }

  /// Reads a body; one that cannot be read is used in nothing.
  func read<Message: HubMessage>(
    _ type: Message.Type, from response: HubResponse
  ) throws(SyncError) -> Message {
    let header = AnswerJudge.header(HubHeader.contentType, of: response) ?? ""
    guard let format = WireFormat.allCases.first(where: { header.hasPrefix($0.rawValue) }) else {
      throw badAnswer("it is neither CBOR nor JSON")
    }
    do {
      return try Message(decoding: response.body, as: format)
    } catch {
      throw badAnswer("\(error)")
    }
  }

  func badAnswer(_ what: String) -> SyncError {
    SyncError(.badAnswer, "the hub's answer cannot be used: \(what); try again later")
  }

  /// Compares what a body names with what is expected, before anything of it is used.
  func requireOurs(hub: UUID, account: AccountID, epoch: UUID) throws {
    guard hub == self.account.hub, account == self.account.id else {
      throw Refused(action: .stopForSecurity)
    }
    guard epoch == self.hub?.epoch else {
      throw Refused(action: .epochChanged(epoch: epoch, lineage: []))
    }
  }

  private func verify() async throws -> SessionAnswer {
    let nonce = UUID()
    let answer = try read(
      SessionAnswer.self, from: try await ask(.session(nonce: nonce), .session))
    guard answer.nonce == nonce else { throw badAnswer("it answers another question") }
    guard answer.hub == account.hub, answer.account == account.id else {
      throw Refused(action: .stopForSecurity)
    }
    hub = answer
    return answer
  }

  private func register() async throws {
    let client = facts.client.id
    let response = try await ask(.registerClient(client: client, name: ""), .client)
    let answer = try read(ClientAnswer.self, from: response)
    try requireOurs(hub: answer.hub, account: answer.account, epoch: answer.epoch)
    guard answer.client == client else { throw badAnswer("it names another client") }
    try await area.noteRegistered(client, true)
  }

  // MARK: Handing over

  /// The next position; a replay's batches keep the one that the pass was given.
  func nextPosition() -> UInt64 { position + 1 }
  var currentPosition: UInt64 { position }

  /// Hands a batch to the app, and only after the app has saved it, commits metadata and progress.
  /// - Parameters:
  ///   - position: a new one is remembered with the commit.
  ///   - edits: the local edits to say, where they are not what the outbox has now.
  func deliver(
    _ changes: [IncomingChange], progress: PassProgress, isReplay: Bool, position: UInt64,
    alsoBrought: [RecordID] = [], commits: Bool = true, _ apply: Apply
  ) async throws {
    guard let epoch = hub?.epoch else { throw error(.badAnswer) }
    let lineage = hub?.lineage ?? []
    let (wanted, contents) = try select(changes, epoch: epoch, lineage: lineage)
    if hasClosure, !contents.isEmpty {
      try requireSession()
      let owner = facts.owner
      let pass = PassContext.Pass(area: area.id, session: session)
      try await PassContext.$passes.withValue(PassContext.passes + [pass]) {
        let batch = ChangeBatch(
          position: BatchPosition(position), isReplay: isReplay, owner: owner, contents: contents,
          area: area)
        try await apply(batch)
      }
      try requireSession()
    }
    report.delivered += contents.count
    report.outdated += changes.count - contents.count
    let isNew = position > self.position && hasClosure && !contents.isEmpty
    if commits {
      try await area.commit(
        wanted, epoch: epoch, lineage: lineage, progress: progress,
        position: isNew ? position : nil, policy: policy, alsoBrought: alsoBrought)
    }
    if isNew { self.position = position }
  }

  /// Leaves out what is older than known, and says which records have a local edit.
  private func select(
    _ changes: [IncomingChange], epoch: UUID, lineage: [LineageEntry]
  ) throws -> ([IncomingChange], [Change]) {
    try area.read { transaction in
      var wanted: [IncomingChange] = []
      var contents: [Change] = []
      let hasEdits = try !area.pendingSummary(transaction).isEmpty
      for change in changes {
        let isOld =
          try !change.isInferred
          && area.isOutdated(change, epoch: epoch, lineage: lineage, transaction)
        if isOld { continue }
        var edit = LocalEdit.none
        if hasEdits {
          let local = try area.localEdit(of: change.record, transaction)
          edit = local.isParked ? .parked : local.isPending ? .pending : .none
        }
        wanted.append(change)
        contents.append(
          Change(
            record: change.record, version: change.version, payload: change.payload,
            isDeleted: change.isDeleted, isInferred: change.isInferred, localEdit: edit))
      }
      return (wanted, contents)
    }
  }

  func show(_ phase: SyncProgress.Phase, _ completed: UInt64, of total: UInt64) {
    onProgress?(SyncProgress(phase: phase, completed: completed, total: total))
  }

  // MARK: Errors

  func error(_ code: SyncError.Code) -> SyncError {
    var retryAfter: Duration?
    if case .backOff(let wait) = lastRefusal?.action { retryAfter = wait }
    let detail = lastRefusal.map { $0.detail.isEmpty ? "" : " (\($0.detail))" } ?? ""
    return SyncError(
      code, Self.message(for: code) + detail, retryAfter: retryAfter,
      hubCode: lastRefusal?.hubCode)
  }

  private static func message(for code: SyncError.Code) -> String {
    switch code {
    case .needsAuthentication:
      "the hub refuses the token: sign in again; outbox and cursor are kept"
    case .accountMismatch:
      "the answer names another account or hub than the area's owner: nothing of it was used and "
        + "nothing more is sent; treat it as a security event"
    case .epochChanged:
      "the account's history was reset at the hub: call with replayFromStart: true"
    case .epochAlreadyLeft:
      "the hub is back in an epoch that this device has left: its operator has to look"
    case .cursorExpired:
      "the hub calls the cursor expired after a whole scan: its operator has to look"
    case .accountDisabled: "the hub has disabled the account"
    case .accountErased:
      "the account is erased at the hub: this device's data is kept until the app erases it"
    case .clientBoundElsewhere:
      "this area's client belongs to another account at the hub: inspect the store with profilectl"
    case .hubUnavailable: "the hub cannot answer now: try again later"
    case .continuationExpired: "that replay is over: begin a new one"
    case .refused: "the hub refuses the request"
    default: "the hub's answer cannot be used: try again later"
    }
  }
}
