package import Foundation
package import HubProtocol
package import LMDB

/// What a pass has to know of an area before it asks the hub anything, read in one snapshot.
package struct PassFacts: Sendable {
  /// The owner's bytes, as every request asserts them.
  package var owner: Data
  package var client: ClientIdentity
  package var cursor: Cursor?
  package var hasFinishedScan: Bool
  package var scan: ScanState?
  /// The epochs that were left.
  package var lineage: [LineageEntry]
  /// Of the last batch that a closure accepted.
  package var position: UInt64
  package var isErasedAtHub: Bool

  package init(
    owner: Data, client: ClientIdentity, cursor: Cursor? = nil, hasFinishedScan: Bool = false,
    scan: ScanState? = nil, lineage: [LineageEntry] = [], position: UInt64 = 0,
    isErasedAtHub: Bool = false
  ) {
    self.owner = owner
    self.client = client
    self.cursor = cursor
    self.hasFinishedScan = hasFinishedScan
    self.scan = scan
    self.lineage = lineage
    self.position = position
    self.isErasedAtHub = isErasedAtHub
  }

  /// The epoch that this area goes on in: that of a forced scan, else the cursor's.
  package var epoch: UUID? {
    scan.flatMap { $0.isForced ? $0.epoch : nil } ?? cursor?.epoch
  }
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
  init(_ mark: KnownRecord.Mark, _ epochs: EpochList) throws {
    self.init(
      epoch: try epochs.epoch(mark.epoch), version: mark.version, isDeleted: mark.isDeleted)
  }

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
        hasFinishedScan: try tables.number(.hasFinishedScan, transaction) != 0,
        scan: try tables.scan(transaction), lineage: try tables.lineage(transaction),
        position: try tables.number(.position, transaction),
        isErasedAtHub: try tables.number(.erasedAtHub, transaction) != 0)
    }
  }

  /// The epoch that this area goes on in.
  func epoch<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> UUID? {
    if let scan = try tables.scan(transaction), scan.isForced { return scan.epoch }
    return try tables.cursor(.cursor, transaction)?.epoch
  }

  /// Remembers what the hub said of itself at the beginning of a pass, in the epoch that the area is
  /// in.
  package func note(_ standing: SessionAnswer) async throws {
    let isKnown = try read { transaction in
      // A number that has grown is noted with what it brings, a verdict or a page: it needs no commit
      // of its own.
      try tables.hubLimits(transaction) == standing.limits
        && tables.cursor(.highWater, transaction)?.epoch == standing.epoch
        && tables.lineage(transaction) == lineage(standing, leaving: [], transaction)
    }
    if isKnown { return }
    try await write(for: .draining) { try self.note(standing, leaving: [], &$0) }
  }

  private func note(
    _ standing: SessionAnswer, leaving left: [UUID], _ transaction: inout WriteTransaction
  ) throws {
    try tables.setHubLimits(standing.limits, &transaction)
    try raiseHighWater(
      Cursor(epoch: standing.epoch, sequence: standing.highWater), &transaction)
    try tables.setLineage(try lineage(standing, leaving: left, transaction), &transaction)
  }

  /// The hub's lineage, and behind it the epochs that this area has left and the hub does not name
  /// any more: nothing of those is today's history, and none is ever taken up again.
  private func lineage<T: Transaction & ~Copyable>(
    _ standing: SessionAnswer, leaving left: [UUID], _ transaction: borrowing T
  ) throws -> [LineageEntry] {
    var lineage = standing.lineage
    for epoch in try tables.lineage(transaction).map(\.epoch) + left
    where !lineage.contains(where: { $0.epoch == epoch }) {
      lineage.append(LineageEntry(epoch: epoch, forkedAt: 0))
    }
    return lineage
  }

  package func noteRegistered(_ client: UUID) async throws {
    try await write(for: .draining) { [tables] transaction in
      guard try tables.client(transaction)?.id == client else { return }
      try tables.setClient(ClientIdentity(id: client, isRegistered: true), &transaction)
    }
  }

  package func noteErasedAtHub() async throws {
    try await write(for: .draining) { [tables] in try tables.setNumber(.erasedAtHub, 1, &$0) }
  }

  /// Remembers how a pass has ended, for a person. One that ended like the one before, not long ago,
  /// is worth no commit of its own: a pass with nothing to do commits nothing.
  package func notePass(_ outcome: PassOutcome) async throws {
    let isKnown = try read { try tables.lastPass($0)?.says(outcome) == true }
    if isKnown { return }
    try await write(for: .draining) { [tables] in try tables.setLastPass(outcome, &$0) }
  }

  // MARK: Applying

  /// What this area knows of the record, if that is newer than the change.
  package func known<T: Transaction & ~Copyable>(
    newerThan change: IncomingChange, epoch: UUID, lineage: [LineageEntry],
    _ transaction: borrowing T
  ) throws -> RecordMetadata? {
    let epochs = try tables.epochs(transaction)
    guard let known = try transaction.value(of: change.record, in: tables.known)?.applied,
      let version = try epochs.comparison(in: epoch, lineage: lineage).version(known),
      version > change.version
    else { return nil }
    return try RecordMetadata(known, epochs)
  }

  /// Which known versions compare with those of an epoch; read once for many records.
  package func comparison<T: Transaction & ~Copyable>(
    in epoch: UUID, lineage: [LineageEntry], _ transaction: borrowing T
  ) throws -> VersionComparison {
    try tables.epochs(transaction).comparison(in: epoch, lineage: lineage)
  }

  /// What this area knows of a record whose ID lies in lent memory, if that is newer than a version.
  /// - Returns: whether the newer one is a tombstone; nil: nothing newer is known.
  package func known<T: Transaction & ~Copyable>(
    newerThan version: UInt64, of id: RawSpan, _ comparison: VersionComparison,
    _ transaction: borrowing T
  ) throws -> (isDeleted: Bool, Void)? {
    try RecordBytes.withBytes(of: id) { id in
      guard let known = try transaction.value(of: id, in: tables.knownInPlace)?.applied,
        let newest = try comparison.version(known), newest > version
      else { return nil }
      return (known.isDeleted, ())
    }
  }

  /// Whether this area knows of no record yet, so that nothing can be newer than what comes.
  package func knowsNothing<T: Transaction & ~Copyable>(
    _ transaction: borrowing T
  ) throws -> Bool { try transaction.count(of: tables.known) == 0 }

  /// Commits what the app has committed: metadata, and records where the area keeps them, and the
  /// progress, in one transaction.
  /// - Parameters:
  ///   - position: the batch's, once the closure has accepted it.
  ///   - alsoBrought: records of which the running scan has nothing more to say.
  ///   - check: runs in the transaction; nothing is committed if it throws.
  package func commit(
    _ changes: [IncomingChange], epoch: UUID, lineage: [LineageEntry], progress: PassProgress,
    position: UInt64?, policy: StorePolicy, alsoBrought: [RecordID] = [],
    requiring check: @escaping @Sendable () throws -> Void
  ) async throws {
    let brought = ChangePage(
      alsoBrought.map { IncomingChange(record: $0, version: 0, payload: nil, isDeleted: true) })
    try await commit(
      pages: [ChangePage(changes)], knownAlready: [brought], epoch: epoch, lineage: lineage,
      progress: progress, position: position, policy: policy, requiring: check)
  }

  /// Commits pages that the app has committed, or that a managed area takes in; all in one transaction.
  /// - Parameters:
  ///   - position: the batch's, once the closure has accepted it.
  ///   - isKnownAlready: the metadata stays as it is; the running scan has no more to say of them.
  ///   - check: runs in the transaction, first and last; nothing is committed if it throws.
  package func commit(
    pages: [ChangePage], epoch: UUID, lineage: [LineageEntry], progress: PassProgress,
    position: UInt64?, policy: StorePolicy, isKnownAlready: Bool = false,
    requiring check: @escaping @Sendable () throws -> Void
  ) async throws {
    try await commit(
      pages: isKnownAlready ? [] : pages, knownAlready: isKnownAlready ? pages : [], epoch: epoch,
      lineage: lineage, progress: progress, position: position, policy: policy, requiring: check)
  }

  private func commit(
    pages: [ChangePage], knownAlready: [ChangePage], epoch: UUID, lineage: [LineageEntry],
    progress: PassProgress, position: UInt64?, policy: StorePolicy,
    requiring check: @escaping @Sendable () throws -> Void
  ) async throws {
    try await write { [self] transaction in
      try check()
      var writer = try KnownWriter(
        self, epoch: epoch, lineage: lineage, keepsRecords: policy.keepsRecords, &transaction)
      try writer.take(pages, isKnownAlready: false, &transaction)
      try writer.take(knownAlready, isKnownAlready: true, &transaction)
      try writer.end(&transaction)
      switch progress {
      case .none: break
      case .cursor(let sequence): try raiseCursor(epoch, sequence, &transaction)
      case .scan(let place):
        guard var scan = try tables.scan(transaction) else { throw StoreError.damaged("scan") }
        scan.place = max(scan.place, place)
        try tables.setScan(scan, &transaction)
      }
      if let position { try tables.setNumber(.position, position, &transaction) }
      try check()
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
    try raiseHighWater(Cursor(epoch: epoch, sequence: sequence), &transaction)
  }

  // MARK: Scans from zero

  /// Begins a scan from zero. Taking up a new epoch also brings the outbox into it.
  /// - Parameter standing: the hub's answer that the scan begins with.
  package func begin(_ scan: ScanState, standing: SessionAnswer) async throws {
    try await write { [self] transaction in
      let left = try epochsInUse(transaction).filter { $0 != scan.epoch }
      // Begun again, the outbox is in that epoch already: an edit that came meanwhile may be based on
      // what the scan has brought.
      let isTakenUp = try epoch(transaction) == scan.epoch
      // Rows that the last scan has marked count as not brought from here on.
      _ = try tables.next(.scanCount, &transaction)
      try tables.setScan(scan, &transaction)
      try note(standing, leaving: left, &transaction)
      guard !isTakenUp, let fork = left.map({ standing.lineage.forkedAt($0) }).min() else { return }
      try updateEntries(&transaction) { entry in
        let before = entry
        if let version = entry.parked?.current?.version, version > fork {
          entry.parked?.current?.version = 0
        }
        entry.firstSent = entry.firstSent.map { min($0, fork) }
        // The version that it is based on means nothing in the new history: the app decides. The
        // number would compare by chance there, also as the base of its followers.
        if case .version(let version) = entry.base, version > fork {
          entry.base = .mustNotExist
          entry.parked =
            entry.parked ?? Parked(reason: .conflict, code: HubCode.epochChanged.rawValue)
        }
        return entry != before
      }
    }
  }

  /// The epochs in which this area's versions count: the cursor's, and that of a scan under way.
  private func epochsInUse<T: Transaction & ~Copyable>(
    _ transaction: borrowing T
  ) throws -> [UUID] {
    [
      try tables.cursor(.cursor, transaction)?.epoch, try tables.scan(transaction)?.epoch,
    ].compactMap { $0 }
  }

  /// The last leg was delivered: the cursor is raised, the tail begins.
  package func finishLegs(_ scan: ScanState) async throws {
    try await write(for: .draining) { [self] transaction in
      var scan = scan
      scan.place = scan.until
      scan.phase = .tail
      try raiseCursor(scan.epoch, scan.until, &transaction)
      try tables.setScan(scan, &transaction)
    }
  }

  /// The whole scan is done.
  package func finishScan(_ scan: ScanState) async throws {
    try await write(for: .draining) { [self] transaction in
      try tables.clear(.scan, &transaction)
      if scan.isForced { try tables.setNumber(.hasFinishedScan, 1, &transaction) }
    }
  }

  /// What the metadata knows and the running scan has not brought, in byte order.
  /// - Parameter areDeleted: the tombstones, else the live records; these as they are known in any way:
  ///   what the hub gave a mutation of this device is there, too, although no pull has brought it.
  package func notBrought(
    after record: RecordID?, areDeleted: Bool, limit: Int
  ) throws -> [(record: RecordID, metadata: RecordMetadata)] {
    var found: [(record: RecordID, metadata: RecordMetadata)] = []
    try read { transaction in
      let epochs = try tables.epochs(transaction)
      let scan = UInt32(truncatingIfNeeded: try tables.number(.scanCount, transaction))
      try transaction.scan(tables.known, record.map { .after($0) } ?? .all) { key, value in
        let row = try KnownRecordCodec.decode(value)
        // A tombstone that this device has put a record behind is no news of the record.
        let tombstone = row.live == nil ? row.tombstone : nil
        guard row.scan != scan, let known = areDeleted ? tombstone : row.live else {
          return .next
        }
        found.append((try RecordIDCodec.decode(key), try RecordMetadata(known, epochs)))
        return found.count < limit ? .next : .stop
      }
    }
    return found
  }

  /// Lists records that the hub has lost with an epoch; they are kept in place.
  ///
  /// One that this device has deleted with that epoch is none: neither side has it.
  /// - Returns: how many were listed.
  @discardableResult
  package func noteLost(
    _ records: [(record: RecordID, metadata: RecordMetadata)]
  ) async throws -> Int {
    try await write { [tables] transaction in
      var count = 0
      for (record, metadata) in records {
        guard var row = try transaction.value(of: record, in: tables.known) else { continue }
        if row.newest?.isDeleted == true {
          try transaction.delete(record, in: tables.known)
          continue
        }
        try transaction.put(metadata, for: record, in: tables.lost)
        count += 1
        row.applied = nil
        row.ahead = nil
        if row.body == nil {
          try transaction.delete(record, in: tables.known)
        } else {
          try transaction.put(row, for: record, in: tables.known)
        }
      }
      return count
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
    try read { try tables.totals($0).lastOrder }
  }

  /// What changes whenever there may be something more to send, whoever did it, in whatever process.
  package func outboxMark() throws -> OutboxMark {
    try read {
      OutboxMark(
        lastOrder: try tables.totals($0).lastOrder, decisions: try tables.number(.decisions, $0))
    }
  }

  // MARK: Discarded mutations

  /// Discarded mutations that wait until the app has the hub's version.
  package func discarding() throws -> [OutboxEntry] {
    try read { transaction in
      var entries: [OutboxEntry] = []
      guard try tables.totals(transaction).parked > 0 else { return entries }
      try transaction.scan(tables.outbox) { key, bytes in
        let entry = try OutboxEntry(order: UInt64Codec.decode(key), bytes: bytes)
        if entry.parked?.reason == .discarding { entries.append(entry) }
        return .next
      }
      return entries
    }
  }

  /// The app has the hub's version of a discarded mutation's record: the mutation goes.
  /// - Parameters:
  ///   - change: the hub's version; nil: it has none.
  ///   - position: the batch's, once the closure has accepted it.
  ///   - check: runs in the transaction; nothing is committed if it throws.
  package func finishDiscard(
    of entry: OutboxEntry, change: IncomingChange?, epoch: UUID, lineage: [LineageEntry],
    position: UInt64?, policy: StorePolicy, requiring check: @escaping @Sendable () throws -> Void
  ) async throws {
    try await write(for: .draining) { [self] transaction in
      try check()
      if let position { try tables.setNumber(.position, position, &transaction) }
      guard let now = try self.entry(entry.order, transaction), now.mutation == entry.mutation,
        now.parked?.reason == .discarding
      else { return }
      if let change {
        var writer = try KnownWriter(
          self, epoch: epoch, lineage: lineage, keepsRecords: policy.keepsRecords, &transaction)
        try writer.take([ChangePage([change])], isKnownAlready: false, &transaction)
        try writer.end(&transaction)
      }
      try finishDiscard(now, &transaction)
    }
  }
}
