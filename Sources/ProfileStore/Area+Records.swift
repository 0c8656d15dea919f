import Foundation
import HubProtocol
import LMDB

// The records of an area that keeps them (managed mode), as the person sees them: the newest waiting
// edit, else the hub's version. An edit is stored once, in the outbox; when it goes, what the hub has
// is what is shown.
extension Area {
  /// The newest edit of a record that is shown. An adopted edit of a record that the account has is
  /// not, before the person has decided.
  func shownEdit<T: Transaction & ~Copyable>(
    of record: RecordID, _ transaction: borrowing T
  ) throws -> OutboxEntry? {
    for order in try orders(of: record, transaction).reversed() {
      if let entry = try entry(order, transaction), entry.isShown { return entry }
    }
    return nil
  }

  /// The record as it is shown; nil when there is none, or it is deleted.
  func shown<T: Transaction & ~Copyable>(
    _ record: RecordID, _ transaction: borrowing T
  ) throws -> Record? {
    if let edit = try shownEdit(of: record, transaction) {
      return try shown(edit, transaction)
    }
    guard let known = try transaction.value(of: record, in: tables.known) else { return nil }
    return try hubVersion(of: record, known, HubVersions(self, transaction), transaction)
  }

  private func shown<T: Transaction & ~Copyable>(
    _ edit: OutboxEntry, _ transaction: borrowing T
  ) throws -> Record? {
    guard let payload = edit.payload else { return nil }
    var version: UInt64?
    if let known = try transaction.value(of: edit.record, in: tables.known),
      let newest = known.newest, !newest.isDeleted
    {
      version = try HubVersions(self, transaction).version(newest)
    }
    return Record(id: edit.record, payload: payload, version: version, isPending: true)
  }

  /// Which of the hub's versions have a number that means something now.
  struct HubVersions {
    private let comparison: VersionComparison?

    init<T: Transaction & ~Copyable>(_ area: Area, _ transaction: borrowing T) throws {
      let tables = area.tables
      comparison = try area.epoch(transaction).map {
        try tables.epochs(transaction).comparison(in: $0, lineage: tables.lineage(transaction))
      }
    }

    func version(_ mark: KnownRecord.Mark) throws -> UInt64? {
      guard let comparison else { return mark.version }
      return try comparison.version(mark)
    }
  }

  private func hubVersion<T: Transaction & ~Copyable>(
    of record: RecordID, _ known: KnownRecord, _ versions: HubVersions, _ transaction: borrowing T
  ) throws -> Record? {
    guard let place = known.body?.place else { return nil }
    guard let bytes = try transaction.bytes(of: place, in: tables.bodies) else {
      throw StoreError.damaged("a record")
    }
    let body = try StoredBody(bytes)
    let mark = KnownRecord.Mark(epoch: body.epoch, version: body.version, isDeleted: false)
    return Record(
      id: record, payload: body.payload.copiedData(), version: try versions.version(mark),
      isPending: false)
  }

  /// The payload of the hub's version that is kept here.
  func hubPayload<T: Transaction & ~Copyable>(
    of record: RecordID, _ transaction: borrowing T
  ) throws -> Data? {
    guard let place = try transaction.value(of: record, in: tables.known)?.body?.place,
      let bytes = try transaction.bytes(of: place, in: tables.bodies)
    else { return nil }
    return try StoredBody(bytes).payload.copiedData()
  }

  /// The records as they are shown, in byte order of their IDs.
  /// - Parameter range: where to begin; `prefix` says where to end.
  func shownRecords<T: Transaction & ~Copyable>(
    _ range: KeyRange<RecordID>, prefix: RecordID?, limit: Int, _ transaction: borrowing T
  ) throws -> [Record] {
    var found: [Record] = []
    let versions = try HubVersions(self, transaction)
    var range = range
    while found.count < limit {
      // As many edits at a time as are looked at without keeping a whole outbox in memory.
      let (edited, isLast) = try editedRecords(range, prefix: prefix, limit: 512, transaction)
      var next = edited[...]
      func takeEdits(through record: RecordID?) throws -> Bool {
        var hasEdit = false
        while let first = next.first, record.map({ first <= $0 }) ?? true, found.count < limit {
          next.removeFirst()
          let edit = try shownEdit(of: first, transaction)
          if first == record { hasEdit = edit != nil }
          if let edit, let shown = try shown(edit, transaction) { found.append(shown) }
        }
        return hasEdit
      }
      try transaction.scan(tables.known, range) { key, value in
        let record = try RecordIDCodec.decode(key)
        if let prefix, !record.bytes.starts(with: prefix.bytes) { return .stop }
        if !isLast, let end = edited.last, record > end { return .stop }
        if try takeEdits(through: record) { return found.count < limit ? .next : .stop }
        guard found.count < limit else { return .stop }
        let known = try KnownRecordCodec.decode(value)
        if let hubs = try hubVersion(of: record, known, versions, transaction) {
          found.append(hubs)
        }
        return found.count < limit ? .next : .stop
      }
      _ = try takeEdits(through: nil)
      guard !isLast, let end = edited.last else { break }
      range = .after(end)
    }
    return found
  }

  /// The records with edits, in byte order of their IDs.
  /// - Returns: whether there are no more.
  private func editedRecords<T: Transaction & ~Copyable>(
    _ range: KeyRange<RecordID>, prefix: RecordID?, limit: Int, _ transaction: borrowing T
  ) throws -> (records: [RecordID], isLast: Bool) {
    var records: [RecordID] = []
    var isLast = true
    try transaction.scan(tables.edits, range) { key, _ in
      let record = try RecordIDCodec.decode(key)
      if let prefix, !record.bytes.starts(with: prefix.bytes) { return .stop }
      if records.last == record { return .next }
      guard records.count < limit else {
        isLast = false
        return .stop
      }
      records.append(record)
      return .next
    }
    return (records, isLast)
  }

  /// How many records are shown.
  /// - Cost: as many steps as there are records with edits.
  func shownRecordCount<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> Int {
    let mark = UInt64(RecordKeepingMark.area.rawValue)
    guard try tables.number(.recordKeeping, transaction) == mark else { return 0 }
    var count = Int(clamping: try tables.bodyLog(transaction).liveCount)
    var last: RecordID?
    try transaction.scan(tables.edits) { key, _ in
      let record = try RecordIDCodec.decode(key)
      guard record != last else { return .next }
      last = record
      guard let edit = try shownEdit(of: record, transaction) else { return .next }
      let isAtHub = try transaction.value(of: record, in: tables.known)?.body != nil
      if isAtHub { count -= 1 }
      if edit.payload != nil { count += 1 }
      return .next
    }
    return count
  }
}
