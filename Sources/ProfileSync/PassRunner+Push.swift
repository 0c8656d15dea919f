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
  private struct PushWork {
    let total: UInt64
    /// What was read last.
    var read: [OutboxEntry] = []
    /// What was sent last, and the verdicts on it.
    var sent: [OutboxEntry] = []
    var answer: PushAnswer?
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
      let orders = Set(items.map(\.order))
      work.sent = work.read.filter { orders.contains($0.order) }
      let answer = try await send(work.sent, hub)
      work.answer = answer
      return .verdicts(answer.results.map(\.status))
    case .sendNothing:
      return .verdicts(try await send([], hub).results.map(\.status))
    case .settle:
      guard let answer = work.answer else { throw SyncError.stateLost }
      try await settle(work.sent, answer, markingNext: try unsent(machine))
      show(.sending, UInt64(report.sent), of: max(work.total, UInt64(report.sent)))
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

  /// What goes next and was never sent.
  private func unsent(_ machine: PushMachine) throws -> [UInt64] {
    guard case .read(let after, let countMax, let byteCountMax) = machine.lookahead else {
      return []
    }
    return try area.read {
      try area.batch(after: after, countMax: countMax, byteCountMax: byteCountMax, $0)
    }.filter { $0.firstSent == nil && $0.order <= machine.through }.map(\.order)
  }

  private func send(_ entries: [OutboxEntry], _ hub: SessionAnswer) async throws -> PushAnswer {
    let new = entries.filter { $0.firstSent == nil }.map(\.order)
    if !new.isEmpty { try await area.markFirstSent(new, highWater: hub.highWater) }
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
  private func settle(
    _ entries: [OutboxEntry], _ answer: PushAnswer, markingNext next: [UInt64]
  ) async throws {
    let settlements = zip(entries, answer.results).compactMap { entry, result in
      PushPlan.settlement(of: result).map {
        (order: entry.order, mutation: entry.mutation, settlement: $0)
      }
    }
    try await area.settle(
      settlements, epoch: answer.epoch, highWater: answer.highWater, policy: policy,
      markingNext: next)
    report.sent += entries.count
    report.deferred += entries.count - settlements.count
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

extension PushItem {
  init(_ entry: OutboxEntry) {
    self.init(mutation: entry.mutation, order: entry.order, record: entry.record)
  }
}
