package import Foundation
package import HubProtocol
package import LMDB

/// One mutation of the outbox, as far as the order of sending goes.
package struct PushItem: Hashable, Sendable {
  package var mutation: UUID
  package var order: UInt64
  package var record: RecordID

  package init(mutation: UUID, order: UInt64, record: RecordID) {
    self.mutation = mutation
    self.order = order
    self.record = record
  }

  /// What is sent of an entry.
  package init(_ entry: OutboxEntry) {
    self.init(mutation: entry.mutation, order: entry.order, record: entry.record)
  }
}

/// Batches to look up in the transaction that remembers their first transmission.
package struct NextBatches: Sendable, Hashable {
  /// Only what lies behind it.
  package var after: UInt64
  /// The place of the newest mutation that is to be sent.
  package var through: UInt64
  package var countMax: Int
  package var byteCountMax: Int
  /// How many batches, one behind the other.
  package var count: Int
  /// Of how many bytes together; the first one may be larger.
  package var allByteCountMax: Int

  package init(
    after: UInt64, through: UInt64, countMax: Int, byteCountMax: Int, count: Int,
    allByteCountMax: Int = .max
  ) {
    self.after = after
    self.through = through
    self.countMax = countMax
    self.byteCountMax = byteCountMax
    self.count = count
    self.allByteCountMax = allByteCountMax
  }
}

/// Mutations that go in one push, encoded as they are sent.
package struct OutgoingBatch: Sendable {
  /// In the order in which they are encoded.
  package private(set) var items: [PushItem] = []
  package private(set) var mutations: EncodedMutations

  fileprivate init(countHint: Int) {
    items.reserveCapacity(countHint)
    mutations = EncodedMutations(
      byteCountHint: countHint * (EncodedMutations.overheadByteCountHint + 256))
  }

  /// Encodes entries; those that were never sent as first sent now.
  package init(_ entries: [OutboxEntry], highWater: UInt64) {
    self.init(countHint: entries.count)
    for entry in entries {
      let firstSent = entry.firstSent ?? highWater
      if let payload = entry.payload {
        append(entry, firstSent: firstSent, payload: payload.span.bytes)
      } else {
        append(entry, firstSent: firstSent, payload: nil)
      }
    }
  }

  private mutating func append(_ entry: OutboxEntry, firstSent: UInt64, payload: RawSpan?) {
    items.append(PushItem(entry))
    mutations.append(
      mutation: entry.mutation, order: entry.order, id: entry.record.bytes.span.bytes,
      base: entry.base.map(WireBase.init), firstSent: firstSent, payload: payload)
  }

  fileprivate mutating func append(
    _ entry: borrowing StoredEntry, order: UInt64, firstSent: UInt64
  ) {
    items.append(
      PushItem(
        mutation: entry.mutation, order: order, record: RecordID(copying: entry.record)))
    mutations.append(
      mutation: entry.mutation, order: order, id: entry.record,
      base: entry.base.map(WireBase.init), firstSent: firstSent, payload: entry.payload)
  }
}

extension WireBase {
  fileprivate init(_ base: Mutation.Base) {
    switch base {
    case .mustNotExist: self = .version(0)
    case .version(let version): self = .version(version)
    case .mutation(let mutation): self = .mutation(mutation)
    }
  }
}

extension Area {
  /// The next mutations to send, in order: not the parked and held ones, nor later ones of their
  /// records.
  /// - Parameters:
  ///   - order: only what lies behind it.
  ///   - byteCountMax: payload and ID bytes in all; a single larger one comes alone.
  /// - Throws: `ownedByAnotherAccount` when a stamp is not the owner: nothing may be sent then.
  package func batch<T: Transaction & ~Copyable>(
    after order: UInt64, countMax: Int, byteCountMax: Int, _ transaction: borrowing T
  ) throws -> [OutboxEntry] {
    var entries: [OutboxEntry] = []
    try forEachToSend(
      after: order, countMax: countMax, byteCountMax: byteCountMax, transaction
    ) { order, _, bytes, firstSent in
      var entry = try OutboxEntry(order: order, bytes: bytes)
      entry.firstSent = firstSent
      entries.append(entry)
    }
    return entries
  }

  /// Lends what ``batch(after:countMax:byteCountMax:_:)`` gives, one after the other.
  /// - Parameter body: gets the order, what lies there twice, and the high water known when it was
  ///   first sent.
  private func forEachToSend<T: Transaction & ~Copyable>(
    after order: UInt64, through end: UInt64 = .max, countMax: Int, byteCountMax: Int,
    _ transaction: borrowing T,
    _ body: (UInt64, borrowing StoredEntry, RawSpan, UInt64?) throws -> Void
  ) throws {
    let stamps = try stamps(transaction)
    // Whether a parked or held mutation of the record lies before the one in hand.
    var blocked: [RecordID: Bool] = [:]
    let trouble = try pushTrouble(transaction)
    for one in trouble.held where one.order <= order { blocked[one.record] = true }
    let lastSent = try transaction.firstKey(in: tables.sent, reversed: true) ?? 0
    let hasParkedBefore = try order > 0 && tables.totals(transaction).parked > 0
    var count = 0
    var byteCount = 0
    try transaction.scan(tables.outbox, order > 0 ? .after(order) : .all) { key, bytes in
      let place = try UInt64Codec.decode(key)
      guard place <= end else { return .stop }
      let entry = try StoredEntry(bytes)
      if entry.isParked || (!trouble.isEmpty && trouble.held(entry.mutation) != nil) {
        blocked[RecordID(copying: entry.record)] = true
        return .next
      }
      if hasParkedBefore || !blocked.isEmpty {
        let record = RecordID(copying: entry.record)
        if hasParkedBefore, blocked[record] == nil {
          blocked[record] = try hasParked(record, through: order, transaction)
        }
        if blocked[record] == true { return .next }
      }
      try stamps.require(entry.stamp, at: place)
      let size = (entry.payload?.byteCount ?? 0) + entry.record.byteCount + 256
      guard count == 0 || byteCount + size <= byteCountMax else { return .stop }
      byteCount += size
      count += 1
      let firstSent =
        place <= lastSent ? try transaction.value(of: place, in: tables.sent) : nil
      try body(place, entry, bytes, firstSent)
      return count < countMax ? .next : .stop
    }
  }

  func hasParked<T: Transaction & ~Copyable>(
    _ record: RecordID, through last: UInt64, _ transaction: borrowing T
  ) throws -> Bool {
    for order in try orders(of: record, transaction) where order <= last {
      if try entry(order, transaction)?.parked != nil { return true }
    }
    return false
  }

  /// Remembers, before the first transmission, the high water known at it: of some mutations and of what
  /// is to be sent behind them, in one transaction.
  /// - Returns: the batches behind them, as ``settle(_:epoch:highWater:policy:markingNext:)`` does.
  @discardableResult
  package func markFirstSent(
    _ orders: [UInt64], highWater: UInt64, andNext next: NextBatches? = nil
  ) async throws -> [OutgoingBatch] {
    try await write(for: .draining) { [self] transaction in
      for order in orders {
        guard try transaction.contains(order, in: tables.outbox) else { continue }
        try markFirstSent(order, highWater: highWater, &transaction)
      }
      return try next.map { try markFirstSent($0, highWater: highWater, &transaction) } ?? []
    }
  }

  /// Looks up what goes next, and remembers its first transmission.
  func markFirstSent(
    _ next: NextBatches, highWater: UInt64, _ transaction: inout WriteTransaction
  ) throws -> [OutgoingBatch] {
    var batches: [OutgoingBatch] = []
    var after = next.after
    var byteCount = 0
    while batches.count < next.count {
      let (batch, new) = try outgoing(next, after: after, highWater: highWater, transaction)
      guard let last = batch.items.last else { break }
      byteCount += batch.mutations.byteCount
      guard batches.isEmpty || byteCount <= next.allByteCountMax else { break }
      for order in new { try markFirstSent(order, highWater: highWater, &transaction) }
      batches.append(batch)
      after = last.order
    }
    return batches
  }

  /// What goes behind a place, if the area knows on disk that all of it is about to be sent.
  package func outgoing(_ next: NextBatches) throws -> OutgoingBatch? {
    try read { transaction in
      let (batch, new) = try outgoing(next, after: next.after, highWater: 0, transaction)
      return new.isEmpty ? batch : nil
    }
  }

  /// What lies at these places; what is gone is left out.
  package func entries(_ orders: [UInt64]) throws -> [OutboxEntry] {
    try read { transaction in try orders.compactMap { try entry($0, transaction) } }
  }

  /// - Returns: a batch, and the orders of those in it that were never sent.
  private func outgoing<T: Transaction & ~Copyable>(
    _ next: NextBatches, after: UInt64, highWater: UInt64, _ transaction: borrowing T
  ) throws -> (batch: OutgoingBatch, new: [UInt64]) {
    var batch = OutgoingBatch(countHint: next.countMax)
    var new: [UInt64] = []
    try forEachToSend(
      after: after, through: next.through, countMax: next.countMax,
      byteCountMax: next.byteCountMax, transaction
    ) { order, entry, _, firstSent in
      if firstSent == nil { new.append(order) }
      batch.append(entry, order: order, firstSent: firstSent ?? highWater)
    }
    return (batch, new)
  }

  /// What was remembered once stays.
  private func markFirstSent(
    _ order: UInt64, highWater: UInt64, _ transaction: inout WriteTransaction
  ) throws { _ = try transaction.putIfAbsent(highWater, for: order, in: tables.sent) }
}
