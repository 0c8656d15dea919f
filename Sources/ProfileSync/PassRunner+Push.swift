import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Sends what waits in the outbox when the step begins, in order, as a ``PushMachine`` says.
  func push() async throws {
    guard let hub else { throw SyncError.stateLost }
    let mark = try area.outboxMark()
    var machine = PushMachine(limits: hub.limits, through: mark.lastOrder, waiting: waiting)
    var work = PushWork(
      total: try UInt64(area.read { try area.pendingSummary($0) }.count), decisions: mark.decisions)
    do {
      while machine.order != .finished {
        if case .giveUp(let action) = machine.order {
          throw work.refusal ?? Refused(action: action)
        }
        let event: PushMachine.Event
        do {
          event = try await perform(machine, &work, hub)
        } catch let refused as Refused {
          work.refusal = refused
          event = .refused(refused.action)
        }
        _ = machine.handle(event)
      }
    } catch let stopped {
      do {
        // What the hub has taken is settled, and nothing is left running.
        try await settleAll(&work)
      } catch {
        // A security event is never hidden behind another error.
        if (stopped as? Refused)?.action == .stopForSecurity { throw stopped }
        throw error
      }
      throw stopped
    }
  }

  /// What was sent, and the verdicts on it.
  private struct AnsweredBatch: Sendable {
    var items: [PushItem]
    var answer: PushAnswer

    /// What the verdicts mean; a deferred one is not among them.
    var settlements: [(order: UInt64, mutation: UUID, settlement: Settlement)] {
      zip(items, answer.results).compactMap { item, result in
        PushPlan.settlement(of: result).map { (item.order, item.mutation, $0) }
      }
    }

    /// What the hub has put off.
    var deferred: [UUID] {
      answer.results.filter { $0.status == .deferred }.map(\.mutation)
    }
  }

  /// What settles batches while the next one is at the hub.
  private typealias SettlingCommit = GatheringCommit<AnsweredBatch, [OutgoingBatch]>

  /// What a push has in hand.
  private struct PushWork: Sendable {
    let total: UInt64
    /// How often a person had decided when the outbox was looked through from its beginning.
    var decisions: UInt64
    /// What was read last.
    var read: [OutboxEntry] = []
    /// What was sent last, and the verdicts on it.
    var sent: AnsweredBatch?
    /// What lies behind it; the area knows that it is about to be sent.
    var ahead: [OutgoingBatch] = []
    /// What the hub has answered and no commit settles.
    var unsettled: [AnsweredBatch] = []
    var settling: SettlingCommit?
    var refusal: Refused?

    /// What the machine is told of the answer.
    var verdicts: PushMachine.Event {
      .verdicts(sent?.answer.results.map(\.status) ?? [], ahead: ahead.first?.items ?? [])
    }
  }

  private func perform(
    _ machine: PushMachine, _ work: inout PushWork, _ hub: SessionAnswer
  ) async throws -> PushMachine.Event {
    switch machine.order {
    case .settleAndSend, .settle: break
    default: try await settleAll(&work)
    }
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
      let batch = try await remember(items, &work, lookahead: machine.lookahead, hub)
      if try hasBeenDecided(&work) { return .decided }
      work.sent = AnsweredBatch(items: items, answer: try await send(batch, hub))
      return work.verdicts
    case .settleAndSend(let items):
      return try await settleAndSend(items, lookahead: machine.lookahead, &work, hub)
    case .sendNothing:
      let nothing = OutgoingBatch([], highWater: hub.highWater)
      return .verdicts(try await send(nothing, hub).results.map(\.status))
    case .settle:
      guard let sent = work.sent else { throw SyncError.stateLost }
      work.sent = nil
      if work.settling?.join(sent) != true { work.unsettled.append(sent) }
      // What lies behind is looked up again.
      work.ahead = []
      try await settleAll(&work, markingNext: machine.lookahead)
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

  /// Makes sure, before a batch goes, that the area knows of its first transmission. The commit that this
  /// needs knows of the batches behind it, too; one of its own is not made for those.
  /// - Returns: the batch, as it is sent.
  private func remember(
    _ items: [PushItem], _ work: inout PushWork, lookahead: NextBatches?, _ hub: SessionAnswer
  ) async throws -> OutgoingBatch {
    let orders = Set(items.map(\.order))
    let entries = work.read.filter { orders.contains($0.order) }
    let new = entries.filter { $0.firstSent == nil }.map(\.order)
    let next = Self.next(lookahead, behind: [])
    work.ahead = []
    if !new.isEmpty {
      work.ahead = try await area.markFirstSent(new, highWater: hub.highWater, andNext: next)
    } else if let next, let batch = try area.outgoing(next), !batch.items.isEmpty {
      work.ahead = [batch]
    }
    return OutgoingBatch(entries, highWater: hub.highWater)
  }

  /// What is to be looked up behind the batches that were.
  private static func next(
    _ lookahead: NextBatches?, behind ahead: [OutgoingBatch]
  ) -> NextBatches? {
    guard var next = lookahead else { return nil }
    next.after = ahead.last?.items.last?.order ?? next.after
    next.count -= ahead.count
    next.allByteCountMax -= ahead.reduce(0) { $0 + $1.mutations.byteCount }
    return next.count > 0 && next.allByteCountMax > 0 ? next : nil
  }

  /// Sends the next batch while the last one is settled, alone or with others.
  private func settleAndSend(
    _ items: [PushItem], lookahead: NextBatches?, _ work: inout PushWork, _ hub: SessionAnswer
  ) async throws -> PushMachine.Event {
    guard let last = work.sent, !work.ahead.isEmpty else { throw SyncError.stateLost }
    let batch = try outgoing(items, of: work.ahead.removeFirst(), hub)
    work.sent = nil
    if work.settling?.join(last) != true { work.unsettled.append(last) }
    guard try !hasBeenDecided(&work), batch.items.count == items.count else { return .decided }
    if work.settling?.hasEnded ?? true {
      // What goes behind this one has to be known on disk first.
      let patience = work.ahead.isEmpty ? .zero : SyncLimits.settlingPatience
      try await settleNext(&work, lookahead, patience: patience)
    }
    work.sent = AnsweredBatch(items: batch.items, answer: try await send(batch, hub))
    // Nothing more is known on disk as about to be sent before that commit has ended.
    if work.ahead.isEmpty, work.settling != nil { try await settleNext(&work, lookahead) }
    return work.verdicts
  }

  /// Whether a person has decided about something that waits since the outbox was looked through from its
  /// beginning. What was looked up may be gone then; and what is sent again from a place behind which the
  /// push is already goes before the later ones of its record, which have waited with it.
  private func hasBeenDecided(_ work: inout PushWork) throws -> Bool {
    let decisions = try area.outboxMark().decisions
    defer { work.decisions = decisions }
    return decisions != work.decisions
  }

  /// Waits for the commit that runs, and begins the next one.
  /// - Parameter patience: how long a batch that is alone waits for the next one.
  private func settleNext(
    _ work: inout PushWork, _ lookahead: NextBatches?, patience: Duration = .zero
  ) async throws {
    if let commit = work.settling {
      work.settling = nil
      do {
        work.ahead += try await commit.wait()
      } catch {
        // They go again, and are known to the hub then.
        work.unsettled = []
        throw error
      }
      for batch in commit.items {
        count(settled: batch)
        show(.sending, UInt64(report.sent), of: max(work.total, UInt64(report.sent)))
      }
    }
    guard !work.unsettled.isEmpty else { return }
    let next = Self.next(lookahead, behind: work.ahead)
    work.settling = SettlingCommit(
      work.unsettled, countMax: SyncLimits.settledTogetherCount, patience: patience,
      clock: caller.clock
    ) { [area, policy] batches in
      guard let last = batches.last else { return [] }
      return try await area.settle(
        batches.flatMap(\.settlements), epoch: last.answer.epoch,
        highWater: last.answer.highWater, policy: policy, deferred: batches.flatMap(\.deferred),
        markingNext: next)
    }
    work.unsettled = []
  }

  /// Settles everything that the hub has answered.
  private func settleAll(
    _ work: inout PushWork, markingNext next: NextBatches? = nil
  ) async throws {
    while work.settling != nil || !work.unsettled.isEmpty {
      try await settleNext(&work, next)
    }
  }

  /// Those of a batch that a machine wants sent; fewer where one is gone.
  private func outgoing(
    _ items: [PushItem], of batch: OutgoingBatch, _ hub: SessionAnswer
  ) throws -> OutgoingBatch {
    if batch.items.count == items.count { return batch }
    return OutgoingBatch(try area.entries(items.map(\.order)), highWater: hub.highWater)
  }

  private func send(_ batch: OutgoingBatch, _ hub: SessionAnswer) async throws -> PushAnswer {
    let request = PushRequest(
      client: facts.client.id, epoch: hub.epoch,
      cursor: try area.facts().cursor?.sequence ?? 0, mutations: [])
    let response = try await caller.ask(.push) { [account] token in
      HubCall.request(
        pushing: batch.mutations, in: request, token: token, account: account.id,
        limits: hub.limits)
    }
    let answer = try AnswerBody.read(PushAnswer.self, from: response)
    try requireOurs(response, hub: answer.hub, account: answer.account, epoch: answer.epoch)
    if let fault = PushCheck.fault(in: answer, asked: batch.items) {
      throw SyncError.badAnswer(fault)
    }
    return answer
  }

  /// Reports a batch that is settled.
  private func count(settled batch: AnsweredBatch) {
    let settlements = batch.settlements
    report.sent += batch.items.count
    report.deferred += batch.items.count - settlements.count
    deferred.formUnion(PushPlan.putOff(batch.items, batch.answer.results.map(\.status)))
    var parked = 0
    for case (_, _, .parked(let refusal)) in settlements {
      parked += 1
      caller.observer.mutationKeptBack(refusal.reason)
    }
    report.parked += parked
    report.acknowledged += settlements.count - parked
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
