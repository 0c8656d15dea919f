import Foundation
import HubProtocol
import LMDB

// Parked mutations: retry, discard, replace; each in the caller's write transaction.
extension Area {
  /// A parked mutation by its UUID.
  func parkedEntry<T: Transaction & ~Copyable>(
    _ mutation: UUID, _ transaction: borrowing T
  ) throws -> OutboxEntry {
    guard case .waiting(let order) = try transaction.value(of: mutation, in: tables.mutations),
      let entry = try entry(order, transaction)
    else {
      if try isWaiting(mutation, transaction) { throw StoreError.notParked }
      throw StoreError(.unknownMutation, "no such mutation is waiting in this area")
    }
    guard let parked = entry.parked, parked.reason != .discarding else {
      throw StoreError.notParked
    }
    return entry
  }

  /// Whether it waits, unparked; for the right error only, since it reads the outbox.
  private func isWaiting<T: Transaction & ~Copyable>(
    _ mutation: UUID, _ transaction: borrowing T
  ) throws -> Bool {
    var isThere = false
    try transaction.scan(tables.outbox) { _, bytes in
      isThere = try OutboxEntry.mutation(bytes) == mutation
      return isThere ? .stop : .next
    }
    return isThere
  }

  /// Sends it again under a new UUID, from its place, before its followers; it is shown from now on,
  /// where it is the newest edit of its record.
  /// - Parameters:
  ///   - base: nil keeps the base that it has.
  ///   - payload: takes the place of its own, which may have been a delete; nil keeps what it has.
  func retry(
    _ mutation: UUID, base: Mutation.Base?, newID: UUID, payload: Data? = nil,
    _ transaction: inout WriteTransaction
  ) throws {
    let old = try parkedEntry(mutation, transaction)
    var entry = old
    entry.mutation = newID
    entry.isCallerGiven = false
    entry.isShown = true
    entry.parked = nil
    entry.firstSent = nil
    if let base {
      entry.base = try placed(
        base, for: mutation, of: old.record,
        among: orders(of: old.record, transaction).filter { $0 < old.order }, transaction)
    }
    if let payload {
      entry.kind = .put
      entry.payload = payload
    }
    try rebase(followersOf: old, onto: .mutation(newID), &transaction)
    if !old.isShown { try show(followersOf: old, &transaction) }
    try withTotals(&transaction) { try update(entry, before: old, &$0, &$1) }
  }

  /// The person has decided to send an adopted edit: those behind it go with it, and the newest of them
  /// is what the record will be. One that is parked itself is decided about by itself.
  private func show(
    followersOf entry: OutboxEntry, _ transaction: inout WriteTransaction
  ) throws {
    for order in try orders(of: entry.record, transaction) where order > entry.order {
      guard var follower = try self.entry(order, transaction) else { continue }
      if follower.parked != nil { return }
      guard !follower.isShown else { continue }
      follower.isShown = true
      try transaction.put(follower, for: order, in: tables.outbox)
    }
  }

  /// Gives a parked or held mutation up; its followers go on.
  ///
  /// Where the area keeps records and knows the hub's version, that one is shown at once. Else the
  /// mutation waits as `discarding` until a pass has handed the hub's version to the app.
  func discard(
    _ mutation: UUID, keepsRecords: Bool, _ transaction: inout WriteTransaction
  ) throws {
    // A held one may be given up, too; it may not be retried, since its UUID may be known to the hub.
    let held = try heldEntry(mutation, transaction)
    var entry = try held ?? parkedEntry(mutation, transaction)
    if keepsRecords, entry.parked?.current?.isPayloadOmitted != true {
      try finishDiscard(entry, &transaction)
    } else {
      let before = entry
      entry.parked = Parked(
        reason: .discarding, code: entry.parked?.code, current: entry.parked?.current)
      try withTotals(&transaction) { try update(entry, before: before, &$0, &$1) }
    }
  }

  /// Removes a discarded mutation; the hub's version has reached the app, or is here.
  func finishDiscard(_ entry: OutboxEntry, _ transaction: inout WriteTransaction) throws {
    try rebase(followersOf: entry, onto: entry.base, &transaction)
    try withTotals(&transaction) { try remove(entry, &$0, &$1) }
  }

  /// Removes a parked mutation and every earlier one of its record.
  /// - Returns: true when the new mutation is a delete of a record that the hub never had, which
  ///   makes both superfluous.
  func replace(
    _ replaced: UUID, by mutation: Mutation, _ totals: inout OutboxTotals,
    _ transaction: inout WriteTransaction
  ) throws -> Bool {
    let parked = try parkedEntry(replaced, transaction)
    guard parked.record == mutation.record else {
      throw StoreError(.badBase, "only a mutation of the same record can be replaced")
    }
    let orders = try orders(of: parked.record, transaction)
    let entries = try orders.compactMap { try entry($0, transaction) }
    // Only what was certainly never applied: an unanswered mutation may have reached the hub, and
    // an acknowledged one did; what the hub has, or had, has a row.
    let isUnknownToHub =
      try !transaction.contains(parked.record, in: tables.known)
      && parked.parked?.current == nil
      && entries.allSatisfy { $0.firstSent == nil || $0.parked != nil }
      && entries.last?.order == parked.order
    try noteDecision(&transaction)
    for order in orders where order <= parked.order {
      // Read anew: the removal of the one before has rewritten its base.
      guard let entry = try entry(order, transaction) else { throw StoreError.damaged("outbox") }
      try rebase(followersOf: entry, onto: entry.base, &transaction)
      try remove(entry, &totals, &transaction)
    }
    guard mutation.kind == .delete, isUnknownToHub else { return false }
    if mutation.isCallerGiven {
      try transaction.put(.settled, for: mutation.id, in: tables.mutations)
    }
    return true
  }
}

extension StoreError {
  static let notParked = StoreError(
    .notParked, "the mutation is not parked: it is sent by itself")
  static let decidedOnAnotherVersion = StoreError(
    .decidedOnAnotherVersion,
    "the hub's version of the record is another one than the decision was made on: read parked() "
      + "again, show it, and ask again")
}
