package import Foundation
import HubProtocol
import LMDB

/// What a pass does with one mutation after the hub's answer.
package enum Settlement: Sendable, Hashable {
  /// `applied` or `duplicate`.
  case acknowledged(version: UInt64)
  /// `conflict`, `rejected`, too large, or a bad mutation.
  case parked(Parked)
}

extension Area {
  /// Settles mutations as the hub answered, all in one transaction.
  ///
  /// A full file has no room to keep what was acknowledged beside the record that it became: then it
  /// is not kept, and the rest is done in halves, each in the room that those before have freed.
  /// - Parameters:
  ///   - settlements: each with its mutation's order; one that is gone meanwhile is passed over.
  ///   - highWater: the answer's, in `epoch`.
  ///   - deferred: mutations that the same answer put off: the hub did not fail on them.
  ///   - next: what is to be sent next: looked up, and its first transmission remembered, in the same
  ///     commit.
  /// - Returns: those batches, as they are to be sent; none behind the last, and none at all where there
  ///   is too little room to do everything at once.
  @discardableResult
  package func settle(
    _ settlements: [(order: UInt64, mutation: UUID, settlement: Settlement)], epoch: UUID,
    highWater: UInt64, policy: StorePolicy, deferred: [UUID] = [],
    markingNext next: NextBatches? = nil
  ) async throws -> [OutgoingBatch] {
    do {
      return try await settleAtOnce(
        settlements, epoch: epoch, highWater: highWater, policy: policy, deferred: deferred,
        markingNext: next)
    } catch let error as StoreError where error.isForWantOfRoom {
      var policy = policy
      let isKeeping = policy.limits.acknowledgedCountMax > 0
      guard isKeeping || settlements.count > 1 else { throw error }
      policy.limits.acknowledgedCountMax = 0
      try await letFreedPagesServe()
      let half = isKeeping ? settlements.count : settlements.count / 2
      for part in [settlements[..<half], settlements[half...]] where !part.isEmpty {
        try await settle(
          Array(part), epoch: epoch, highWater: highWater, policy: policy, deferred: deferred)
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
    highWater: UInt64, policy: StorePolicy, deferred: [UUID],
    markingNext next: NextBatches?
  ) async throws -> [OutgoingBatch] {
    let answered = Set(settlements.map(\.mutation) + deferred)
    return try await write(for: .draining) { [self] transaction in
      let now = policy.now()
      var settling = try Settling(
        self, epoch: epoch, at: now, policy: policy, &transaction)
      try settling.take(settlements, &transaction)
      try settling.end(&transaction)
      try forgetTrouble(of: answered, &transaction)
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
