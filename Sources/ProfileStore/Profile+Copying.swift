import Foundation
import HubProtocol
import LMDB

// Copies between two accounts' profiles: new changes of the one, and nothing of the other's is touched.
// No area ever changes its owner.
extension Profile {
  /// Copies records of another account's profile into this one, as changes of this account with UUIDs
  /// of their own; the other profile stays as it is.
  ///
  /// Both accounts are named and compared with owner and session on their side: the person must be
  /// signed in to both, the one by a session given to `profile(for:session:)`. All of it is one
  /// transaction of this area, with a receipt. A copy never overwrites unseen: it goes up as *must not
  /// exist yet*, so where the hub has another record of that ID it is parked as a conflict; where an
  /// edit of the record waits here it is parked at once. A record that is here with the same content is
  /// passed over, so that a copy can be made again.
  /// - Parameters:
  ///   - source: the profile to copy from; local edits that wait there are copied with the rest.
  ///   - sourceAccount: whose profile that is.
  ///   - account: whose profile this is.
  ///   - selection: which records; all by default.
  /// - Returns: the receipt; with nothing to copy it says 0 and is not kept.
  /// - Throws: `ownedByAnotherAccount`, `notBound` for either side; `notSignedIn`,
  ///   `anotherAccountSignedIn`, `sessionUnknown`; `recordKeepingDiffers` when the app keeps its records
  ///   itself: it enqueues them under the other account then; `payloadTooLarge`; `outboxFull`;
  ///   `storage`. Nothing has changed then.
  /// - Cost: reads and writes each record once.
  public func copyRecords(
    from source: Profile, sourceAccount: VerifiedAccount, account: VerifiedAccount,
    selecting selection: RecordSelection = .all
  ) async throws -> CopyReceipt {
    try requireRecordsHere()
    try source.requireRecordsHere()
    guard source.id != id else {
      throw StoreError(.ownedByAnotherAccount, "a profile is not copied into itself: name another")
    }
    try source.requireOwned(by: sourceAccount)
    let receipt = CopyReceipt(
      id: TimeOrderedUUID.next(), source: source.id, sourceAccount: sourceAccount,
      copiedAt: registry.policy.now(), records: 0, parked: 0, unchanged: 0)
    return try await takingCopies(receipt, account: account) { take in
      try source.requireOwned(by: sourceAccount)
      try source.visitRecords(selection) { try take($0.id, $0.payload) }
      // The source's session again, as late as it can be asked.
      try source.requireOwned(by: sourceAccount)
    }
  }

  /// What copies and imports have brought into this profile, oldest first.
  /// - Throws: as ``record(_:)``.
  public func copyReceipts() throws -> [CopyReceipt] {
    guard let table = try area.copiesTable(making: false) else { return [] }
    var found: [CopyReceipt] = []
    try area.read { transaction in
      try requireReadable(transaction)
      try transaction.scan(table) { _, bytes in
        found.append(try CopyReceiptCodec.decode(bytes))
        return .next
      }
    }
    // Their IDs are in the order of time.
    return found
  }

  /// Takes records over in one transaction, with the receipt unless it is nil.
  func takingCopies(
    _ receipt: CopyReceipt, account: VerifiedAccount, isKept: Bool = true,
    _ body: @escaping @Sendable ((RecordID, Data) throws -> Void) throws -> Void
  ) async throws -> CopyReceipt {
    let session = session
    try area.read { try requireWritable(account.bytes, session, $0) }
    try await registry.noticeSignIn(of: account, in: session)
    let table = try area.copiesTable(making: true)
    let taken = try await area.write { [area, policy = registry.policy] transaction in
      try self.requireWritable(account.bytes, session, transaction)
      var receipt = receipt
      var totals = try area.tables.totals(transaction)
      try body { record, payload in
        switch try area.takeCopy(
          record, payload, stamp: account.bytes, policy: policy, &totals, &transaction)
        {
        case .unchanged: receipt.unchanged += 1
        case .stored: receipt.records += 1
        case .parked:
          receipt.records += 1
          receipt.parked += 1
        }
      }
      try area.tables.setTotals(totals, &transaction)
      if isKept, receipt.records > 0, let table {
        try transaction.put(receipt, for: receipt.id, in: table)
      }
      try self.requireWritable(account.bytes, session, transaction)
      return receipt
    }
    area.signals.outbox.raise()
    return taken
  }

  func requireRecordsHere() throws(StoreError) {
    guard registry.policy.keepsRecords else {
      throw StoreError(
        .recordKeepingDiffers,
        "the app keeps its records itself: read them there, and enqueue them under the account")
    }
  }

  /// Account = owner, and the session says it.
  func requireOwned(by account: VerifiedAccount) throws {
    try area.read { transaction in
      guard let owner = try area.tables.owner(transaction) else { throw StoreError.notBound }
      guard owner == account.bytes else { throw StoreError.foreignArea }
      try requireReadable(transaction)
    }
  }

  /// Visits records in byte order of their IDs, all in one snapshot.
  func visitRecords(
    _ selection: RecordSelection, _ body: (Record) throws -> Void
  ) throws {
    let prefix: RecordID? = if case .prefix(let prefix) = selection { prefix } else { nil }
    // The reads inside see the snapshot of this one.
    try area.read { _ in
      var last: RecordID?
      while true {
        let page = try records(prefix: prefix, after: last, limit: Self.visitCountMax)
        for record in page { try body(record) }
        guard page.count == Self.visitCountMax else { return }
        last = page.last?.id
      }
    }
  }

  /// Records that are in memory at once.
  private static let visitCountMax = 100
}

enum CopyOutcome {
  case stored
  /// An edit of the record waits here: a person decides.
  case parked
  /// It is here with the same content.
  case unchanged
}

extension Area {
  /// One copied record, in the caller's transaction.
  func takeCopy(
    _ record: RecordID, _ payload: Data, stamp: Data, policy: StorePolicy,
    _ totals: inout OutboxTotals, _ transaction: inout WriteTransaction
  ) throws -> CopyOutcome {
    if try shown(record, transaction)?.payload == payload { return .unchanged }
    // A copy that is made again from its start finds what waits of the first one, also what is not shown.
    let waits = try orders(of: record, transaction).contains { order in
      guard let waiting = try self.entry(order, transaction) else { return false }
      return waiting.kind == .put && waiting.payload == payload
    }
    if waits { return .unchanged }
    let mutation = Mutation.put(record, payload, base: .mustNotExist)
    try Self.validate(mutation, payloadByteCountMax: try payloadByteCountMax(transaction))
    try requireRoom(for: mutation, limits: policy.limits, totals, transaction)
    let isEdited = try hasEdit(of: record, transaction)
    var entry = OutboxEntry(
      order: 0, mutation: mutation.id, isCallerGiven: false, stamp: stamp, kind: .put,
      record: record, base: .mustNotExist, firstSent: nil, enqueuedAt: policy.now(),
      parked: isEdited ? Parked(reason: .adopted) : nil, payload: payload)
    // What the account has stays in sight until a person has decided.
    entry.isShown =
      try !isEdited && transaction.value(of: record, in: tables.known)?.body == nil
    try add(entry, &totals, &transaction)
    return isEdited ? .parked : .stored
  }

  /// - Returns: nil when there is none and none is to be made.
  func copiesTable(making: Bool) throws -> Table<UUIDCodec, CopyReceiptCodec>? {
    try storage { environment in
      guard try making || environment.tableNames().contains(CopyReceiptCodec.tableName) else {
        return nil
      }
      return try environment.table(
        CopyReceiptCodec.tableName, key: UUIDCodec.self, value: CopyReceiptCodec.self)
    }
  }
}
