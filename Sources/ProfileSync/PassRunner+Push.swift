import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Sends what waits in the outbox when the step begins, in order, as a ``PushMachine`` says.
  func push() async throws {
    guard let hub else { throw SyncError.stateLost }
    var machine = PushMachine(limits: hub.limits, through: try area.lastOrder())
    var work = PushWork(total: try UInt64(area.read { try area.pendingSummary($0) }.count))
    while machine.order != .finished {
      if case .giveUp(let action) = machine.order { throw work.refusal ?? Refused(action: action) }
      let event: PushMachine.Event
      do {
        event = try await perform(machine, &work, hub)
      } catch let refused as Refused {
        work.refusal = refused
        event = .refused(refused.action)
      }
      _ = machine.handle(event)
    }
  }

  /// What a push has in hand.
  private struct PushWork: Sendable {
    let total: UInt64
    /// What was read last.
    var read: [OutboxEntry] = []
    /// What was sent last, and the verdicts on it.
    var sent: [OutboxEntry] = []
    var answer: PushAnswer?
    /// What lies behind it; the area knows that it is about to be sent.
    var ahead: [OutboxEntry] = []

    /// What the verdicts mean; a deferred one is not among them.
    var settlements: [(order: UInt64, mutation: UUID, settlement: Settlement)] {
      zip(sent, answer?.results ?? []).compactMap { entry, result in
        PushPlan.settlement(of: result).map { (entry.order, entry.mutation, $0) }
      }
    }

    /// Those of some entries that a machine wants sent.
    static func entries(_ entries: [OutboxEntry], of items: [PushItem]) -> [OutboxEntry] {
      if entries.count == items.count { return entries }
      let orders = Set(items.map(\.order))
      return entries.filter { orders.contains($0.order) }
    }
    var refusal: Refused?
  }

  private func perform(
    _ machine: PushMachine, _ work: inout PushWork, _ hub: SessionAnswer
  ) async throws -> PushMachine.Event {
    switch machine.order {
    case .read(let after, let countMax, let byteCountMax):
      work.read = try area.read {
        try area.batch(after: after, countMax: countMax, byteCountMax: byteCountMax, $0)
      }
      return .read(work.read.map(PushItem.init))
    case .readHeld:
      work.read = try area.heldMutations(dueAt: policy.now())
      return .read(work.read.map(PushItem.init))
    case .send(let items):
      work.sent = PushWork.entries(work.read, of: items)
      work.ahead = try await remember(&work.sent, lookahead: machine.lookahead, hub)
      return try await verdicts(&work, hub)
    case .settleAndSend(let items):
      return try await settleAndSend(items, lookahead: machine.lookahead, &work, hub)
    case .sendNothing:
      return .verdicts(try await send([], hub).results.map(\.status))
    case .settle:
      _ = try await Self.settle(work, in: area, policy, markingNext: machine.lookahead)
      count(settled: work)
      return .done
    case .countFailure(let first):
      return .counted(try await area.noteFailing(first.mutation))
    case .park(let item, let reason):
      try await park(item, reason, work.refusal?.hubCode, hub)
      return .done
    case .hold(let item):
      let hasRoom = try await area.hold(
        item.mutation, at: item.order, now: policy.now(), chance: Double.random(in: 0..<1))
      if hasRoom {
        report.held += 1
        caller.observer.mutationKeptBack(nil)
      }
      return .held(hasRoom: hasRoom)
    case .giveUp, .finished: throw SyncError.stateLost
    }
  }

  /// Sends what is in hand.
  private func verdicts(
    _ work: inout PushWork, _ hub: SessionAnswer
  ) async throws -> PushMachine.Event {
    let answer = try await send(work.sent, hub)
    work.answer = answer
    return .verdicts(answer.results.map(\.status), ahead: work.ahead.map(PushItem.init))
  }

  /// Makes sure, before a batch goes, that the area knows of its first transmission; the commit that this
  /// needs knows of the batch behind it, too.
  /// - Returns: the batch behind it; none where a commit of its own would be needed to know of it.
  private func remember(
    _ entries: inout [OutboxEntry], lookahead next: NextBatches?, _ hub: SessionAnswer
  ) async throws -> [OutboxEntry] {
    let new = entries.indices.filter { entries[$0].firstSent == nil }
    if new.isEmpty {
      guard let next else { return [] }
      let ahead = try area.read {
        try area.batch(
          after: next.after, countMax: next.countMax, byteCountMax: next.byteCountMax, $0)
      }.filter { $0.order <= next.through }
      return ahead.allSatisfy { $0.firstSent != nil } ? ahead : []
    }
    let ahead = try await area.markFirstSent(
      new.map { entries[$0].order }, highWater: hub.highWater, andNext: next)
    for index in new { entries[index].firstSent = hub.highWater }
    return ahead.first ?? []
  }

  /// Sends the next batch while the last one is settled. When it returns or throws, that has ended.
  private func settleAndSend(
    _ items: [PushItem], lookahead next: NextBatches?, _ work: inout PushWork,
    _ hub: SessionAnswer
  ) async throws -> PushMachine.Event {
    let settled = work
    let settling = Self.settling(settled, in: area, policy, markingNext: next)
    work.sent = PushWork.entries(work.ahead, of: items)
    let sent: Result<PushAnswer, any Error>
    do { sent = .success(try await send(work.sent, hub)) } catch { sent = .failure(error) }
    do {
      work.ahead = try await settling.value
    } catch {
      // A security event is never hidden behind another error.
      if case .failure(let stopped as Refused) = sent, stopped.action == .stopForSecurity {
        throw stopped
      }
      throw error
    }
    count(settled: settled)
    let answer = try sent.get()
    work.answer = answer
    return .verdicts(answer.results.map(\.status), ahead: work.ahead.map(PushItem.init))
  }

  private func send(_ entries: [OutboxEntry], _ hub: SessionAnswer) async throws -> PushAnswer {
    let request = PushRequest(
      client: facts.client.id, epoch: hub.epoch,
      cursor: try area.facts().cursor?.sequence ?? 0,
      mutations: entries.map { Self.wire($0, highWater: hub.highWater) })
    let response = try await ask(.push(request), .push)
    let answer = try AnswerBody.read(PushAnswer.self, from: response)
    try requireOurs(response, hub: answer.hub, account: answer.account, epoch: answer.epoch)
    if let fault = PushCheck.fault(in: answer, asked: request.mutations) {
      throw SyncError.badAnswer(fault)
    }
    return answer
  }

  private static func wire(_ entry: OutboxEntry, highWater: UInt64) -> WireMutation {
    let base: WireBase? =
      switch entry.base {
      case nil: nil
      case .mustNotExist: .version(0)
      case .version(let version): .version(version)
      case .mutation(let mutation): .mutation(mutation)
      }
    return WireMutation(
      mutation: entry.mutation, order: entry.order, kind: entry.kind, id: entry.record, base: base,
      firstSent: entry.firstSent ?? highWater, payload: entry.payload)
  }

  /// Settles a batch in one transaction.
  /// - Returns: the batch that goes next, looked up in the same transaction.
  private static func settle(
    _ work: PushWork, in area: Area, _ policy: StorePolicy, markingNext next: NextBatches?
  ) async throws -> [OutboxEntry] {
    guard let answer = work.answer else { throw SyncError.stateLost }
    return try await area.settle(
      work.settlements, epoch: answer.epoch, highWater: answer.highWater, policy: policy,
      markingNext: next
    ).first ?? []
  }

  /// The same beside what the caller does; a pass that is cancelled does not take it along.
  private static func settling(
    _ work: PushWork, in area: Area, _ policy: StorePolicy, markingNext next: NextBatches?
  ) -> Task<[OutboxEntry], any Error> {
    Task { try await settle(work, in: area, policy, markingNext: next) }
  }

  /// Reports a batch that is settled.
  private func count(settled work: PushWork) {
    let settlements = work.settlements
    report.sent += work.sent.count
    report.deferred += work.sent.count - settlements.count
    var parked = 0
    for case (_, _, .parked(let refusal)) in settlements {
      parked += 1
      caller.observer.mutationKeptBack(refusal.reason)
    }
    report.parked += parked
    report.acknowledged += settlements.count - parked
    show(.sending, UInt64(report.sent), of: max(work.total, UInt64(report.sent)))
  }

  private func park(
    _ item: PushItem, _ reason: Parked.Reason, _ code: String?, _ hub: SessionAnswer
  ) async throws {
    try await area.settle(
      [(item.order, item.mutation, .parked(Parked(reason: reason, code: code)))], epoch: hub.epoch,
      highWater: hub.highWater, policy: policy)
    report.parked += 1
    caller.observer.mutationKeptBack(reason)
  }
}

extension PushItem {
  init(_ entry: OutboxEntry) {
    self.init(mutation: entry.mutation, order: entry.order, record: entry.record)
  }
}
