package import Foundation
package import HubProtocol
import LMDB

// Conflicts: what a pass's resolver, or the app itself, decides on parked mutations.
extension Area {
  /// The parked mutations that the app has to decide on, in order: what the hub answered `conflict`
  /// to, what a new epoch has made one, and what was adopted beside another edit.
  package func conflicts() throws -> [OutboxEntry] {
    try read { transaction in
      var entries: [OutboxEntry] = []
      guard try tables.totals(transaction).parked > 0 else { return entries }
      try transaction.scan(tables.outbox) { key, bytes in
        let entry = try OutboxEntry(order: UInt64Codec.decode(key), bytes: bytes)
        switch entry.parked?.reason {
        case .conflict, .adopted: entries.append(entry)
        case .rejected, .tooLarge, .discarding, nil: break
        }
        return .next
      }
      return entries
    }
  }

  /// Settles what a resolver has decided, in one transaction.
  /// - Parameters:
  ///   - entry: as it was when the resolver was asked; one that is decided meanwhile stays as it is.
  ///   - seen: the record at the hub, as the resolver saw it, in `epoch`; nil: the hub has none.
  ///   - check: runs in the transaction; nothing is committed if it throws.
  /// - Returns: false when it was decided meanwhile.
  package func settle(
    _ entry: OutboxEntry, _ resolution: Resolution, seen: HubVersion?, epoch: UUID,
    policy: StorePolicy,
    requiring check: @escaping @Sendable () throws -> Void
  ) async throws -> Bool {
    let purpose: WritePurpose =
      if case .keepHub = resolution { .draining } else { .storing }
    return try await write(for: purpose) { [self] transaction in
      try check()
      guard var now = try self.entry(entry.order, transaction), now.mutation == entry.mutation,
        now.parked == entry.parked
      else { return false }
      if let seen, seen != now.parked?.current {
        let before = now
        now.parked?.current = seen
        try withTotals(&transaction) { try update(now, before: before, &$0, &$1) }
        if policy.keepsRecords {
          var writer = try KnownWriter(
            self, epoch: epoch, lineage: tables.lineage(transaction), keepsRecords: true,
            &transaction)
          try writer.take(
            now.record, version: seen.version, payload: seen.payload, isOwn: false, &transaction)
          try writer.end(&transaction)
        }
      }
      let base = try decidedBase(of: now, seen: seen, transaction)
      try resolve(entry.mutation, resolution, base: base, policy: policy, &transaction)
      return true
    }
  }

  /// A parked mutation with the record at the hub as this area knows it now: as the verdict named it, or
  /// newer where one has come since. What the person is shown, and decides about.
  func brought<T: Transaction & ~Copyable>(
    upToDate entry: OutboxEntry, _ transaction: borrowing T
  ) throws -> OutboxEntry {
    guard entry.parked != nil,
      let newest = try transaction.value(of: entry.record, in: tables.known)?.newest,
      let version = try HubVersions(self, transaction).version(newest),
      version > entry.parked?.current?.version ?? 0
    else { return entry }
    let payload = newest.isDeleted ? nil : try hubPayload(of: entry.record, transaction)
    var entry = entry
    entry.parked?.current = HubVersion(
      version: version, isDeleted: newest.isDeleted, payload: payload,
      isPayloadOmitted: payload == nil && !newest.isDeleted)
    return entry
  }

  /// Whether a pull has brought a newer version of a record than this one of the area's epoch.
  package func knowsNewer(than version: UInt64, of record: RecordID) throws -> Bool {
    try read { transaction in
      guard let known = try transaction.value(of: record, in: tables.known)?.applied,
        let epoch = try tables.cursor(.highWater, transaction)?.epoch,
        let now = try comparison(in: epoch, lineage: tables.lineage(transaction), transaction)
          .version(known)
      else { return false }
      return now > version
    }
  }

  /// Keeps the hub's, keeps the local edit, or sends another payload in its place.
  /// - Parameter base: what it is based on then.
  /// - Throws: `unknownMutation`, `notParked`; `payloadTooLarge` for a merged payload.
  func resolve(
    _ mutation: UUID, _ resolution: Resolution, base: Mutation.Base?, policy: StorePolicy,
    _ transaction: inout WriteTransaction
  ) throws {
    switch resolution {
    case .keepHub: try discard(mutation, keepsRecords: policy.keepsRecords, &transaction)
    case .keepLocal:
      try retry(mutation, base: base, newID: UUID(), &transaction)
    case .merged(let payload):
      try merge(mutation, payload: payload, base: base, &transaction)
    }
  }
}
