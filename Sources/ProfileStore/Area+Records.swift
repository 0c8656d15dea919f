import Foundation
import HubProtocol
import LMDB

// The built-in record table, where the area keeps the app's records (managed mode).
extension Area {
  /// Shows an edit locally; the hub's version goes beside it until the edit is settled.
  func showLocally(_ entry: OutboxEntry, _ transaction: inout WriteTransaction) throws {
    let current = try transaction.value(of: entry.record, in: tables.records)
    if let current, !current.isLocal {
      try transaction.put(current, for: entry.record, in: tables.beside)
    }
    try transaction.put(
      StoredRecord(version: current?.version, isLocal: true, payload: entry.payload),
      for: entry.record, in: tables.records)
  }

  /// After the last edit of a record has gone: the hub's version in place. While others wait it
  /// stays beside, and the newest of them is what is shown.
  func showHubVersion(of record: RecordID, _ transaction: inout WriteTransaction) throws {
    if let newest = try orders(of: record, transaction).last.flatMap({ try entry($0, transaction) })
    {
      let current = try transaction.value(of: record, in: tables.records)
      try transaction.put(
        StoredRecord(version: current?.version, isLocal: true, payload: newest.payload),
        for: record, in: tables.records)
      return
    }
    let beside = try transaction.value(of: record, in: tables.beside)
    try transaction.delete(record, in: tables.beside)
    if let beside, beside.payload != nil {
      try transaction.put(beside, for: record, in: tables.records)
    } else if beside != nil {
      try transaction.delete(record, in: tables.records)
    } else if try transaction.value(of: record, in: tables.records)?.isLocal == true {
      // The hub never had it. A row that is not local was never covered by the edit: it stays.
      try transaction.delete(record, in: tables.records)
    }
  }

  /// Takes in a version of the hub: in place, or beside an edit that waits.
  func takeIn(
    _ record: RecordID, version: UInt64, payload: Data?, isNewEpoch: Bool,
    _ transaction: inout WriteTransaction
  ) throws {
    let stored = StoredRecord(version: version, isLocal: false, payload: payload)
    if try hasEdit(of: record, transaction) {
      let beside = try transaction.value(of: record, in: tables.beside)
      if !isNewEpoch, let known = beside?.version, known > version { return }
      try transaction.put(stored, for: record, in: tables.beside)
    } else if payload != nil {
      try transaction.put(stored, for: record, in: tables.records)
    } else {
      try transaction.delete(record, in: tables.records)
    }
  }

  /// After an acknowledgement: the edit is the hub's version now.
  func settleLocally(
    _ entry: OutboxEntry, version: UInt64, _ transaction: inout WriteTransaction
  ) throws {
    let beside = try transaction.value(of: entry.record, in: tables.beside)
    let isOvertaken = beside?.version.map { $0 > version } ?? false
    let acknowledged = StoredRecord(version: version, isLocal: false, payload: entry.payload)
    if try hasEdit(of: entry.record, transaction) {
      if !isOvertaken { try transaction.put(acknowledged, for: entry.record, in: tables.beside) }
      if var current = try transaction.value(of: entry.record, in: tables.records) {
        current.version = version
        try transaction.put(current, for: entry.record, in: tables.records)
      }
      return
    }
    if !isOvertaken { try transaction.put(acknowledged, for: entry.record, in: tables.beside) }
    try showHubVersion(of: entry.record, &transaction)
  }
}
