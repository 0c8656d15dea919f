import Foundation
import HubProtocol
import LMDB

// The built-in record table, where the area keeps the app's records (managed mode).
extension Area {
  /// Shows an edit locally; the hub's version goes beside it until the edit is settled. The table
  /// holds live records only: a delete takes the row out.
  func showLocally(_ entry: OutboxEntry, _ transaction: inout WriteTransaction) throws {
    let current = try transaction.value(of: entry.record, in: tables.records)
    if let current, !current.isLocal {
      try transaction.put(current, for: entry.record, in: tables.beside)
    }
    try showEdit(entry, &transaction)
  }

  private func showEdit(_ entry: OutboxEntry, _ transaction: inout WriteTransaction) throws {
    guard entry.payload != nil else {
      try transaction.delete(entry.record, in: tables.records)
      return
    }
    let version =
      try transaction.value(of: entry.record, in: tables.records)?.version
      ?? transaction.value(of: entry.record, in: tables.beside)?.version
    try transaction.put(
      StoredRecord(version: version, isLocal: true, payload: entry.payload), for: entry.record,
      in: tables.records)
  }

  /// After an edit of a record has gone: the hub's version in place. While others wait it stays
  /// beside, and the newest of them is what is shown.
  func showHubVersion(of record: RecordID, _ transaction: inout WriteTransaction) throws {
    let row = try transaction.value(of: record, in: tables.records)
    if let newest = try orders(of: record, transaction).last.flatMap({ try entry($0, transaction) })
    {
      // A row that is not local is the hub's version already, and no edit covers it.
      if row == nil || row?.isLocal == true { try showEdit(newest, &transaction) }
      return
    }
    let beside = try transaction.value(of: record, in: tables.beside)
    try transaction.delete(record, in: tables.beside)
    if let beside, beside.payload != nil {
      try transaction.put(beside, for: record, in: tables.records)
    } else if beside != nil || row?.isLocal == true {
      // Deleted at the hub, or the hub never had it.
      try transaction.delete(record, in: tables.records)
    }
  }

  /// Takes in a version of the hub: in place, or beside an edit that is shown while it waits.
  func takeIn(
    _ record: RecordID, version: UInt64, payload: Data?, isNewEpoch: Bool,
    _ transaction: inout WriteTransaction
  ) throws {
    let stored = StoredRecord(version: version, isLocal: false, payload: payload)
    // An adopted edit of a record that the hub has is not shown before the person has decided.
    let isCovered = try transaction.value(of: record, in: tables.records)?.isLocal ?? true
    if isCovered, try hasEdit(of: record, transaction) {
      let beside = try transaction.value(of: record, in: tables.beside)
      if !isNewEpoch, let known = beside?.version, known > version { return }
      try transaction.put(stored, for: record, in: tables.beside)
    } else if payload != nil {
      try transaction.put(stored, for: record, in: tables.records)
    } else {
      try transaction.delete(record, in: tables.records)
    }
  }

  /// While a new epoch is taken up: a number above the fork is one of the left history and compares with
  /// none of the new one. What it stood for stays until the scan brings the hub's.
  func forgetVersions(
    above fork: UInt64, unlessOf epoch: UUID, _ transaction: inout WriteTransaction
  ) throws {
    for table in [tables.records, tables.beside] {
      var place = KeyRange<RecordID>.all
      while let record = try transaction.firstKey(in: table, place) {
        place = .after(record)
        guard var row = try transaction.value(of: record, in: table), let version = row.version,
          try version > fork
            && transaction.value(of: record, in: tables.metadata)?.epoch != epoch
        else { continue }
        row.version = nil
        try transaction.put(row, for: record, in: table)
      }
    }
  }

  /// After an acknowledgement: the edit is the hub's version now.
  func settleLocally(
    _ entry: OutboxEntry, version: UInt64, _ transaction: inout WriteTransaction
  ) throws {
    let row = try transaction.value(of: entry.record, in: tables.records)
    let isWaiting = try hasEdit(of: entry.record, transaction)
    let known = [
      try transaction.value(of: entry.record, in: tables.beside)?.version,
      row?.isLocal == false ? row?.version : nil,
    ].compactMap { $0 }.max()
    if known.map({ $0 <= version }) ?? true {
      let acknowledged = StoredRecord(version: version, isLocal: false, payload: entry.payload)
      if isWaiting, row?.isLocal == false {
        try takeIn(
          entry.record, version: version, payload: entry.payload, isNewEpoch: false, &transaction)
      } else {
        try transaction.put(acknowledged, for: entry.record, in: tables.beside)
      }
    }
    guard isWaiting else { return try showHubVersion(of: entry.record, &transaction) }
    if var row, row.isLocal {
      row.version = version
      try transaction.put(row, for: entry.record, in: tables.records)
    }
  }
}
