package import Foundation
package import HubProtocol
package import LMDB

/// What an enqueue needs to know of the app's settings.
package struct StorePolicy: Sendable {
  package var limits: StoreLimits
  /// The area keeps the records, too; else only the outbox.
  package var keepsRecords: Bool
  package var now: @Sendable () -> Date
  /// Told between any two durable steps of a call that provisions, binds, adopts or erases.
  package var onStep: @Sendable (OwnershipStep) -> Void = { _ in }

  package init(limits: StoreLimits, keepsRecords: Bool, now: @escaping @Sendable () -> Date) {
    self.limits = limits
    self.keepsRecords = keepsRecords
    self.now = now
  }
}

// Everything here runs inside one write transaction of the area, begun by the caller.
extension Area {
  /// Checks what can be checked before storage is touched.
  static func validate(_ mutation: Mutation, payloadByteCountMax: Int) throws(StoreError) {
    try validate(mutation.record)
    guard (mutation.payload != nil) == (mutation.kind == .put) else {
      throw StoreError(.undecodable, "a put has a payload and a delete has none")
    }
    if let base = mutation.base { try validate(base) }
    let count = mutation.payload?.count ?? 0
    guard count <= payloadByteCountMax else {
      throw StoreError(
        .payloadTooLarge,
        "the payload has \(count) bytes, the limit is \(payloadByteCountMax): split it or store "
          + "it elsewhere")
    }
  }

  package static func validate(_ record: RecordID) throws(StoreError) {
    do {
      try record.validate()
    } catch {
      throw StoreError(.badRecordID, error.description)
    }
  }

  /// Checks that a base can be sent.
  static func validate(_ base: Mutation.Base) throws(StoreError) {
    guard case .version(let version) = base else { return }
    guard (1...WireLimits.sequenceMax).contains(version) else {
      throw StoreError(
        .badBase, "a version is 1 to \(WireLimits.sequenceMax); for no record use mustNotExist")
    }
  }

  /// The longest payload now: what the hub announced, under the ceiling.
  func payloadByteCountMax<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> Int {
    let announced = try tables.hubLimits(transaction)?.payloadBytes
    return min(
      announced ?? StoreLimits.payloadByteCountDefault, StoreLimits.payloadByteCountCeiling)
  }

  /// Puts a mutation into the outbox, and into the record table where the area keeps records.
  package func insert(
    _ mutation: Mutation, stamp: Data?, policy: StorePolicy,
    _ transaction: inout WriteTransaction
  ) throws -> EnqueueReceipt {
    try Self.validate(mutation, payloadByteCountMax: try payloadByteCountMax(transaction))
    if let outcome = try existing(mutation, transaction) {
      return EnqueueReceipt(mutation: mutation.id, outcome: outcome)
    }
    if let replaced = mutation.replacing {
      if try replace(replaced, by: mutation, policy: policy, &transaction) {
        return EnqueueReceipt(mutation: mutation.id, outcome: .cancelledOut)
      }
    } else {
      try requireRoom(for: mutation, policy: policy, transaction)
    }
    let base = try mutation.base.map {
      try placed($0, for: mutation.id, of: mutation.record, before: .max, transaction)
    }
    let conflict = try conflict(with: base, of: mutation.record, transaction)
    let order = try tables.next(.lastOrder, &transaction)
    let entry = OutboxEntry(
      order: order, mutation: mutation.id, isCallerGiven: mutation.isCallerGiven, stamp: stamp,
      kind: mutation.kind, record: mutation.record, base: conflict == nil ? base : .mustNotExist,
      firstSent: nil, enqueuedAt: policy.now(), parked: conflict,
      payload: mutation.payload)
    try add(entry, &transaction)
    if policy.keepsRecords { try showLocally(entry, &transaction) }
    return EnqueueReceipt(mutation: mutation.id, outcome: .stored)
  }

  /// The same UUID and content again changes nothing; with another content it is an error.
  private func existing<T: Transaction & ~Copyable>(
    _ mutation: Mutation, _ transaction: borrowing T
  ) throws -> EnqueueReceipt.Outcome? {
    switch try transaction.value(of: mutation.id, in: tables.mutations) {
    case nil: return nil
    case .settled: return .alreadySettled
    case .waiting(let order):
      guard let entry = try entry(order, transaction) else { throw StoreError.damaged("outbox") }
      guard entry.kind == mutation.kind, entry.record == mutation.record,
        entry.payload == mutation.payload
      else {
        throw StoreError(
          .mutationReused, "the mutation's UUID was used for another change: make a new UUID")
      }
      return .alreadyWaiting
    }
  }

  private func requireRoom<T: Transaction & ~Copyable>(
    for mutation: Mutation, policy: StorePolicy, _ transaction: borrowing T
  ) throws {
    let totals = try tables.totals(transaction)
    let count = Int(clamping: totals.count)
    let byteCount = Int(clamping: totals.payloadByteCount)
    guard count < policy.limits.outboxCountMax,
      byteCount <= policy.limits.outboxByteCountMax - (mutation.payload?.count ?? 0)
    else {
      throw StoreError(
        .outboxFull,
        "the outbox holds \(count) mutations with \(byteCount) bytes, its limit is "
          + "\(policy.limits.outboxCountMax) and \(policy.limits.outboxByteCountMax): synchronize, "
          + "then try again",
        pending: try pendingSummary(transaction))
    }
  }

  // MARK: Entries

  func entry<T: Transaction & ~Copyable>(
    _ order: UInt64, _ transaction: borrowing T
  ) throws -> OutboxEntry? {
    guard var entry = try transaction.value(of: order, in: tables.outbox) else { return nil }
    entry.order = order
    return entry
  }

  /// The orders of a record's waiting mutations, oldest first.
  func orders<T: Transaction & ~Copyable>(
    of record: RecordID, _ transaction: borrowing T
  ) throws -> [UInt64] {
    var orders: [UInt64] = []
    let prefix = RecordOrderCodec.Key(record: record, order: nil)
    try transaction.scan(tables.outboxByRecord, .prefix(prefix)) { key, _ in
      guard key.byteCount == record.bytes.count + 10 else {
        throw StoreError.damaged("outbox index")
      }
      orders.append(key.loadBigEndian(at: record.bytes.count + 2))
      return .next
    }
    return orders
  }

  /// Whether a local edit of the record waits, pending or parked.
  package func hasEdit<T: Transaction & ~Copyable>(
    of record: RecordID, _ transaction: borrowing T
  ) throws -> Bool {
    try transaction.firstKey(
      in: tables.outboxByRecord, .prefix(RecordOrderCodec.Key(record: record, order: nil))) != nil
  }

  func add(_ entry: OutboxEntry, _ transaction: inout WriteTransaction) throws {
    try transaction.put(entry, for: entry.order, in: tables.outbox)
    try transaction.put(
      [], for: RecordOrderCodec.Key(record: entry.record, order: entry.order),
      in: tables.outboxByRecord)
    try transaction.put(.waiting(order: entry.order), for: entry.mutation, in: tables.mutations)
    var totals = try tables.totals(transaction)
    try totals.change(
      count: 1, parked: entry.parked == nil ? 0 : 1,
      payloadByteCount: Int64(entry.payloadByteCount))
    try tables.setTotals(totals, &transaction)
  }

  /// Takes an entry out. A caller-given UUID is remembered until the app strikes it off.
  func remove(_ entry: OutboxEntry, _ transaction: inout WriteTransaction) throws {
    try transaction.delete(entry.order, in: tables.outbox)
    try transaction.delete(
      RecordOrderCodec.Key(record: entry.record, order: entry.order), in: tables.outboxByRecord)
    if entry.isCallerGiven {
      try transaction.put(.settled, for: entry.mutation, in: tables.mutations)
    } else {
      try transaction.delete(entry.mutation, in: tables.mutations)
    }
    var totals = try tables.totals(transaction)
    try totals.change(
      count: -1, parked: entry.parked == nil ? 0 : -1,
      payloadByteCount: -Int64(entry.payloadByteCount))
    try tables.setTotals(totals, &transaction)
  }

  /// Stores an entry again at its place, with another state or base.
  func update(
    _ entry: OutboxEntry, wasParked: Bool, _ transaction: inout WriteTransaction
  ) throws {
    try transaction.put(entry, for: entry.order, in: tables.outbox)
    guard wasParked != (entry.parked != nil) else { return }
    var totals = try tables.totals(transaction)
    try totals.change(parked: wasParked ? -1 : 1)
    try tables.setTotals(totals, &transaction)
  }

  /// Visits every entry; those for which `change` returns true are stored again.
  func updateEntries(
    _ transaction: inout WriteTransaction, _ change: (inout OutboxEntry) throws -> Bool
  ) throws {
    var place = KeyRange<UInt64>.all
    while let order = try transaction.firstKey(in: tables.outbox, place) {
      place = .after(order)
      guard var entry = try entry(order, transaction) else { continue }
      let wasParked = entry.parked != nil
      if try change(&entry) { try update(entry, wasParked: wasParked, &transaction) }
    }
  }

  package func pendingSummary<T: Transaction & ~Copyable>(
    _ transaction: borrowing T
  ) throws -> PendingSummary {
    let totals = try tables.totals(transaction)
    let first = try transaction.firstKey(in: tables.outbox)
    let oldest = try first.flatMap { try entry($0, transaction) }?.enqueuedAt
    return PendingSummary(
      count: Int(clamping: totals.count), parked: Int(clamping: totals.parked),
      payloadByteCount: Int(clamping: totals.payloadByteCount), oldest: oldest)
  }
}
