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
    var sent: [PushItem] = []
    var answer: PushAnswer?
    /// What lies behind it; the area knows that it is about to be sent.
    var ahead: OutgoingBatch?
    var refusal: Refused?

    /// What the verdicts mean; a deferred one is not among them.
    var settlements: [(order: UInt64, mutation: UUID, settlement: Settlement)] {
      zip(sent, answer?.results ?? []).compactMap { item, result in
        PushPlan.settlement(of: result).map { (item.order, item.mutation, $0) }
      }
    }

    /// What the machine is told of the answer.
    var verdicts: PushMachine.Event {
      .verdicts(answer?.results.map(\.status) ?? [], ahead: ahead?.items ?? [])
    }
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
      work.sent = items
      let batch = try await remember(&work, lookahead: machine.lookahead, hub)
      work.answer = try await send(batch, hub)
      return work.verdicts
    case .settleAndSend(let items):
      return try await settleAndSend(items, lookahead: machine.lookahead, &work, hub)
    case .sendNothing:
      let nothing = OutgoingBatch([], highWater: hub.highWater)
      return .verdicts(try await send(nothing, hub).results.map(\.status))
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

  /// Makes sure, before a batch goes, that the area knows of its first transmission. The commit that this
  /// needs knows of the batch behind it, too; one of its own is not made for that.
  /// - Returns: the batch, as it is sent.
  private func remember(
    _ work: inout PushWork, lookahead next: NextBatches?, _ hub: SessionAnswer
  ) async throws -> OutgoingBatch {
    let orders = Set(work.sent.map(\.order))
    let entries = work.read.filter { orders.contains($0.order) }
    let new = entries.filter { $0.firstSent == nil }.map(\.order)
    if new.isEmpty {
      work.ahead = try next.flatMap { try area.outgoing($0) }
    } else {
      work.ahead = try await area.markFirstSent(new, highWater: hub.highWater, andNext: next).first
    }
    return OutgoingBatch(entries, highWater: hub.highWater)
  }

  /// Sends the next batch while the last one is settled. When it returns or throws, that has ended.
  private func settleAndSend(
    _ items: [PushItem], lookahead next: NextBatches?, _ work: inout PushWork,
    _ hub: SessionAnswer
  ) async throws -> PushMachine.Event {
    guard let batch = try outgoing(items, of: work.ahead, hub) else { throw SyncError.stateLost }
    let settled = work
    let settling = Self.settling(settled, in: area, policy, markingNext: next)
    let sent: Result<PushAnswer, any Error>
    do { sent = .success(try await send(batch, hub)) } catch { sent = .failure(error) }
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
    work.sent = batch.items
    work.answer = nil
    work.answer = try sent.get()
    return work.verdicts
  }

  /// Those of a batch that a machine wants sent.
  private func outgoing(
    _ items: [PushItem], of batch: OutgoingBatch?, _ hub: SessionAnswer
  ) throws -> OutgoingBatch? {
    if let batch, batch.items.count == items.count { return batch }
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

  /// Settles a batch in one transaction.
  /// - Returns: the batch that goes next, looked up in the same transaction.
  private static func settle(
    _ work: PushWork, in area: Area, _ policy: StorePolicy, markingNext next: NextBatches?
  ) async throws -> OutgoingBatch? {
    guard let answer = work.answer else { throw SyncError.stateLost }
    let deferred = answer.results.filter { $0.status == .deferred }.map(\.mutation)
    return try await area.settle(
      work.settlements, epoch: answer.epoch, highWater: answer.highWater, policy: policy,
      deferred: deferred, markingNext: next
    ).first
  }

  /// The same beside what the caller does; a pass that is cancelled does not take it along.
  private static func settling(
    _ work: PushWork, in area: Area, _ policy: StorePolicy, markingNext next: NextBatches?
  ) -> Task<OutgoingBatch?, any Error> {
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
