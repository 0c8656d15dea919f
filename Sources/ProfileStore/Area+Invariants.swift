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
      require(try tables.totals(transaction) == totals, "the outbox's totals are not its sums")
      let last = try tables.number(.lastOrder, transaction)
      require(
        waiting.values.allSatisfy { $0.order <= last }, "a mutation lies behind the last order")
      var indexed: [RecordID: Set<UInt64>] = [:]
      try transaction.scan(tables.outboxByRecord) { key, _ in
        let place = try RecordOrderCodec.decode(key)
        if let order = place.order { indexed[place.record, default: []].insert(order) }
        return .next
      }
      require(indexed == byRecord, "the outbox and its index by record differ")
      var placed = 0
      try transaction.scan(tables.mutations) { key, value in
        guard case .waiting(let order) = try MutationPlaceCodec.decode(value) else { return .next }
        placed += 1
        require(
          try waiting[UUIDCodec.decode(key)]?.order == order,
          "a mutation's UUID leads to another place")
        return .next
      }
      require(placed == waiting.count, "a waiting mutation is not found by its UUID")
      try transaction.scan(tables.records) { key, value in
        let row = try StoredRecordCodec.decode(value)
        require(row.payload != nil, "a deleted record has a row")
        require(
          try !row.isLocal || byRecord[RecordIDCodec.decode(key)] != nil,
          "a record shows an edit that does not wait")
        return .next
      }
      try transaction.scan(tables.beside) { key, _ in
        require(
          try byRecord[RecordIDCodec.decode(key)] != nil,
          "a hub's version stands beside no edit")
        return .next
      }
      return found
    }
  }
}
