import Foundation
import HubProtocol
import HubRules
import LMDB

extension LMDBHubStore {
  func page(
    _ query: PageQuery, of account: AccountID, now: Int64
  ) async throws -> PageOutcome {
    let outcome: PageOutcome? = try environment.read { transaction in
      guard let row = try transaction.value(of: account.bytes, in: tables.accounts) else {
        return nil
      }
      switch row.state.gate(query.claim) {
      case .pass: return try page(query, of: row, transaction)
      case .refused(let refusal): return .refused(row.state, refusal)
      case .mustFork: return nil
      }
    }
    if let outcome { return outcome }
    // The account is not there yet, or takes a new epoch: what is right is decided in the write.
    return try await write(waking: account) { [self] transaction in
      var row = try row(of: account, &transaction)
      switch row.state.gate(query.claim) {
      case .pass: return try page(query, of: row, transaction)
      case .refused(let refusal): return .refused(row.state, refusal)
      case .mustFork:
        let refusal = row.state.forkByCursor(to: UUID(), now: now)
        try transaction.put(row, for: account.bytes, in: tables.accounts)
        return .refused(row.state, refusal)
      }
    }
  }

  private func page(
    _ query: PageQuery, of row: AccountRow,
    _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> PageOutcome {
    let end = min(query.until ?? row.state.highWater, row.state.highWater)
    guard query.after < end else {
      return .page(row.state, records: .values([]), more: false, next: query.after)
    }
    if query.isEncoded { return try encodedPage(query, of: row, through: end, transaction) }
    var records: [WireRecord] = []
    let more = try scan(query, of: row, through: end, transaction) { version, value in
      records.append(try StoredChangeCodec.decode(value).record(version: version))
    }
    let next = more ? records.last?.version ?? end : end
    return .page(row.state, records: .values(records), more: more, next: next)
  }

  /// The same, straight from the memory map into the body.
  private func encodedPage(
    _ query: PageQuery, of row: AccountRow, through end: UInt64,
    _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> PageOutcome {
    let count = min(query.limit, Int(clamping: end - query.after))
    var records = EncodedRecords(byteCountHint: count * LMDBHubStore.encodedByteCountHint)
    let more = try scan(query, of: row, through: end, transaction) { version, value in
      try StoredChangeCodec.append(value, version: version, to: &records)
    }
    let next = more ? records.lastVersion ?? end : end
    return .page(row.state, records: .encoded(records), more: more, next: next)
  }

  /// Bytes of a record on the wire: an ID, two UUIDs and names, and a payload of some hundred bytes.
  private static let encodedByteCountHint = 544

  /// Gives the changes in (`after`, `end`] to a closure, as many as a page takes.
  /// - Returns: whether there are more.
  private func scan(
    _ query: PageQuery, of row: AccountRow, through end: UInt64,
    _ transaction: borrowing some Transaction & ~Copyable,
    _ add: (_ version: UInt64, _ value: RawSpan) throws -> Void
  ) throws -> Bool {
    var count = 0
    var byteCount = 0
    var more = false
    try transaction.scan(
      tables.changes, .changes(of: row.number, after: query.after, through: end)
    ) { key, value in
      let size = StoredChangeCodec.contentByteCount(value)
      guard count < query.limit, count == 0 || byteCount + size <= query.byteCountMax else {
        more = true
        return .stop
      }
      byteCount += size
      count += 1
      try add(VersionKeyCodec.decode(key).version, value)
      return .next
    }
    return more
  }

  func record(_ id: RecordID, of account: AccountID) async throws -> RecordOutcome {
    let outcome: RecordOutcome? = try environment.read { transaction in
      guard let row = try transaction.value(of: account.bytes, in: tables.accounts) else {
        return nil
      }
      if let refusal = row.state.statusRefusal { return .refused(row.state, refusal) }
      return .found(row.state, try newest(id, of: row.number, transaction))
    }
    if let outcome { return outcome }
    return .found(try await admit(account).state, nil)
  }

  /// The newest version of a record, tombstones too, with its payload.
  func newest(
    _ id: RecordID, of number: UInt64, _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> WireRecord? {
    let key = RecordKeyCodec.Key(number: number, id: id.bytes)
    guard let head = try transaction.value(of: key, in: tables.records) else { return nil }
    let place = VersionKeyCodec.Key(number: number, version: head.version)
    guard let change = try transaction.value(of: place, in: tables.changes) else {
      throw badForm("a record without its change")
    }
    return change.record(version: head.version)
  }
}
