package import Foundation
package import HubProtocol
package import LMDB

/// What a pass has to know of an area before it asks the hub anything, read in one snapshot.
package struct PassFacts: Sendable {
  /// The owner's bytes, as every request asserts them.
  package var owner: Data
  package var client: ClientIdentity
  package var cursor: Cursor?
  package var highWater: Cursor?
  package var hasFinishedScan: Bool
  package var scan: ScanState?
  package var lineage: [LineageEntry]
  package var limits: HubLimits?
  package var position: UInt64
  package var isErasedAtHub: Bool
}

/// One change of the hub, on its way to the app and into the metadata.
package struct IncomingChange: Sendable, Hashable {
  package var record: RecordID
  package var version: UInt64
  /// nil: deleted.
  package var payload: Data?
  package var isDeleted: Bool
  /// No tombstone said it: the record was not among what a whole scan brought.
  package var isInferred: Bool

  package init(
    record: RecordID, version: UInt64, payload: Data?, isDeleted: Bool, isInferred: Bool = false
  ) {
    self.record = record
    self.version = version
    self.payload = payload
    self.isDeleted = isDeleted
    self.isInferred = isInferred
  }
}

/// How far a committed batch brings the area.
package enum PassProgress: Sendable, Hashable {
  /// An ordinary pull: everything up to it was applied.
  case cursor(UInt64)
  /// A scan from zero: everything up to it was applied, the cursor stays.
  case scan(UInt64)
  /// Nothing but the changes themselves.
  case none
}

extension [LineageEntry] {
  /// Up to where the history of a left epoch is today's, too; 0 for one that is missing.
  package func forkedAt(_ epoch: UUID) -> UInt64 {
    first { $0.epoch == epoch }?.forkedAt ?? 0
  }
}

extension RecordMetadata {
  /// The known version as a number of the given epoch, or nil when it does not compare: known above
  /// the fork it excludes nothing.
  package func version(in epoch: UUID, lineage: [LineageEntry]) -> UInt64? {
    if self.epoch == epoch { return version }
    return version <= lineage.forkedAt(self.epoch) ? version : nil
  }
}

extension Area {
  package func facts() throws -> PassFacts {
    try read { transaction in
      guard let owner = try tables.owner(transaction) else {
        throw StoreError(.notBound, "an unowned area does not synchronize: bind it first")
      }
      guard let client = try tables.client(transaction) else { throw StoreError.damaged("client") }
      return PassFacts(
        owner: owner, client: client, cursor: try tables.cursor(.cursor, transaction),
        highWater: try tables.cursor(.highWater, transaction),
        hasFinishedScan: try tables.number(.hasFinishedScan, transaction) != 0,
        scan: try tables.scan(transaction), lineage: try tables.lineage(transaction),
        limits: try tables.hubLimits(transaction),
        position: try tables.number(.position, transaction),
        isErasedAtHub: try tables.number(.erasedAtHub, transaction) != 0)
    }
  }

  /// Remembers what the hub said of itself at the beginning of a pass.
  package func note(
    limits: HubLimits, highWater: Cursor, lineage: [LineageEntry]
  ) async throws {
    let isKnown = try read { transaction in
      let known = try tables.cursor(.highWater, transaction)
      return try tables.hubLimits(transaction) == limits
        && known?.epoch == highWater.epoch
        && known.map { $0.sequence >= highWater.sequence } == true
        && tables.lineage(transaction) == lineage
    }
    if isKnown { return }
    try await write { [tables] transaction in
      try tables.setHubLimits(limits, &transaction)
      try self.raiseHighWater(highWater, &transaction)
      try tables.setLineage(lineage, &transaction)
    }
  }

  package func noteRegistered(_ client: UUID, _ isRegistered: Bool) async throws {
    try await write { [tables] transaction in
      guard try tables.client(transaction)?.id == client else { return }
      try tables.setClient(
        ClientIdentity(id: client, isRegistered: isRegistered), &transaction)
    }
  }

  package func noteErasedAtHub() async throws {
    try await write { [tables] in try tables.setNumber(.erasedAtHub, 1, &$0) }
  }

  package func notePass(_ outcome: PassOutcome) async throws {
    try await write { [tables] in try tables.setLastPass(outcome, &$0) }
  }

  // MARK: Applying

  /// Whether the change is older than what this area knows of the record.
  package func isOutdated<T: Transaction & ~Copyable>(
    _ change: IncomingChange, epoch: UUID, lineage: [LineageEntry], _ transaction: borrowing T
  ) throws -> Bool {
    guard let known = try transaction.value(of: change.record, in: tables.metadata),
      let version = known.version(in: epoch, lineage: lineage)
    else { return false }
    return version > change.version
  }

  /// Commits what the app has committed: metadata, and records where the area keeps them, and the
  /// progress, in one transaction.
  /// - Parameters:
  ///   - position: the batch's, once the closure has accepted it.
  ///   - alsoBrought: records of which the running scan has nothing more to say.
  package func commit(
    _ changes: [IncomingChange], epoch: UUID, lineage: [LineageEntry], progress: PassProgress,
    position: UInt64?, policy: StorePolicy, alsoBrought: [RecordID] = []
  ) async throws {
    try await write { [self] transaction in
      let scan = try tables.scan(transaction)
      for change in changes {
        if change.isInferred {
          try commitInferred(change, policy: policy, &transaction)
        } else {
          try commit(change, epoch: epoch, lineage: lineage, policy: policy, &transaction)
        }
        if scan != nil { try transaction.put([], for: change.record, in: tables.brought) }
      }
      for record in alsoBrought { try transaction.put([], for: record, in: tables.brought) }
      switch progress {
      case .none: break
      case .cursor(let sequence): try raiseCursor(epoch, sequence, &transaction)
      case .scan(let place):
        guard var scan else { throw StoreError.damaged("scan") }
        scan.place = max(scan.place, place)
        try tables.setScan(scan, &transaction)
      }
      if let position { try tables.setNumber(.position, position, &transaction) }
    }
  }

  private func commit(
    _ change: IncomingChange, epoch: UUID, lineage: [LineageEntry], policy: StorePolicy,
    _ transaction: inout WriteTransaction
  ) throws {
    let known = try transaction.value(of: change.record, in: tables.metadata)
    if let version = known?.version(in: epoch, lineage: lineage), version > change.version {
      return
    }
    try transaction.put(
      RecordMetadata(epoch: epoch, version: change.version, isDeleted: change.isDeleted),
      for: change.record, in: tables.metadata)
    try transaction.delete(change.record, in: tables.lost)
    if policy.keepsRecords {
      try takeIn(
        change.record, version: change.version, payload: change.payload,
        isNewEpoch: known.map { $0.epoch != epoch } ?? false, &transaction)
    } else {
      try transaction.delete(change.record, in: tables.unpulled)
    }
  }

  /// A deletion that no tombstone said: only flagged where an edit waits.
  private func commitInferred(
    _ change: IncomingChange, policy: StorePolicy, _ transaction: inout WriteTransaction
  ) throws {
    try transaction.delete(change.record, in: tables.metadata)
    if policy.keepsRecords, try !hasEdit(of: change.record, transaction) {
      try transaction.delete(change.record, in: tables.records)
      try transaction.delete(change.record, in: tables.beside)
    }
  }

  /// The cursor never moves backwards within an epoch.
  private func raiseCursor(
    _ epoch: UUID, _ sequence: UInt64, _ transaction: inout WriteTransaction
  ) throws {
    if let known = try tables.cursor(.cursor, transaction), known.epoch == epoch,
      known.sequence >= sequence
    {
      return
    }
    try tables.setCursor(.cursor, Cursor(epoch: epoch, sequence: sequence), &transaction)
  }

  // MARK: Scans from zero

  /// Begins a scan from zero. Taking up a new epoch also brings the outbox into it.
  package func begin(
    _ scan: ScanState, lineage: [LineageEntry]
  ) async throws {
    try await write { [self] transaction in
      try transaction.deleteAll(in: tables.brought)
      try tables.setScan(scan, &transaction)
      guard scan.kind == .newEpoch, let old = try tables.cursor(.cursor, transaction),
        old.epoch != scan.epoch
      else { return }
      try tables.setLineage(lineage, &transaction)
      let fork = lineage.forkedAt(old.epoch)
      try updateEntries(&transaction) { entry in
        var isChanged = false
        if let firstSent = entry.firstSent, firstSent > fork {
          entry.firstSent = fork
          isChanged = true
        }
        // The version that it is based on means nothing in the new history: the app decides.
        if case .version(let version) = entry.base, version > fork, entry.parked == nil {
          entry.parked = Parked(reason: .conflict, code: HubCode.epochChanged.rawValue)
          isChanged = true
        }
        return isChanged
      }
    }
  }

  /// The last leg was delivered: the cursor is raised, the tail begins.
  package func finishLegs(_ scan: ScanState) async throws {
    try await write { [self] transaction in
      var scan = scan
      scan.place = scan.until
      scan.phase = .tail
      try raiseCursor(scan.epoch, scan.until, &transaction)
      try tables.setScan(scan, &transaction)
    }
  }

  /// The whole scan is done.
  package func finishScan(_ scan: ScanState) async throws {
    try await write { [self] transaction in
      try tables.clear(.scan, &transaction)
      try transaction.deleteAll(in: tables.brought)
      if scan.isForced { try tables.setNumber(.hasFinishedScan, 1, &transaction) }
    }
  }

  /// A scan that the app gave up: forgotten, nothing else changes.
  package func dropScan() async throws {
    try await write { [self] transaction in
      try tables.clear(.scan, &transaction)
      try transaction.deleteAll(in: tables.brought)
    }
  }

  /// What the metadata knows and the running scan has not brought, in byte order.
  /// - Parameter areDeleted: the tombstones, else the live records.
  package func notBrought(
    after record: RecordID?, areDeleted: Bool, limit: Int
  ) throws -> [(record: RecordID, metadata: RecordMetadata)] {
    var found: [(RecordID, RecordMetadata)] = []
    try read { transaction in
      try transaction.scan(tables.metadata, record.map { .after($0) } ?? .all) { key, value in
        let known = try MetadataCodec.decode(value)
        guard known.isDeleted == areDeleted else { return .next }
        let id = try RecordIDCodec.decode(key)
        guard try !transaction.contains(id, in: tables.brought) else { return .next }
        found.append((id, known))
        return found.count < limit ? .next : .stop
      }
    }
    return found.map { (record: $0.0, metadata: $0.1) }
  }

  /// Lists records that the hub has lost with an epoch; they are kept in place.
  package func noteLost(_ records: [(record: RecordID, metadata: RecordMetadata)]) async throws {
    try await write { [tables] transaction in
      for (record, metadata) in records {
        try transaction.put(metadata, for: record, in: tables.lost)
        try transaction.delete(record, in: tables.metadata)
      }
    }
  }

  // MARK: Local edits

  /// Whether an edit of the record waits that a download must not overwrite; a discarded one does
  /// not count any more.
  package func localEdit<T: Transaction & ~Copyable>(
    of record: RecordID, _ transaction: borrowing T
  ) throws -> (isPending: Bool, isParked: Bool) {
    var result = (isPending: false, isParked: false)
    for order in try orders(of: record, transaction) {
      guard let entry = try entry(order, transaction) else { continue }
      switch entry.parked?.reason {
      case nil: result.isPending = true
      case .discarding: break
      default: result.isParked = true
      }
    }
    return result
  }

  /// The order of the newest mutation, which bounds what one pass sends.
  package func lastOrder() throws -> UInt64 {
    try read { try tables.number(.lastOrder, $0) }
  }

  // MARK: Discarded mutations

  /// Discarded mutations that wait until the app has the hub's version.
  package func discarding() throws -> [OutboxEntry] {
    try read { transaction in
      var entries: [OutboxEntry] = []
      guard try tables.totals(transaction).parked > 0 else { return entries }
      try transaction.scan(tables.outbox) { key, bytes in
        let entry = try OutboxEntry(order: key.loadBigEndian(), bytes: bytes)
        if entry.parked?.reason == .discarding { entries.append(entry) }
        return .next
      }
      return entries
    }
  }

  /// The app has the hub's version of a discarded mutation's record: the mutation goes.
  package func finishDiscard(
    of entry: OutboxEntry, change: IncomingChange?, epoch: UUID, lineage: [LineageEntry],
    policy: StorePolicy
  ) async throws {
    try await write { [self] transaction in
      guard let now = try self.entry(entry.order, transaction), now.mutation == entry.mutation,
        now.parked?.reason == .discarding
      else { return }
      if let change {
        try commit(change, epoch: epoch, lineage: lineage, policy: policy, &transaction)
      }
      try finishDiscard(now, keepsRecords: policy.keepsRecords, &transaction)
    }
  }
}
