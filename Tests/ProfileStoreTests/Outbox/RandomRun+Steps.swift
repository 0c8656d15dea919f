import Foundation
import HubProtocol
import ProfileStore
import Testing

// The steps of a run: each does something to the area and the same to the model.
extension RandomRun {
  /// An edit of what the person sees, or one that minds nothing.
  mutating func edit() async throws {
    let record = record()
    let seen = try profile.record(record)
    let base: Mutation.Base? = isAlone || chance(70) ? seen?.base ?? .mustNotExist : nil
    let payload = chance(75) ? payload() : nil
    var replacing: UUID?
    if chance(15) {
      replacing = try profile.parked().last {
        $0.record == record && $0.parked?.reason != .discarding
      }?.mutation
    }
    let mutation: Mutation =
      if let payload {
        .put(record, Data(payload.utf8), base: base, replacing: replacing)
      } else {
        .delete(record, base: base, replacing: replacing)
      }
    let receipt = try await profile.enqueue(mutation, account: ada)
    if let replacing, let last = model.outbox.lastIndex(where: { $0.mutation == replacing }) {
      model.outbox = model.outbox.enumerated().filter {
        $0.offset > last || $0.element.record != record
      }.map(\.element)
    }
    guard receipt.outcome == .stored else {
      #expect(receipt.outcome == .cancelledOut && payload == nil && replacing != nil)
      return
    }
    model.outbox.append(
      AreaModel.Entry(mutation: receipt.mutation, record: record, payload: payload))
  }

  /// One request. Before a forced scan has ended nothing is sent.
  mutating func push(rejectPercent: Int, lostPercent: Int) async throws {
    guard scan?.isForced != true, let cursor = try profile.cursor(), cursor.epoch == hub.epoch
    else { return }
    let entries = try profile.sendable(countMax: Int.random(in: 1...8, using: &random))
    try await profile.area.markFirstSent(entries.map(\.order), highWater: hub.sequence)
    var settlements: [(order: UInt64, mutation: UUID, settlement: Settlement)] = []
    var stopped: Set<RecordID> = []
    for entry in entries where !stopped.contains(entry.record) {
      let settlement = hub.judge(
        entry, rejects: chance(rejectPercent), omitsPayload: chance(30))
      guard let settlement else {
        stopped.insert(entry.record)
        continue
      }
      if case .parked(let parked) = settlement {
        stopped.insert(entry.record)
        if parked.reason == .conflict, let current = parked.current {
          conflicts.append("\(entry.base, default: "none") against \(current.version)")
        }
      }
      settlements.append((entry.order, entry.mutation, settlement))
    }
    if chance(lostPercent) { return }
    try await profile.area.settle(
      settlements, epoch: hub.epoch, highWater: hub.sequence, policy: profile.registry.policy)
    for one in settlements { model.settle(one.mutation, one.settlement, hub) }
  }

  mutating func pull() async throws {
    guard scan?.isForced != true, let cursor = try profile.cursor() else { return }
    if cursor.sequence < hub.minimumCursor { return try await begin(.expired) }
    try await pull(from: cursor.sequence, allOfIt: false)
  }

  private mutating func pull(from start: UInt64, allOfIt: Bool) async throws {
    var after = start
    repeat {
      let size = Int.random(in: 1...12, using: &random)
      var pages: [[IncomingChange]] = []
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let page = hub.changes(after: after, until: hub.sequence, limit: size)
        guard let last = page.last else { break }
        after = last.version
        pages.append(page)
      }
      if hub.changes(after: after, until: hub.sequence, limit: 1).isEmpty { after = hub.sequence }
      try await commit(pages, .cursor(after))
    } while allOfIt && after < hub.sequence
  }

  private mutating func commit(_ changes: [[IncomingChange]], _ progress: PassProgress) async throws
  {
    let pages = changes.map { ChangePage($0) }
    for page in pages { try profile.area.mark(page, epoch: hub.epoch, lineage: hub.lineage) }
    try await profile.area.commit(
      pages: pages, epoch: hub.epoch, lineage: hub.lineage, progress: progress, position: nil,
      policy: profile.registry.policy, requiring: {})
    for change in changes.joined() {
      model.brought.insert(change.record)
      let payload = change.payload.map { String(decoding: $0, as: UTF8.self) }
      model.take(change.record, change.version, payload, hub)
    }
  }

  mutating func decide() async throws {
    let parked = try profile.parked().filter { $0.parked?.reason != .discarding }
    guard let entry = parked.randomElement(using: &random),
      let index = model.outbox.firstIndex(where: { $0.mutation == entry.mutation })
    else { return }
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      model.outbox[index].mutation = try await profile.retry(entry.mutation, account: ada)
      model.outbox[index].isParked = false
    case 1:
      let payload = payload()
      try await profile.decide(entry.mutation, account: ada, .merged(Data(payload.utf8)))
      model.outbox[index].payload = payload
      model.outbox[index].isParked = false
      model.outbox[index].mutation = try profile.outbox()[index].mutation
    case 2:
      try await profile.decide(entry.mutation, account: ada, .keepLocal)
      model.outbox[index].isParked = false
      model.outbox[index].mutation = try profile.outbox()[index].mutation
    default: try await discard(entry.mutation)
    }
  }

  mutating func discard(_ mutation: UUID) async throws {
    try await profile.discard(mutation, account: ada)
    if try profile.outbox().contains(where: { $0.mutation == mutation }) { return }
    model.outbox.removeAll { $0.mutation == mutation }
  }

  /// The hub's versions of what was discarded while they had not come.
  mutating func deliverDiscards() async throws {
    guard scan?.isForced != true, try profile.cursor()?.epoch == hub.epoch else { return }
    for entry in try profile.area.discarding() {
      let change = hub.change(of: entry.record)
      try await profile.area.finishDiscard(
        of: entry, change: change, epoch: hub.epoch, lineage: hub.lineage, position: nil,
        policy: profile.registry.policy, requiring: {})
      model.outbox.removeAll { $0.mutation == entry.mutation }
      guard let change else { continue }
      let payload = change.payload.map { String(decoding: $0, as: UTF8.self) }
      model.take(change.record, change.version, payload, hub)
      model.brought.insert(change.record)
    }
  }

  mutating func sendLostAgain() async throws {
    guard scan == nil else { return }
    for record in try profile.lostAtHub() {
      let payload = model.payloads[record]
      let hasEdit = model.outbox.contains { $0.record == record }
      try await profile.sendAgain(lost: [record], account: ada)
      if hasEdit { continue }
      model.sentAgain(record)
      let entry = try #require(try profile.outbox().last)
      #expect(entry.base == .mustNotExist)
      model.outbox.append(
        AreaModel.Entry(mutation: entry.mutation, record: record, payload: payload))
    }
  }

  // MARK: Scans

  mutating func begin(_ kind: ScanState.Kind) async throws {
    let state = ScanState(id: UUID(), kind: kind, epoch: hub.epoch, until: hub.sequence)
    try await profile.area.begin(state, standing: hub.standing(of: ada))
    scan = state
    model.brought = []
  }

  /// The hub is restored from its backup, and a replay takes the new epoch up.
  mutating func restore() async throws {
    hub.restore()
    let fork = hub.sequence
    for (index, entry) in try profile.outbox().enumerated() {
      if case .version(let version) = entry.base, version > fork {
        model.outbox[index].isParked = true
      }
    }
    try await begin(.newEpoch)
  }

  mutating func goOnWithScan() async throws {
    guard let state = scan else { return }
    if let stored = try profile.area.facts().scan, stored.phase == .legs {
      if state.isForced, state.until < hub.minimumCursor { return try await begin(state.kind) }
      let page = hub.changes(
        after: stored.place, until: state.until, limit: Int.random(in: 1...15, using: &random))
      if let last = page.last { return try await commit([page], .scan(last.version)) }
      return try await profile.area.finishLegs(stored)
    }
    if state.isForced {
      let cursor = try #require(try profile.cursor()).sequence
      if cursor < hub.minimumCursor { return try await begin(state.kind) }
      try await pull(from: cursor, allOfIt: true)
      try await endForced(state)
    }
    try await profile.area.finishScan(state)
    scan = nil
  }

  private mutating func endForced(_ state: ScanState) async throws {
    let known = try profile.area.notBrought(after: nil, areDeleted: false, limit: .max)
    func isLost(_ metadata: RecordMetadata) -> Bool {
      metadata.version(in: hub.epoch, lineage: hub.lineage) == nil
    }
    try await profile.area.noteLost(known.filter { isLost($0.metadata) })
    let deleted = known.filter { !isLost($0.metadata) }.map {
      IncomingChange(
        record: $0.record, version: $0.metadata.version, payload: nil, isDeleted: true,
        isInferred: true)
    }
    try await profile.area.commit(
      pages: [ChangePage(deleted)], epoch: hub.epoch, lineage: hub.lineage, progress: .none,
      position: nil, policy: profile.registry.policy, requiring: {})
    model.endForcedScan(hub)
  }
}

extension Profile {
  /// Whether the hub has something that this device has not pulled.
  func isBehind(_ hub: ModelHub) -> Bool {
    (try? cursor()?.sequence).flatMap { $0 } ?? 0 < hub.sequence
  }
}
