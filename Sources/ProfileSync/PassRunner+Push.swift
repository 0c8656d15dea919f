import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Sends what waits in the outbox when the step begins, in order.
  func push() async throws {
    guard let hub else { throw SyncError.stateLost }
    var plan = PushPlan(limits: hub.limits)
    let through = try area.lastOrder()
    let total = try UInt64(area.read { try area.pendingSummary($0) }.count)
    var after: UInt64 = 0
    var deferred: Set<RecordID> = []
    while true {
      let raw = try area.read { transaction in
        try area.batch(
          after: after, countMax: plan.countMax, byteCountMax: plan.byteCountMax, transaction)
      }
      guard let first = raw.first, let last = raw.last, first.order <= through else { return }
      // What waits behind a deferred mutation of its record waits with it.
      let entries = raw.filter { $0.order <= through && !deferred.contains($0.record) }
      guard !entries.isEmpty else {
        after = last.order
        continue
      }
      do {
        let answer = try await send(entries, hub)
        deferred.formUnion(try await settle(entries, answer))
        after = last.order
        plan.accepted()
        show(.sending, UInt64(report.sent), of: max(total, UInt64(report.sent)))
      } catch let refused as Refused {
        switch plan.refused(refused.action, count: entries.count) {
        case .again: continue
        case .giveUp: throw refused
        case .parkIfEmptyPushIsAccepted(let reason):
          _ = try await send([], hub)
          try await park(entries[0], reason, refused.hubCode, hub)
          after = entries[0].order
          plan.accepted()
        }
      }
    }
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
  /// - Returns: the records of which a mutation was deferred.
  private func settle(
    _ entries: [OutboxEntry], _ answer: PushAnswer
  ) async throws -> Set<RecordID> {
    var settlements: [(mutation: UUID, settlement: Settlement)] = []
    var deferred: Set<RecordID> = []
    for (entry, result) in zip(entries, answer.results) {
      switch PushPlan.settlement(of: result) {
      case let settlement?: settlements.append((entry.mutation, settlement))
      case nil: deferred.insert(entry.record)
      }
    }
    try await area.settle(
      settlements, epoch: answer.epoch, highWater: answer.highWater, policy: policy)
    report.sent += entries.count
    report.deferred += entries.count - settlements.count
    let parked = settlements.count {
      if case .parked = $0.settlement { true } else { false }
    }
    report.parked += parked
    report.acknowledged += settlements.count - parked
    return deferred
  }

  private func park(
    _ entry: OutboxEntry, _ reason: Parked.Reason, _ code: String?, _ hub: SessionAnswer
  ) async throws {
    try await area.settle(
      [(entry.mutation, .parked(Parked(reason: reason, code: code)))], epoch: hub.epoch,
      highWater: hub.highWater, policy: policy)
    report.parked += 1
  }
}
