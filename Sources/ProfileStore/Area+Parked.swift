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
    else { throw StoreError(.unknownMutation, "no such mutation is waiting in this area") }
    guard let parked = entry.parked, parked.reason != .discarding else {
      throw StoreError(.notParked, "the mutation is not parked: it is sent by itself")
    }
    return entry
  }

  /// Sends it again under a new UUID, from its place, before its followers; where it is the newest
  /// edit of its record, that is what is shown from now on.
  /// - Parameter base: nil keeps the base that it has.
  func retry(
    _ mutation: UUID, base: Mutation.Base?, newID: UUID, keepsRecords: Bool,
    _ transaction: inout WriteTransaction
  ) throws {
    let old = try parkedEntry(mutation, transaction)
    var entry = old
    entry.mutation = newID
    entry.isCallerGiven = false
    entry.parked = nil
    entry.firstSent = nil
    if let base {
      entry.base = try placed(
        base, for: mutation, of: old.record, before: old.order, transaction)
    }
    try rebase(followersOf: old, onto: .mutation(newID), &transaction)
    if old.isCallerGiven {
      try transaction.put(.settled, for: old.mutation, in: tables.mutations)
    } else {
      try transaction.delete(old.mutation, in: tables.mutations)
    }
    try transaction.put(.waiting(order: entry.order), for: newID, in: tables.mutations)
    try update(entry, wasParked: true, &transaction)
    if keepsRecords, try orders(of: entry.record, transaction).last == entry.order {
      try showLocally(entry, &transaction)
    }
  }

  /// Gives a parked or held mutation up; its followers go on.
  ///
  /// Where the area keeps records and knows the hub's version, that one is put in place at once. Else
  /// the mutation waits as `discarding` until a pass has handed the hub's version to the app.
  func discard(
    _ mutation: UUID, keepsRecords: Bool, _ transaction: inout WriteTransaction
  ) throws {
    // A held one may be given up, too; it may not be retried, since its UUID may be known to the hub.
    let held = try heldEntry(mutation, transaction)
    var entry = try held ?? parkedEntry(mutation, transaction)
    if keepsRecords, entry.parked?.current?.isPayloadOmitted != true {
      try finishDiscard(entry, keepsRecords: true, &transaction)
    } else {
      entry.parked = Parked(
        reason: .discarding, code: entry.parked?.code, current: entry.parked?.current)
      try update(entry, wasParked: held == nil, &transaction)
    }
  }

  /// Removes a discarded mutation; the hub's version has reached the app, or stands beside.
  func finishDiscard(
    _ entry: OutboxEntry, keepsRecords: Bool, _ transaction: inout WriteTransaction
  ) throws {
    try rebase(followersOf: entry, onto: entry.base, &transaction)
    try remove(entry, &transaction)
    if keepsRecords { try showHubVersion(of: entry.record, &transaction) }
  }

  /// Whether the hub has, or had, the record, by what it sent or acknowledged.
  private func isAtHub<T: Transaction & ~Copyable>(
    _ record: RecordID, _ transaction: borrowing T
  ) throws -> Bool {
    try transaction.contains(record, in: tables.metadata)
      || transaction.contains(record, in: tables.unpulled)
      || transaction.contains(record, in: tables.beside)
      || transaction.value(of: record, in: tables.records)?.version != nil
  }

  /// Removes a parked mutation and every earlier one of its record.
  /// - Returns: true when the new mutation is a delete of a record that the hub never had, which
  ///   makes both superfluous.
  func replace(
    _ replaced: UUID, by mutation: Mutation, policy: StorePolicy,
    _ transaction: inout WriteTransaction
  ) throws -> Bool {
    let parked = try parkedEntry(replaced, transaction)
    guard parked.record == mutation.record else {
      throw StoreError(.badBase, "only a mutation of the same record can be replaced")
    }
    let orders = try orders(of: parked.record, transaction)
    let entries = try orders.compactMap { try entry($0, transaction) }
    // Only what was certainly never applied: an unanswered mutation may have reached the hub, and
    // an acknowledged one did.
    let isUnknownToHub =
      try !isAtHub(parked.record, transaction)
      && parked.parked?.current == nil
      && entries.allSatisfy { $0.firstSent == nil || $0.parked != nil }
      && entries.last?.order == parked.order
    for order in orders where order <= parked.order {
      // Read anew: the removal of the one before has rewritten its base.
      guard let entry = try entry(order, transaction) else { throw StoreError.damaged("outbox") }
      try rebase(followersOf: entry, onto: entry.base, &transaction)
      try remove(entry, &transaction)
    }
    guard mutation.kind == .delete, isUnknownToHub else { return false }
    if policy.keepsRecords { try showHubVersion(of: parked.record, &transaction) }
    if mutation.isCallerGiven {
      try transaction.put(.settled, for: mutation.id, in: tables.mutations)
    }
    return true
  }
}
