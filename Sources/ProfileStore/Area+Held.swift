public import Foundation
import HubProtocol
package import LMDB

// On what the hub has failed: one small value, absent in nearly every area.
extension AreaTables {
  func pushTrouble<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> PushTrouble {
    guard let bytes = try transaction.bytes(of: AreaKey.pushTrouble.rawValue, in: values) else {
      return PushTrouble()
    }
    return try PushTrouble(bytes)
  }

  func setPushTrouble(
    _ trouble: PushTrouble, _ transaction: inout WriteTransaction
  ) throws {
    if trouble.isEmpty { return try clear(.pushTrouble, &transaction) }
    try transaction.put(trouble.encoded, for: AreaKey.pushTrouble.rawValue, in: values)
  }
}

extension Area {
  /// On what the hub has failed; a mutation that waits no more, or is parked now, is held no more.
  package func pushTrouble<T: Transaction & ~Copyable>(
    _ transaction: borrowing T
  ) throws -> PushTrouble {
    var trouble = try tables.pushTrouble(transaction)
    trouble.held = try trouble.held.filter { one in
      guard let entry = try entry(one.order, transaction) else { return false }
      return entry.mutation == one.mutation && entry.parked == nil
    }
    return trouble
  }

  /// The held mutations whose time has come, in the order of their places, with what is to be sent.
  /// - Throws: `ownedByAnotherAccount` when a stamp is not the owner.
  package func heldMutations(dueAt now: Date) throws -> [OutboxEntry] {
    try read { transaction in
      let due = try unblockedHeld(transaction).filter { $0.held.isDue(at: now) }
      guard !due.isEmpty else { return [] }
      let stamps = try stamps(transaction)
      return try due.compactMap { one in
        guard let entry = try entry(one.order, transaction) else { return nil }
        try stamps.require(entry)
        return entry
      }
    }
  }

  /// When the next held mutation is to be tried; nil: none is held, but behind a parked one.
  package func nextTryOfHeld() throws -> Date? {
    try read { try unblockedHeld($0).map(\.held.nextTry).min() }
  }

  /// Those that go when their time comes: of one record the first, and none behind a parked mutation, with
  /// which it waits. No pass would send another one, however long it is due.
  private func unblockedHeld<T: Transaction & ~Copyable>(
    _ transaction: borrowing T
  ) throws -> [PushTrouble.HeldMutation] {
    var seen: Set<RecordID> = []
    return try pushTrouble(transaction).held.filter { one in
      try seen.insert(one.record).inserted
        && !hasParked(one.record, through: one.order, transaction)
    }
  }

  /// A held mutation by its UUID, or nil.
  func heldEntry<T: Transaction & ~Copyable>(
    _ mutation: UUID, _ transaction: borrowing T
  ) throws -> OutboxEntry? {
    guard let one = try pushTrouble(transaction).held.first(where: { $0.mutation == mutation })
    else { return nil }
    return try entry(one.order, transaction)
  }

  /// Counts one more pass in which the hub failed on the batch that begins with this mutation.
  /// - Returns: in how many passes in a row it has.
  package func noteFailing(_ first: UUID) async throws -> Int {
    try await write(for: .draining) { [self] transaction in
      var trouble = try pushTrouble(transaction)
      let count = trouble.fail(on: first)
      try tables.setPushTrouble(trouble, &transaction)
      return count
    }
  }

  /// Keeps a mutation back on which the hub fails, until its time comes; the others go on.
  ///
  /// One that is gone meanwhile is passed over.
  /// - Parameters:
  ///   - order: its place.
  ///   - chance: from 0 up to 1, for the pause.
  /// - Returns: false when too many are held: then it is the hub that fails.
  package func hold(
    _ mutation: UUID, at order: UInt64, now: Date, chance: Double
  ) async throws -> Bool {
    try await write(for: .draining) { [self] transaction in
      var trouble = try pushTrouble(transaction)
      guard trouble.held(mutation) != nil || trouble.held.count < PushTrouble.heldCountMax else {
        return false
      }
      guard let entry = try entry(order, transaction), entry.mutation == mutation else {
        return true
      }
      if trouble.failing?.first == mutation { trouble.failing = nil }
      trouble.hold(mutation, order: order, record: entry.record, now: now, chance: chance)
      try tables.setPushTrouble(trouble, &transaction)
      return true
    }
  }

  /// After verdicts: what is gone is held no more, and a batch that begins with a mutation which got
  /// one has not failed. What the hub has taken of others says nothing of it.
  func forgetTrouble(
    of answered: Set<UUID>, _ transaction: inout WriteTransaction
  ) throws {
    let before = try tables.pushTrouble(transaction)
    guard !before.isEmpty else { return }
    var trouble = try pushTrouble(transaction)
    if let failing = trouble.failing,
      try answered.contains(failing.first) || tables.totals(transaction).count == 0
    {
      trouble.failing = nil
    }
    if trouble != before { try tables.setPushTrouble(trouble, &transaction) }
  }
}

extension Profile {
  /// When the next held mutation is tried again by itself, by this device's clock; nil: none is held,
  /// or only behind a parked one of its record, with which it waits.
  /// Which they are says ``OutboxEntry/held``. Needs no session.
  /// - Throws: `erased`, `storage`.
  public func nextTryOfHeld() throws -> Date? { try area.nextTryOfHeld() }
}
