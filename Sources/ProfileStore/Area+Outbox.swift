package import Foundation
package import HubProtocol
package import LMDB

/// What an enqueue needs to know of the app's settings.
package struct StorePolicy: Sendable {
  package var limits: StoreLimits
  /// The area keeps the records, too; else only the outbox.
  package var keepsRecords: Bool
  /// This device's clock, in what is stored of a time: a receipt says what is read of it later.
  package let now: @Sendable () -> Date
  /// Told between any two durable steps of a call that provisions, binds, adopts or erases.
  package var onStep: @Sendable (OwnershipStep) -> Void = { _ in }

  package init(limits: StoreLimits, keepsRecords: Bool, now: @escaping @Sendable () -> Date) {
    self.limits = limits
    self.keepsRecords = keepsRecords
    self.now = { now().asStored }
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
    try require(mutation.payload, atMost: payloadByteCountMax)
  }

  private static func require(
    _ payload: Data?, atMost payloadByteCountMax: Int
  ) throws(StoreError) {
    let count = payload?.count ?? 0
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

  /// Puts mutations into the outbox, each or none.
  package func insert(
    _ mutations: [Mutation], stamp: Data?, policy: StorePolicy,
    _ transaction: inout WriteTransaction
  ) throws -> [EnqueueReceipt] {
    let payloadByteCountMax = try payloadByteCountMax(transaction)
    let now = policy.now()
    var totals = try tables.totals(transaction)
    var receipts: [EnqueueReceipt] = []
    receipts.reserveCapacity(mutations.count)
    for mutation in mutations {
      // The rest was checked before storage was touched.
      try Self.require(mutation.payload, atMost: payloadByteCountMax)
      let outcome = try insert(
        mutation, stamp: stamp, at: now, limits: policy.limits, &totals, &transaction)
      receipts.append(EnqueueReceipt(mutation: mutation.id, outcome: outcome))
    }
    try tables.setTotals(totals, &transaction)
    return receipts
  }

  private func insert(
    _ mutation: Mutation, stamp: Data?, at time: Date, limits: StoreLimits,
    _ totals: inout OutboxTotals, _ transaction: inout WriteTransaction
  ) throws -> EnqueueReceipt.Outcome {
    let earlier = try orders(of: mutation.record, transaction)
    if mutation.isCallerGiven || !earlier.isEmpty,
      let outcome = try existing(mutation, among: earlier, transaction)
    {
      return outcome
    }
    if let replaced = mutation.replacing {
      if try replace(replaced, by: mutation, &totals, &transaction) { return .cancelledOut }
    } else {
      try requireRoom(for: mutation, limits: limits, totals, transaction)
    }
    let base = try mutation.base.map {
      try placed($0, for: mutation.id, of: mutation.record, before: .max, transaction)
    }
    let conflict = try conflict(with: base, of: mutation.record, transaction)
    try add(
      OutboxEntry(
        order: 0, mutation: mutation.id, isCallerGiven: mutation.isCallerGiven,
        stamp: stamp, kind: mutation.kind, record: mutation.record,
        base: conflict == nil ? base : .mustNotExist, firstSent: nil, enqueuedAt: time,
        parked: conflict, payload: mutation.payload),
      &totals, &transaction)
    return .stored
  }

  /// - Throws: `damaged` where the stored number is the last there is.
  static func next(after number: UInt64, _ key: AreaKey) throws(StoreError) -> UInt64 {
    let (next, isOver) = number.addingReportingOverflow(1)
    guard !isOver else { throw .damaged(key.rawValue) }
    return next
  }

  /// The same UUID and content again changes nothing; with another content it is an error.
  ///
  /// A UUID that this library has made is looked for among the record's own mutations only.
  private func existing<T: Transaction & ~Copyable>(
    _ mutation: Mutation, among orders: [UInt64], _ transaction: borrowing T
  ) throws -> EnqueueReceipt.Outcome? {
    var known: OutboxEntry?
    if mutation.isCallerGiven {
      switch try transaction.value(of: mutation.id, in: tables.mutations) {
      case nil: break
      case .settled: return .alreadySettled
      case .waiting(let order):
        guard let entry = try entry(order, transaction) else { throw StoreError.damaged("outbox") }
        known = entry
      }
    }
    if known == nil {
      known = try orders.lazy.compactMap { try entry($0, transaction) }
        .first { $0.mutation == mutation.id }
    }
    guard let known else { return nil }
    guard known.kind == mutation.kind, known.record == mutation.record,
      known.payload == mutation.payload
    else {
      throw StoreError(
        .mutationReused, "the mutation's UUID was used for another change: make a new UUID")
    }
    return .alreadyWaiting
  }

  func requireRoom<T: Transaction & ~Copyable>(
    for mutation: Mutation, limits: StoreLimits, _ totals: OutboxTotals, _ transaction: borrowing T
  ) throws {
    let count = Int(clamping: totals.count)
    let byteCount = Int(clamping: totals.payloadByteCount)
    guard count < limits.outboxCountMax,
      byteCount <= limits.outboxByteCountMax - (mutation.payload?.count ?? 0)
    else {
      throw StoreError(
        .outboxFull,
        "the outbox holds \(count) mutations with \(byteCount) bytes, its limit is "
          + "\(limits.outboxCountMax) and \(limits.outboxByteCountMax): synchronize, then try "
          + "again",
        pending: try pendingSummary(transaction))
    }
  }

  // MARK: Entries

  func entry<T: Transaction & ~Copyable>(
    _ order: UInt64, _ transaction: borrowing T
  ) throws -> OutboxEntry? {
    guard var entry = try transaction.value(of: order, in: tables.outbox) else { return nil }
    entry.order = order
    entry.firstSent = try firstSent(order, transaction)
    return entry
  }

  /// The high water known when a mutation was first sent; nil: it never was.
  func firstSent<T: Transaction & ~Copyable>(
    _ order: UInt64, _ transaction: borrowing T
  ) throws -> UInt64? {
    guard try transaction.count(of: tables.sent) > 0 else { return nil }
    return try transaction.value(of: order, in: tables.sent)
  }

  /// The orders of a record's waiting mutations, oldest first.
  func orders<T: Transaction & ~Copyable>(
    of record: RecordID, _ transaction: borrowing T
  ) throws -> [UInt64] { try transaction.values(of: record, in: tables.edits) }

  /// Whether a local edit of the record waits, pending or parked.
  package func hasEdit<T: Transaction & ~Copyable>(
    of record: RecordID, _ transaction: borrowing T
  ) throws -> Bool { try !orders(of: record, transaction).isEmpty }

  /// Puts an entry behind all others, and gives it its order. Its UUID has a row of its own only where somebody may name it: the
  /// app, or a person who decides about a parked one.
  func add(
    _ entry: OutboxEntry, _ totals: inout OutboxTotals, _ transaction: inout WriteTransaction
  ) throws {
    var entry = entry
    totals.lastOrder = try Self.next(after: totals.lastOrder, .totals)
    entry.order = totals.lastOrder
    try totals.add(payloadByteCount: entry.payloadByteCount, isParked: entry.parked != nil)
    entry.enqueuedByteCount = totals.enqueuedByteCount
    let head = entry.encodedHead()
    try transaction.append(
      byteCount: head.count + entry.payloadByteCount, for: entry.order, in: tables.outbox
    ) { room in
      room.withUnsafeMutableBytes { room, filled in
        head.withUnsafeBytes { room.copyMemory(from: $0) }
        entry.payload?.withUnsafeBytes {
          UnsafeMutableRawBufferPointer(rebasing: room[head.count...]).copyMemory(from: $0)
        }
        filled = room.count
      }
    }
    try transaction.insert(entry.order, for: entry.record, in: tables.edits)
    if entry.isNamed {
      try transaction.put(.waiting(order: entry.order), for: entry.mutation, in: tables.mutations)
    }
  }

  /// Takes an entry out. A caller-given UUID is remembered until the app strikes it off.
  func remove(
    _ entry: OutboxEntry, _ totals: inout OutboxTotals, _ transaction: inout WriteTransaction
  ) throws {
    try transaction.delete(entry.order, in: tables.outbox)
    if entry.firstSent != nil { try transaction.delete(entry.order, in: tables.sent) }
    try transaction.delete(entry.order, for: entry.record, in: tables.edits)
    if entry.isCallerGiven {
      try transaction.put(.settled, for: entry.mutation, in: tables.mutations)
    } else if entry.isNamed {
      try transaction.delete(entry.mutation, in: tables.mutations)
    }
    try totals.change(
      count: -1, parked: entry.parked == nil ? 0 : -1,
      payloadByteCount: -Int64(entry.payloadByteCount))
  }

  /// Stores an entry again at its place: with another state, base, payload or UUID.
  func update(
    _ entry: OutboxEntry, before: OutboxEntry, _ totals: inout OutboxTotals,
    _ transaction: inout WriteTransaction
  ) throws {
    if before.firstSent != entry.firstSent {
      if let firstSent = entry.firstSent {
        try transaction.put(firstSent, for: entry.order, in: tables.sent)
      } else {
        try transaction.delete(entry.order, in: tables.sent)
      }
      var unchanged = entry
      unchanged.firstSent = before.firstSent
      if unchanged == before { return }
    }
    try transaction.put(entry, for: entry.order, in: tables.outbox)
    if before.mutation != entry.mutation || before.isNamed != entry.isNamed {
      if before.isCallerGiven, before.mutation != entry.mutation {
        try transaction.put(.settled, for: before.mutation, in: tables.mutations)
      } else if before.isNamed {
        try transaction.delete(before.mutation, in: tables.mutations)
      }
      if entry.isNamed {
        try transaction.put(
          .waiting(order: entry.order), for: entry.mutation, in: tables.mutations)
      }
    }
    let parked = (entry.parked == nil ? 0 : 1) - (before.parked == nil ? 0 : 1)
    let byteCount = entry.payloadByteCount - before.payloadByteCount
    if parked != 0 || byteCount != 0 {
      try totals.change(parked: Int64(parked), payloadByteCount: Int64(byteCount))
    }
  }

  /// Changes the outbox in the caller's transaction and writes its sums behind it.
  func withTotals<R>(
    _ transaction: inout WriteTransaction,
    _ body: (inout OutboxTotals, inout WriteTransaction) throws -> R
  ) throws -> R {
    var totals = try tables.totals(transaction)
    let result = try body(&totals, &transaction)
    try tables.setTotals(totals, &transaction)
    return result
  }

  /// Visits every entry; those for which `change` returns true are stored again.
  func updateEntries(
    _ transaction: inout WriteTransaction, _ change: (inout OutboxEntry) throws -> Bool
  ) throws {
    try withTotals(&transaction) { totals, transaction in
      var place = KeyRange<UInt64>.all
      while let order = try transaction.firstKey(in: tables.outbox, place) {
        place = .after(order)
        guard var entry = try entry(order, transaction) else { continue }
        let before = entry
        if try change(&entry) { try update(entry, before: before, &totals, &transaction) }
      }
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
