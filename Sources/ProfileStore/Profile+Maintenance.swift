public import Foundation
public import HubProtocol
package import LMDB

/// What becomes of a parked mutation.
public enum Resolution: Sendable, Hashable {
  /// Give the local edit up; the device shows the hub's version.
  case keepHub
  /// Send the local edit again, based on the hub's version that was seen.
  case keepLocal
  /// Send this payload instead, based on the hub's version that was seen.
  case merged(Data)
}

// Maintenance: names the account, needs no session, sends nothing.
extension Profile {
  /// Sends a parked mutation again, under a new UUID, from its place, before its followers.
  /// - Parameter base: what it is based on from now on, if no earlier edit of the record waits; nil: as
  ///   before.
  /// - Returns: the new UUID.
  /// - Throws: `unknownMutation`, `notParked`, `badBase`, `ownedByAnotherAccount`, `storage`.
  @discardableResult
  public func retry(
    _ mutation: UUID, account: VerifiedAccount, base: Mutation.Base? = nil
  ) async throws -> UUID {
    let newID = UUID()
    if let base { try Area.validate(base) }
    try await maintain(account) { area, policy, transaction in
      try area.retry(
        mutation, base: base, newID: newID, &transaction)
    }
    return newID
  }

  /// Gives a parked or held mutation up; its followers go on, and the device shows the hub's version.
  ///
  /// Where the app keeps its records itself, the hub's version is handed to the next pass's
  /// `applyChanges`, and the mutation goes only after that closure returned.
  /// - Throws: as ``retry(_:account:base:)``.
  public func discard(_ mutation: UUID, account: VerifiedAccount) async throws {
    try await maintain(account, for: .draining) { area, policy, transaction in
      try area.discard(mutation, keepsRecords: policy.keepsRecords, &transaction)
    }
  }

  /// Decides a conflict: keep the hub's, keep the local edit, or merge.
  ///
  /// What is sent is based on the version that the decision was made on, so that nothing is overwritten
  /// or given up unseen: where this device knows another one by now the decision is refused, and where
  /// only the hub does, the mutation is parked again.
  /// - Parameters:
  ///   - seen: the hub's version that the person was shown, `entry.parked?.current?.version` of
  ///     ``parked()``; nil: that the hub has no such record.
  /// - Throws: `decidedOnAnotherVersion`: show ``parked()`` again, and ask again; as
  ///   ``retry(_:account:base:)``; `payloadTooLarge` for a merged payload.
  public func resolve(
    _ mutation: UUID, seen: UInt64?, account: VerifiedAccount, _ resolution: Resolution
  ) async throws {
    let purpose: WritePurpose =
      if case .keepHub = resolution { .draining } else { .storing }
    try await maintain(account, for: purpose) { area, policy, transaction in
      let entry = try area.brought(
        upToDate: area.parkedEntry(mutation, transaction), transaction)
      let current = entry.parked?.current
      // 0: its epoch was left, so that it compares no more.
      guard current?.version ?? 0 == seen ?? 0 else { throw StoreError.decidedOnAnotherVersion }
      let base = try area.decidedBase(of: entry, seen: current, transaction)
      try area.resolve(mutation, resolution, base: base, policy: policy, &transaction)
    }
  }

  /// Strikes caller-given UUIDs off: the app has them on its list no more, so they need not be
  /// remembered after they are settled.
  /// - Parameter account: the owner; nil for the signed-out area.
  public func strikeOff(_ mutations: [UUID], account: VerifiedAccount?) async throws {
    try await maintain(account, for: .draining, sendsMore: false) { area, _, transaction in
      try area.strikeOff(mutations, &transaction)
    }
  }

  /// Strikes off all caller-given UUIDs but those still on the app's list: for the app's launch, after
  /// it has enqueued what is left.
  /// - Parameter account: the owner; nil for the signed-out area.
  public func strikeOff(allBut listed: [UUID], account: VerifiedAccount?) async throws {
    try await maintain(account, for: .draining, sendsMore: false) { area, _, transaction in
      try area.strikeOff(allBut: Set(listed), &transaction)
    }
  }

  /// Sends records again that the hub lost with an epoch: as new ones (`base: 0`).
  /// - Parameter records: from ``lostAtHub()``; the area must keep the records.
  /// - Throws: `badRecordID`; `unknownMutation` when a record is not listed as lost or its payload is
  ///   not here.
  public func sendAgain(lost records: [RecordID], account: VerifiedAccount) async throws {
    for record in records { try Area.validate(record) }
    try await maintain(account) { area, policy, transaction in
      for record in records {
        try area.sendAgain(lost: record, stamp: account.bytes, policy: policy, &transaction)
      }
    }
  }

  /// Sends mutations again that the hub acknowledged and then lost with an epoch, under their own
  /// UUIDs and in the order in which it took them. From ``acknowledged()``.
  ///
  /// One whose record has a newer edit waiting, or that is based on a version which the hub has lost
  /// too, is parked as a conflict: resolve it.
  /// - Throws: `unknownMutation` when one is not kept any more.
  public func sendAgain(acknowledged mutations: [UUID], account: VerifiedAccount) async throws {
    try await maintain(account) { area, policy, transaction in
      try area.sendAgain(
        acknowledged: mutations, stamp: account.bytes, policy: policy, &transaction)
    }
  }

  /// - Parameter sendsMore: something may be there to send after it.
  private func maintain(
    _ account: VerifiedAccount?, for purpose: WritePurpose = .storing, sendsMore: Bool = true,
    _ body: @escaping @Sendable (Area, StorePolicy, inout WriteTransaction) throws -> Void
  ) async throws {
    try await area.write(for: purpose) { [area, policy = registry.policy] transaction in
      switch (try area.tables.owner(transaction), account) {
      case (nil, nil): try area.requireActive(transaction)
      case (nil, .some): throw StoreError.notBound
      case (.some, nil): throw StoreError.accountRequired
      case (let owner?, let account?):
        guard owner == account.bytes else { throw StoreError.foreignArea }
      }
      try body(area, policy, &transaction)
      if sendsMore { try area.noteDecision(&transaction) }
    }
    if sendsMore { area.signals.outbox.raise() }
  }
}

extension Area {
  /// Tells other processes that something may be there to send.
  package func noteDecision(_ transaction: inout WriteTransaction) throws {
    let decisions = try tables.number(.decisions, transaction)
    try tables.setNumber(.decisions, Self.next(after: decisions, .decisions), &transaction)
  }

  /// Another payload in the place of a parked mutation.
  func merge(
    _ mutation: UUID, payload: Data, base: Mutation.Base?, _ transaction: inout WriteTransaction
  ) throws {
    let old = try parkedEntry(mutation, transaction)
    try Self.validate(
      .put(old.record, payload), payloadByteCountMax: try payloadByteCountMax(transaction))
    try retry(mutation, base: base, newID: UUID(), payload: payload, &transaction)
  }

  func sendAgain(
    lost record: RecordID, stamp: Data, policy: StorePolicy, _ transaction: inout WriteTransaction
  ) throws {
    guard try transaction.contains(record, in: tables.lost),
      let payload = try hubPayload(of: record, transaction)
    else {
      throw StoreError(.unknownMutation, "the record is not listed as lost, or is not kept here")
    }
    // The edit goes up instead. The record stays listed until the hub has it, since the edit may yet be
    // discarded.
    if try hasEdit(of: record, transaction) { return }
    var policy = policy
    // What the person decides about is never stopped by a full outbox.
    policy.limits.outboxCountMax = .max
    policy.limits.outboxByteCountMax = .max
    _ = try insert(
      [.put(record, payload, base: .mustNotExist)], stamp: stamp, policy: policy, &transaction)
    try transaction.delete(record, in: tables.lost)
  }

  /// Sends them again behind everything, in the order in which they were acknowledged; what cannot be
  /// sent unseen over another edit is parked as a conflict.
  func sendAgain(
    acknowledged mutations: [UUID], stamp: Data, policy: StorePolicy,
    _ transaction: inout WriteTransaction
  ) throws {
    let wanted = Set(mutations)
    var found: [UUID: (counter: UInt64, known: AcknowledgedMutation)] = [:]
    try transaction.scan(tables.acknowledged) { key, bytes in
      let known = try AcknowledgedCodec.decode(bytes)
      guard wanted.contains(known.entry.mutation) else { return .next }
      found[known.entry.mutation] = (try UInt64Codec.decode(key), known)
      return .next
    }
    guard found.count == wanted.count else {
      throw StoreError(.unknownMutation, "an acknowledged mutation is not kept any more")
    }
    let epoch = try epoch(transaction)
    let lineage = try tables.lineage(transaction)
    let conflict = Parked(reason: .conflict, code: HubCode.epochChanged.rawValue)
    var totals = try tables.totals(transaction)
    // Of each record the last one sent again, and whether an edit waited that is newer than them all.
    var before: [RecordID: (mutation: UUID, isOvertaken: Bool)] = [:]
    for (counter, known) in found.values.sorted(by: { $0.counter < $1.counter }) {
      try transaction.delete(counter, in: tables.acknowledged)
      var again = known.entry
      let previous = before[again.record]
      let isOvertaken = try previous?.isOvertaken ?? hasEdit(of: again.record, transaction)
      before[again.record] = (again.mutation, isOvertaken)
      again.firstSent = nil
      again.stamp = stamp
      again.parked = isOvertaken ? conflict : nil
      if case .version(let version) = again.base, known.epoch != epoch,
        version > lineage.forkedAt(known.epoch)
      {
        // That version is one of the left history.
        again.base = previous.map { .mutation($0.mutation) } ?? .mustNotExist
        if previous == nil { again.parked = conflict }
      }
      again.isShown = !isOvertaken
      try add(again, &totals, &transaction)
    }
    try tables.setTotals(totals, &transaction)
  }
}
