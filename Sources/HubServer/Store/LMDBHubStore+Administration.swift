import Foundation
import HubProtocol
import HubRules
import LMDB

extension LMDBHubStore {
  func administer(
    _ action: AdministrativeAction, on account: AccountID
  ) async throws -> AccountState? {
    let known = try environment.read { transaction in
      try transaction.value(of: account.bytes, in: tables.accounts)?.state.status
    }
    guard let known else { return nil }
    if case .recreate = action, known != .erased {
      throw HubServerError(
        .accountNotErased,
        "the account is not erased, so there is nothing to make again; check the ID")
    }
    // On the disk before the transaction begins: from here on the erasure happens, now or at the
    // next start.
    let note: ErasureNotes.Note? =
      switch action {
      case .erase: try notes.add(.erase, account)
      case .recreate: try notes.add(.recreate, account)
      default: nil
      }
    return try await write(waking: account) { [self] transaction in
      var row = try row(of: account, &transaction)
      switch action {
      case .disable: if row.state.status == .active { row.state.status = .disabled }
      case .enable: if row.state.status == .disabled { row.state.status = .active }
      case .erase: try erase(&row, &transaction)
      case .recreate: if row.state.status == .erased { row.state.recreate(UUID()) }
      case .beginEpoch(let forkedAt):
        let highWater = row.state.highWater
        row.state.beginEpoch(UUID(), forkedAt: min(forkedAt ?? highWater, highWater))
      case .purgeTombstones(let sequence):
        try purgeTombstones(below: sequence ?? row.state.highWater, of: &row, &transaction)
      case .purgeResults(let sequence):
        try purgeResults(below: sequence ?? row.state.highWater, of: &row, &transaction)
      }
      try transaction.put(row, for: account.bytes, in: tables.accounts)
      if let note { try transaction.put([], for: note.id, in: tables.notes) }
      return row.state
    }
  }

  /// A new epoch for every account, since the data file is not the one the last run left.
  func beginEpochs(_ transaction: inout WriteTransaction) throws {
    var rows: [(account: [UInt8], row: AccountRow)] = []
    try transaction.scan(tables.accounts) { key, value in
      rows.append((key.copiedBytes(), try AccountRowCodec.decode(value)))
      return .next
    }
    for (account, var row) in rows {
      row.state.beginEpoch(UUID(), forkedAt: row.state.highWater)
      try transaction.put(row, for: account, in: tables.accounts)
    }
  }

  /// Erases, and makes again, what was noted and is not in this data file.
  ///
  /// Only an erasure's own note erases. It stands before that of the recreation, if there is one:
  /// without it there is nothing to make again.
  func applyMissing(
    _ noted: [(note: ErasureNotes.Note, account: AccountID)],
    _ transaction: inout WriteTransaction
  ) throws {
    for (note, account) in noted where try !transaction.contains(note.id, in: tables.notes) {
      var row = try row(of: account, &transaction)
      switch note.action {
      case .erase: try erase(&row, &transaction)
      case .recreate: if row.state.status == .erased { row.state.recreate(UUID()) }
      }
      try transaction.put(row, for: account.bytes, in: tables.accounts)
      try transaction.put([], for: note.id, in: tables.notes)
    }
  }

  private func erase(_ row: inout AccountRow, _ transaction: inout WriteTransaction) throws {
    let everything = RecordKeyCodec.Key(number: row.number, id: [])
    try transaction.deleteAll(in: tables.records, .prefix(everything))
    try transaction.deleteAll(in: tables.changes, .changes(of: row.number))
    try transaction.deleteAll(in: tables.results, .results(of: row.number))
    try transaction.deleteAll(in: tables.order, .changes(of: row.number))
    row.state.erase()
  }

  private func purgeTombstones(
    below sequence: UInt64, of row: inout AccountRow, _ transaction: inout WriteTransaction
  ) throws {
    row.state.raiseMinimumCursor(to: sequence)
    guard row.state.minimumCursor > 0 else { return }
    var purged: [(version: VersionKeyCodec.Key, id: RecordID)] = []
    try transaction.scan(
      tables.changes,
      .changes(of: row.number, after: 0, through: row.state.minimumCursor - 1)
    ) { key, value in
      if try StoredChangeCodec.isTombstone(value) {
        purged.append((try VersionKeyCodec.decode(key), try StoredChangeCodec.decode(value).id))
      }
      return .next
    }
    for (version, id) in purged {
      try transaction.delete(version, in: tables.changes)
      let key = RecordKeyCodec.Key(number: row.number, id: id.bytes)
      try transaction.delete(key, in: tables.records)
    }
  }

  private func purgeResults(
    below sequence: UInt64, of row: inout AccountRow, _ transaction: inout WriteTransaction
  ) throws {
    row.state.raiseIdempotencyFloor(to: sequence)
    guard row.state.idempotencyFloor > 0 else { return }
    let range = KeyRange.changes(
      of: row.number, after: 0, through: row.state.idempotencyFloor - 1)
    var purged: [UUID] = []
    try transaction.scan(tables.order, range) { _, value in
      purged.append(try AppliedMutationCodec.decode(value).mutation)
      return .next
    }
    for mutation in purged {
      let key = MutationKeyCodec.Key(number: row.number, mutation: mutation)
      try transaction.delete(key, in: tables.results)
    }
    try transaction.deleteAll(in: tables.order, range)
  }
}

extension KeyRange<MutationKeyCodec.Key> {
  /// Every result of an account.
  fileprivate static func results(of number: UInt64) -> Self {
    .through(
      Key(number: number, mutation: UUID(uuid: lowest)),
      Key(number: number, mutation: UUID(uuid: highest)))
  }

  private static var lowest: uuid_t { (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }
  private static var highest: uuid_t {
    (255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255)
  }
}
