import Foundation
import HubProtocol
import LMDB

// What a mutation is based on. (Contract section 4.)
extension Area {
  /// A base as it is stored: an edit given one while an earlier one of its record waits is based on
  /// that one.
  /// - Parameters:
  ///   - mutation: the mutation that gets the base.
  ///   - earlier: the orders of the record's mutations that wait before it, oldest first.
  /// - Throws: `badBase` when it names no earlier mutation of that record.
  func placed<T: Transaction & ~Copyable>(
    _ base: Mutation.Base, for mutation: UUID, of record: RecordID, among earlier: [UInt64],
    _ transaction: borrowing T
  ) throws -> Mutation.Base {
    if case .mutation(let named) = base {
      guard named != mutation else {
        throw StoreError(.badBase, "a mutation cannot be based on itself")
      }
      if try earlier.contains(where: { try entry($0, transaction)?.mutation == named }) {
        // An earlier one of this record, which is what a base may name.
      } else if case .waiting = try transaction.value(of: named, in: tables.mutations) {
        throw StoreError(.badBase, "the base names no earlier mutation of this record")
      } else if let known = try acknowledged(named, transaction) {
        guard known.entry.record == record else {
          throw StoreError(.badBase, "the base names a mutation of another record")
        }
        if earlier.isEmpty { return .version(known.version) }
      } else {
        throw StoreError(
          .badBase, "the base names no mutation that this area knows: give the record's version")
      }
    }
    guard let last = earlier.last, let entry = try entry(last, transaction) else {
      // What the hub has lost is sent again as a new record.
      if try transaction.contains(record, in: tables.lost) { return .mustNotExist }
      return try raised(base, of: record, transaction)
    }
    return .mutation(entry.mutation)
  }

  /// A base that lies before this device's own acknowledged edit, which no pull has brought yet, means
  /// that edit: else a device would be in conflict with itself.
  private func raised<T: Transaction & ~Copyable>(
    _ base: Mutation.Base, of record: RecordID, _ transaction: borrowing T
  ) throws -> Mutation.Base {
    guard let ahead = try transaction.value(of: record, in: tables.known)?.ahead, ahead.isOwn,
      let epoch = try tables.cursor(.highWater, transaction)?.epoch,
      try tables.epochs(transaction).number(of: epoch) == ahead.mark.epoch
    else { return base }
    let own = ahead.mark
    switch base {
    case .version(let version): return .version(max(version, own.version))
    case .mustNotExist: return own.isDeleted ? base : .version(own.version)
    case .mutation: return base
    }
  }

  /// What a decision is based on: the mutation before it, else the version that whoever decided has
  /// seen, and no newer one: what was not seen is a conflict again, and not overwritten.
  /// - Returns: nil: as before.
  func decidedBase<T: Transaction & ~Copyable>(
    of entry: OutboxEntry, seen: HubVersion?, _ transaction: borrowing T
  ) throws -> Mutation.Base? {
    let earlier = try orders(of: entry.record, transaction).last { $0 < entry.order }
    if let earlier, let before = try self.entry(earlier, transaction) {
      return .mutation(before.mutation)
    }
    if let seen, seen.version > 0 { return seen.base }
    switch entry.parked?.reason {
    case .conflict, .adopted: return .mustNotExist
    default: return nil
    }
  }

  /// While a new epoch is taken up: a version that only the left history has had means nothing to the
  /// hub any more, or another one. The app decides. (Contract section 6.)
  func conflict<T: Transaction & ~Copyable>(
    with base: Mutation.Base?, of record: RecordID, _ transaction: borrowing T
  ) throws -> Parked? {
    guard case .version(let version) = base,
      let known = try transaction.value(of: record, in: tables.known),
      let epoch = try epoch(transaction)
    else { return nil }
    let epochs = try tables.epochs(transaction)
    let marks = [known.applied, known.ahead?.mark].compactMap { $0 }
    // The hub gave it in this epoch.
    let number = epochs.number(of: epoch)
    if marks.contains(where: { $0.epoch == number && $0.version == version }) { return nil }
    for mark in marks where mark.epoch != number {
      if try version > tables.lineage(transaction).forkedAt(epochs.epoch(mark.epoch)) {
        return Parked(reason: .conflict, code: HubCode.epochChanged.rawValue)
      }
    }
    return nil
  }

  /// Gives another base to the later mutation of the record that is based on this one: the next of that
  /// record, or none, since whatever is given a base is based on the last that waits before it.
  func rebase(
    followersOf entry: OutboxEntry, onto base: Mutation.Base?,
    _ transaction: inout WriteTransaction
  ) throws {
    guard
      let order = try orders(of: entry.record, transaction).first(where: { $0 > entry.order }),
      var follower = try self.entry(order, transaction),
      follower.base == .mutation(entry.mutation)
    else { return }
    follower.base = base
    try transaction.put(follower, for: order, in: tables.outbox)
  }

  private func acknowledged<T: Transaction & ~Copyable>(
    _ mutation: UUID, _ transaction: borrowing T
  ) throws -> AcknowledgedMutation? {
    var found: AcknowledgedMutation?
    try transaction.scan(tables.acknowledged, reversed: true) { _, bytes in
      guard try AcknowledgedCodec.mutation(bytes) == mutation else { return .next }
      found = try AcknowledgedCodec.decode(bytes)
      return .stop
    }
    return found
  }
}
