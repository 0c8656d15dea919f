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

  /// What enqueues have in common that share a commit, as long as nothing else changes the area between
  /// them: then it is not looked up again.
  final class Insertion {
    /// Whose the area is; nil: it is unowned.
    let account: Data?
    /// As ``OutboxForm`` has it.
    fileprivate let stamp: [UInt8]
    /// Another registry that has opened the same store may have others.
    let limits: StoreLimits
    fileprivate let now: @Sendable () -> Date
    fileprivate let payloadByteCountMax: Int
    fileprivate var totals: OutboxTotals

    fileprivate init(
      _ account: Data?, _ policy: StorePolicy, payloadByteCountMax: Int, _ totals: OutboxTotals
    ) {
      self.account = account
      stamp = OutboxForm.form(ofStamp: account)
      limits = policy.limits
      now = policy.now
      self.payloadByteCountMax = payloadByteCountMax
      self.totals = totals
    }

    /// What the enqueue before has left, if nothing has changed since.
    static func remembered(_ transaction: borrowing WriteTransaction) -> Insertion? {
      transaction.remembered as? Insertion
    }
  }

  /// Looks up what enqueues need. State and owner were checked.
  func beginInsertion<T: Transaction & ~Copyable>(
    _ account: Data?, _ policy: StorePolicy, _ transaction: borrowing T
  ) throws -> Insertion {
    Insertion(
      account, policy, payloadByteCountMax: try payloadByteCountMax(transaction),
      try tables.totals(transaction))
  }

  /// Puts mutations into the outbox, each or none.
  package func insert(
    _ mutations: [Mutation], stamp: Data?, policy: StorePolicy,
    _ transaction: inout WriteTransaction
  ) throws -> [EnqueueReceipt] {
    let receipts = try insert(
      mutations, beginInsertion(stamp, policy, transaction), &transaction)
    // Nobody has checked whose the area is.
    transaction.remembered = nil
    return receipts
  }

  func insert(
    _ mutations: [Mutation], _ insertion: Insertion, _ transaction: inout WriteTransaction
  ) throws -> [EnqueueReceipt] {
    let time = insertion.now().storedMilliseconds
    var receipts: [EnqueueReceipt] = []
    receipts.reserveCapacity(mutations.count)
    var totals = insertion.totals
    // Through the span none is copied.
    let span = mutations.span
    for index in span.indices {
      let outcome = try insert(span[index], at: time, insertion, &totals, &transaction)
      receipts.append(EnqueueReceipt(mutation: span[index].id, outcome: outcome))
    }
    try end(insertion, totals, &transaction)
    return receipts
  }

  func insert(
    _ mutation: Mutation, _ insertion: Insertion, _ transaction: inout WriteTransaction
  ) throws -> EnqueueReceipt {
    var totals = insertion.totals
    let outcome = try insert(
      mutation, at: insertion.now().storedMilliseconds, insertion, &totals, &transaction)
    try end(insertion, totals, &transaction)
    return EnqueueReceipt(mutation: mutation.id, outcome: outcome)
  }

  private func end(
    _ insertion: Insertion, _ totals: OutboxTotals, _ transaction: inout WriteTransaction
  ) throws {
    try tables.setTotals(totals, &transaction)
    insertion.totals = totals
    insertion.totals.needStoring = false
    transaction.remembered = insertion
  }

  private func insert(
    _ mutation: Mutation, at time: UInt64, _ insertion: Insertion, _ totals: inout OutboxTotals,
    _ transaction: inout WriteTransaction
  ) throws -> EnqueueReceipt.Outcome {
    // The rest was checked before storage was touched.
    try Self.require(mutation.payload, atMost: insertion.payloadByteCountMax)
    var earlier: [UInt64] = []
    // For most this is all that there is to look up: no other edit of the record waits.
    let isFirst =
      try mutation.replacing == nil && totals.hasRoom(for: mutation, insertion.limits)
      && !(mutation.isCallerGiven && transaction.contains(mutation.id, in: tables.mutations))
      && transaction.insertFirst(
        Self.next(after: totals.lastOrder, .totals), for: mutation.record, in: tables.edits)
    if !isFirst {
      earlier = try orders(of: mutation.record, transaction)
      if mutation.isCallerGiven || !earlier.isEmpty,
        let outcome = try existing(mutation, among: earlier, transaction)
      {
        return outcome
      }
      if let replaced = mutation.replacing {
        if try replace(replaced, by: mutation, &totals, &transaction) {
          return .cancelledOut
        }
        earlier = try orders(of: mutation.record, transaction)
      } else {
        try requireRoom(
          for: mutation, limits: insertion.limits, totals, transaction)
      }
    }
    let order = try Self.next(after: totals.lastOrder, .totals)
    if !isFirst { try transaction.insert(order, for: mutation.record, in: tables.edits) }
    var base: Mutation.Base?
    var conflict: Parked?
    if let given = mutation.base {
      base = try placed(
        given, for: mutation.id, of: mutation.record, among: earlier, transaction)
      conflict = try self.conflict(with: base, of: mutation.record, transaction)
      if conflict != nil { base = .mustNotExist }
    }
    try totals.add(
      payloadByteCount: mutation.payload?.count ?? 0, isParked: conflict != nil)
    totals.lastOrder = order
    let form = OutboxForm(
      mutation: mutation.id, isCallerGiven: mutation.isCallerGiven, kind: mutation.kind,
      isShown: true, enqueuedByteCount: totals.enqueuedByteCount,
      enqueuedAt: time, stamp: insertion.stamp, base: base, parked: conflict)
    try append(form, mutation.record, mutation.payload, at: order, &transaction)
    if mutation.isCallerGiven || conflict != nil {
      try transaction.put(.waiting(order: order), for: mutation.id, in: tables.mutations)
    }
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
    guard totals.hasRoom(for: mutation, limits) else {
      throw StoreError(
        .outboxFull,
        "the outbox holds \(totals.count) mutations with \(totals.payloadByteCount) bytes, its limit is "
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
    try append(OutboxForm(entry), entry.record, entry.payload, at: entry.order, &transaction)
    try transaction.insert(entry.order, for: entry.record, in: tables.edits)
    if entry.isNamed {
      try transaction.put(.waiting(order: entry.order), for: entry.mutation, in: tables.mutations)
    }
  }

  private func append(
    _ form: OutboxForm, _ record: RecordID, _ payload: Data?, at order: UInt64,
    _ transaction: inout WriteTransaction
  ) throws {
    try transaction.append(
      byteCount: form.byteCount(record, payload), for: order, in: tables.outbox
    ) { room in
      room.withUnsafeMutableBytes { room, filled in
        form.write(record, payload, to: room)
        filled = room.count
      }
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
