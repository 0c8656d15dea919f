package import Foundation
import HubProtocol
package import LMDB

/// What a pass does with one mutation after the hub's answer.
package enum Settlement: Sendable, Hashable {
  /// `applied` or `duplicate`.
  case acknowledged(version: UInt64)
  /// `conflict`, `rejected`, too large, or a bad mutation.
  case parked(Parked)
}

/// Batches to look up in the transaction that remembers their first transmission.
package struct NextBatches: Sendable, Hashable {
  /// Only what lies behind it.
  package var after: UInt64
  /// The place of the newest mutation that is to be sent.
  package var through: UInt64
  package var countMax: Int
  package var byteCountMax: Int
  /// How many batches, one behind the other.
  package var count: Int

  package init(
    after: UInt64, through: UInt64, countMax: Int, byteCountMax: Int, count: Int
  ) {
    self.after = after
    self.through = through
    self.countMax = countMax
    self.byteCountMax = byteCountMax
    self.count = count
  }
}

extension Area {
  /// The next mutations to send, in order: not the parked and held ones, nor later ones of their
  /// records.
  /// - Parameters:
  ///   - order: only what lies behind it.
  ///   - byteCountMax: payload and ID bytes in all; a single larger one comes alone.
  /// - Throws: `ownedByAnotherAccount` when a stamp is not the owner: nothing may be sent then.
  package func batch<T: Transaction & ~Copyable>(
    after order: UInt64, countMax: Int, byteCountMax: Int, _ transaction: borrowing T
  ) throws -> [OutboxEntry] {
    let stamps = try stamps(transaction)
    // Whether a parked or held mutation of the record lies before the one in hand.
    var blocked: [RecordID: Bool] = [:]
    let trouble = try pushTrouble(transaction)
    for one in trouble.held where one.order <= order { blocked[one.record] = true }
    let hasSent = try transaction.count(of: tables.sent) > 0
    let hasParkedBefore = try order > 0 && tables.totals(transaction).parked > 0
    var entries: [OutboxEntry] = []
    var byteCount = 0
    try transaction.scan(tables.outbox, order > 0 ? .after(order) : .all) { key, bytes in
      var entry = try OutboxEntry(order: UInt64Codec.decode(key), bytes: bytes)
      if entry.parked != nil || (!trouble.isEmpty && trouble.held(entry.mutation) != nil) {
        blocked[entry.record] = true
        return .next
      }
      if hasParkedBefore, blocked[entry.record] == nil {
        blocked[entry.record] = try hasParked(entry.record, through: order, transaction)
      }
      if blocked[entry.record] == true { return .next }
      try stamps.require(entry)
      let size = entry.payloadByteCount + entry.record.bytes.count + 256
      guard entries.isEmpty || byteCount + size <= byteCountMax else { return .stop }
      byteCount += size
      if hasSent { entry.firstSent = try transaction.value(of: entry.order, in: tables.sent) }
      entries.append(entry)
      return entries.count < countMax ? .next : .stop
    }
    return entries
  }

  func hasParked<T: Transaction & ~Copyable>(
    _ record: RecordID, through last: UInt64, _ transaction: borrowing T
  ) throws -> Bool {
    for order in try orders(of: record, transaction) where order <= last {
      if try entry(order, transaction)?.parked != nil { return true }
    }
    return false
  }

  /// Remembers, before the first transmission, the high water known at it: of some mutations and of what
  /// is to be sent behind them, in one transaction.
  /// - Returns: the batches behind them, as ``settle(_:epoch:highWater:policy:markingNext:)`` does.
  @discardableResult
  package func markFirstSent(
    _ orders: [UInt64], highWater: UInt64, andNext next: NextBatches? = nil
  ) async throws -> [[OutboxEntry]] {
    try await write(for: .draining) { [self] transaction in
      for order in orders {
        guard try transaction.contains(order, in: tables.outbox) else { continue }
        try markFirstSent(order, highWater: highWater, &transaction)
      }
      return try next.map { try markFirstSent($0, highWater: highWater, &transaction) } ?? []
    }
  }

  private func markFirstSent(
    _ next: NextBatches, highWater: UInt64, _ transaction: inout WriteTransaction
  ) throws -> [[OutboxEntry]] {
    var batches: [[OutboxEntry]] = []
    var after = next.after
    while batches.count < next.count {
      var batch = try batch(
        after: after, countMax: next.countMax, byteCountMax: next.byteCountMax, transaction)
      if let end = batch.firstIndex(where: { $0.order > next.through }) {
        batch.removeSubrange(end...)
      }
      guard let last = batch.last else { break }
      for index in batch.indices where batch[index].firstSent == nil {
        try markFirstSent(batch[index].order, highWater: highWater, &transaction)
        batch[index].firstSent = highWater
      }
      batches.append(batch)
      after = last.order
    }
    return batches
  }

  /// What was remembered once stays.
  private func markFirstSent(
    _ order: UInt64, highWater: UInt64, _ transaction: inout WriteTransaction
  ) throws { _ = try transaction.putIfAbsent(highWater, for: order, in: tables.sent) }

  /// Settles mutations as the hub answered, all in one transaction.
  ///
  /// A full file has no room to keep what was acknowledged beside the record that it became: then it
  /// is not kept, and the rest is done in halves, each in the room that those before have freed.
  /// - Parameters:
  ///   - settlements: each with its mutation's order; one that is gone meanwhile is passed over.
  ///   - highWater: the answer's, in `epoch`.
  ///   - next: what is to be sent next: looked up, and its first transmission remembered, in the same
  ///     commit.
  /// - Returns: those batches, as they are to be sent; none behind the last, and none at all where there
  ///   is too little room to do everything at once.
  @discardableResult
  package func settle(
    _ settlements: [(order: UInt64, mutation: UUID, settlement: Settlement)], epoch: UUID,
    highWater: UInt64, policy: StorePolicy, markingNext next: NextBatches? = nil
  ) async throws -> [[OutboxEntry]] {
    do {
      return try await settleAtOnce(
        settlements, epoch: epoch, highWater: highWater, policy: policy, markingNext: next)
    } catch let error as StoreError where error.isForWantOfRoom {
      var policy = policy
      let isKeeping = policy.limits.acknowledgedCountMax > 0
      guard isKeeping || settlements.count > 1 else { throw error }
      policy.limits.acknowledgedCountMax = 0
      try await letFreedPagesServe()
      let half = isKeeping ? settlements.count : settlements.count / 2
      for part in [settlements[..<half], settlements[half...]] where !part.isEmpty {
        try await settle(Array(part), epoch: epoch, highWater: highWater, policy: policy)
      }
      return []
    }
  }

  /// The pages that one transaction frees serve the second one after it.
  private func letFreedPagesServe() async throws {
    for _ in 0..<2 {
      try await write(for: .draining) { [tables] transaction in
        let counter = try tables.number(.lastAcknowledged, transaction)
        try tables.setNumber(.lastAcknowledged, counter, &transaction)
      }
    }
  }

  private func settleAtOnce(
    _ settlements: [(order: UInt64, mutation: UUID, settlement: Settlement)], epoch: UUID,
    highWater: UInt64, policy: StorePolicy, markingNext next: NextBatches?
  ) async throws -> [[OutboxEntry]] {
    try await write(for: .draining) { [self] transaction in
      var totals = try tables.totals(transaction)
      var writer = try KnownWriter(
        self, epoch: epoch, lineage: tables.lineage(transaction),
        keepsRecords: policy.keepsRecords, &transaction)
      let now = policy.now()
      var counter = try tables.number(.lastAcknowledged, transaction)
      for (order, mutation, settlement) in settlements {
        guard var entry = try entry(order, transaction), entry.mutation == mutation else {
          continue
        }
        switch settlement {
        case .acknowledged(let version):
          try rebase(followersOf: entry, onto: .version(version), &transaction)
          try remove(entry, &totals, &transaction)
          try writer.take(
            entry.record, version: version, payload: entry.payload, isOwn: true, &transaction)
          guard policy.limits.acknowledgedCountMax > 0 else { continue }
          counter = try Self.next(after: counter, .lastAcknowledged)
          try transaction.append(
            AcknowledgedMutation(
              epoch: epoch, version: version, acknowledgedAt: now, entry: entry),
            for: counter, in: tables.acknowledged)
        case .parked(let parked):
          let before = entry
          entry.parked = parked
          try update(entry, before: before, &totals, &transaction)
          if policy.keepsRecords, let current = parked.current, !current.isPayloadOmitted {
            try writer.take(
              entry.record, version: current.version, payload: current.payload, isOwn: false,
              &transaction)
          }
        }
      }
      try writer.end(&transaction)
      try tables.setTotals(totals, &transaction)
      try tables.setNumber(.lastAcknowledged, counter, &transaction)
      try forgetTrouble(&transaction)
      try trimAcknowledged(now: now, limits: policy.limits, &transaction)
      try raiseHighWater(Cursor(epoch: epoch, sequence: highWater), &transaction)
      return try next.map { try markFirstSent($0, highWater: highWater, &transaction) } ?? []
    }
  }

  private func trimAcknowledged(
    now: Date, limits: StoreLimits, _ transaction: inout WriteTransaction
  ) throws {
    var count = try transaction.count(of: tables.acknowledged)
    var last: UInt64?
    try transaction.scan(tables.acknowledged) { key, bytes in
      let age = now.timeIntervalSince(try AcknowledgedCodec.acknowledgedAt(bytes))
      guard count > limits.acknowledgedCountMax || age > limits.acknowledgedAgeMax else {
        return .stop
      }
      last = try UInt64Codec.decode(key)
      count -= 1
      return .next
    }
    if let last { try transaction.deleteAll(in: tables.acknowledged, .upThrough(last)) }
  }

  func raiseHighWater(_ seen: Cursor, _ transaction: inout WriteTransaction) throws {
    let known = try tables.cursor(.highWater, transaction)
    if let known, known.epoch == seen.epoch, known.sequence >= seen.sequence { return }
    try tables.setCursor(.highWater, seen, &transaction)
  }

  /// Forgets caller-given UUIDs that the app has struck off its list: now, or when they are settled.
  func strikeOff(_ mutations: [UUID], _ transaction: inout WriteTransaction) throws {
    for mutation in mutations {
      switch try transaction.value(of: mutation, in: tables.mutations) {
      case nil: break
      case .settled: try transaction.delete(mutation, in: tables.mutations)
      case .waiting(let order):
        guard var entry = try entry(order, transaction) else { throw StoreError.damaged("outbox") }
        entry.isCallerGiven = false
        try transaction.put(entry, for: order, in: tables.outbox)
        if entry.parked == nil { try transaction.delete(mutation, in: tables.mutations) }
      }
    }
  }

  /// Forgets every settled UUID that is not on the app's list any more.
  func strikeOff(allBut kept: Set<UUID>, _ transaction: inout WriteTransaction) throws {
    var gone: [UUID] = []
    try transaction.scan(tables.mutations) { key, value in
      let mutation = try UUIDCodec.decode(key)
      if try MutationPlaceCodec.decode(value) == .settled, !kept.contains(mutation) {
        gone.append(mutation)
      }
      return .next
    }
    try strikeOff(gone, &transaction)
  }
}

extension StoreError {
  static let foreignStamp = StoreError(
    .ownedByAnotherAccount,
    "a mutation in the outbox is stamped with another account than the owner: nothing is sent; "
      + "inspect the store with profilectl")
}
