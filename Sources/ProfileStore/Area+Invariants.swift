import Foundation
import HubProtocol
import LMDB

extension Area {
  /// What in this area does not fit together, one sentence each; empty when it is sound.
  ///
  /// Reads everything once, in one snapshot. It names no record and no payload.
  package func violations() throws -> [String] {
    try readState { transaction in
      var found: [String] = []
      func require(_ isTrue: Bool, _ sentence: String) {
        if !isTrue { found.append(sentence) }
      }
      var totals = OutboxTotals()
      var waiting: [UUID: OutboxEntry] = [:]
      var byRecord: [RecordID: Set<UInt64>] = [:]
      try transaction.scan(tables.outbox) { key, bytes in
        let entry = try OutboxEntry(order: UInt64Codec.decode(key), bytes: bytes)
        totals.count += 1
        totals.parked += entry.parked == nil ? 0 : 1
        totals.payloadByteCount += UInt64(entry.payloadByteCount)
        require(waiting.updateValue(entry, forKey: entry.mutation) == nil, "a mutation waits twice")
        byRecord[entry.record, default: []].insert(entry.order)
        if case .mutation(let base) = entry.base {
          require(
            waiting[base]?.record == entry.record,
            "a mutation is based on none that waits before it")
        }
        return .next
      }
      let stored = try tables.totals(transaction)
      require(
        stored.count == totals.count && stored.parked == totals.parked
          && stored.payloadByteCount == totals.payloadByteCount,
        "the outbox's totals are not its sums")
      let last = stored.lastOrder
      require(
        waiting.values.allSatisfy { $0.order <= last }, "a mutation lies behind the last order")
      try transaction.scan(tables.sent) { key, _ in
        require(
          try transaction.contains(UInt64Codec.decode(key), in: tables.outbox),
          "what was sent first is known of a mutation that does not wait")
        return .next
      }
      var indexed: [RecordID: Set<UInt64>] = [:]
      try transaction.scan(tables.edits) { key, order in
        indexed[try RecordIDCodec.decode(key), default: []].insert(try UInt64Codec.decode(order))
        return .next
      }
      require(indexed == byRecord, "the outbox and its index by record differ")
      var named: [UUID: UInt64] = [:]
      try transaction.scan(tables.mutations) { key, value in
        if case .waiting(let order) = try MutationPlaceCodec.decode(value) {
          named[try UUIDCodec.decode(key)] = order
        }
        return .next
      }
      require(
        named == waiting.filter { $0.value.isNamed }.mapValues { $0.order },
        "a mutation's UUID leads to another place")
      try findDamage(transaction, require)
      return found
    }
  }

  /// Rows and payloads of the hub's versions.
  private func findDamage(
    _ transaction: borrowing ReadTransaction,
    _ require: (Bool, String) -> Void
  ) throws {
    let log = try tables.bodyLog(transaction)
    let epochs = try tables.epochs(transaction)
    var sums = BodyLog(next: log.next)
    try transaction.scan(tables.bodies) { key, value in
      let units = BodyLog.units(byteCount: value.byteCount)
      sums.total += UInt64(units)
      let place = try UInt64Codec.decode(key)
      require(place < log.next, "a payload lies behind the end of its log")
      let body = try StoredBody(value)
      require(Int(body.epoch) < epochs.epochs.count, "a payload is of an epoch that is not listed")
      let row = try RecordBytes.withBytes(of: body.id) {
        try transaction.value(of: $0, in: tables.knownInPlace)
      }
      guard let row, row.body?.place == place else { return .next }
      sums.live += UInt64(units)
      sums.liveCount += 1
      require(row.body?.units == units, "a record's size is not that of its payload")
      return .next
    }
    require(sums == log, "the sums of the payloads are not theirs")
    var named = 0
    try transaction.scan(tables.known) { _, value in
      let row = try KnownRecordCodec.decode(value)
      if row.body != nil { named += 1 }
      require(row.applied != nil || row.ahead != nil || row.body != nil, "an empty row is there")
      require(row.body == nil || row.newest?.isDeleted != true, "a deleted record has a payload")
      for mark in [row.applied, row.ahead?.mark] {
        guard let mark else { continue }
        require(
          Int(mark.epoch) < epochs.epochs.count, "a version is of an unlisted epoch")
      }
      return .next
    }
    require(named == Int(clamping: log.liveCount), "a record's payload is not there")
  }
}
