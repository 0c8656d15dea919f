import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Sends what waits in the outbox when the step begins, in order.
  func push() async throws {
    guard let hub else { throw error(.badAnswer) }
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
      guard let last = raw.last, raw[0].order <= through else { return }
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
    let answer = try read(PushAnswer.self, from: try await ask(.push(request), .push))
    try requireOurs(hub: answer.hub, account: answer.account, epoch: answer.epoch)
    guard answer.results.map(\.mutation) == entries.map(\.mutation) else {
      throw badAnswer("its verdicts are of other mutations")
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
      report.sent += 1
      guard let settlement = PushPlan.settlement(of: result) else {
        guard result.status == .deferred else { throw badAnswer("a verdict has no version") }
        report.deferred += 1
        deferred.insert(entry.record)
        continue
      }
      if case .acknowledged = settlement { report.acknowledged += 1 } else { report.parked += 1 }
      settlements.append((entry.mutation, settlement))
    }
    try await area.settle(
      settlements, epoch: answer.epoch, highWater: answer.highWater, policy: policy)
    return deferred
  }

  private func park(
    _ entry: OutboxEntry, _ reason: Parked.Reason, _ code: String?, _ hub: SessionAnswer
  ) async throws {
    report.parked += 1
    try await area.settle(
      [(entry.mutation, .parked(Parked(reason: reason, code: code)))], epoch: hub.epoch,
      highWater: hub.highWater, policy: policy)
  }

  /// Hands over the hub's versions of records whose parked mutation the app has discarded.
  func deliverDiscards(_ apply: Apply) async throws {
    guard let hub else { throw error(.badAnswer) }
    for entry in try area.discarding() {
      let response = try await ask(.record(id: entry.record), .record)
      let answer = try read(RecordAnswer.self, from: response)
      try requireOurs(hub: answer.hub, account: answer.account, epoch: answer.epoch)
      if let record = answer.record, record.id != entry.record {
        throw badAnswer("it has another record")
      }
      let change =
        answer.record.map {
          IncomingChange(
            record: $0.id, version: $0.version, payload: $0.payload, isDeleted: $0.deleted)
        }
        ?? IncomingChange(
          record: entry.record, version: 0, payload: nil, isDeleted: true, isInferred: true)
      try await deliver(
        [change], progress: .none, isReplay: false, position: nextPosition(), commits: false, apply)
      try await area.finishDiscard(
        of: entry, change: change.isInferred ? nil : change, epoch: hub.epoch,
        lineage: hub.lineage, policy: policy)
    }
  }
}
