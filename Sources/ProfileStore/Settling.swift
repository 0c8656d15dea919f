import Foundation
import HubProtocol
import LMDB

/// Settles mutations within one write transaction.
struct Settling {
  private let area: Area
  private let epoch: UUID
  private let now: Date
  private let keepsRecords: Bool
  private let keepsAcknowledged: Bool
  private var totals: OutboxTotals
  private var known: KnownWriter
  /// The number of the last one that was kept as acknowledged.
  private var counter: UInt64

  private var tables: AreaTables { area.tables }

  init(
    _ area: Area, epoch: UUID, at now: Date, policy: StorePolicy,
    _ transaction: inout WriteTransaction
  ) throws {
    self.area = area
    self.epoch = epoch
    self.now = now
    keepsRecords = policy.keepsRecords
    keepsAcknowledged = policy.limits.acknowledgedCountMax > 0
    totals = try area.tables.totals(transaction)
    known = try KnownWriter(
      area, epoch: epoch, lineage: area.tables.lineage(transaction), keepsRecords: keepsRecords,
      &transaction)
    counter = try area.tables.number(.lastAcknowledged, transaction)
  }

  /// - Parameter settlements: each with its mutation's order, in that order; one that is gone meanwhile is
  ///   passed over.
  mutating func take(
    _ settlements: [(order: UInt64, mutation: UUID, settlement: Settlement)],
    _ transaction: inout WriteTransaction
  ) throws {
    // What lies in a page moves with the next write: one copy of the whole batch is kept beside.
    let waiting = try WaitingEntries(settlements.map(\.order), in: tables, transaction)
    var gone: Set<UInt64> = []
    for (index, (order, mutation, settlement)) in settlements.enumerated() {
      LongWork.yield(at: index)
      if case .acknowledged(let version) = settlement,
        try takeOnly(order, mutation, version, waiting.bytes(index), &transaction)
      {
        gone.insert(order)
        continue
      }
      guard let entry = try area.entry(order, transaction), entry.mutation == mutation else {
        continue
      }
      switch settlement {
      case .acknowledged(let version): try acknowledge(entry, version, &transaction)
      case .parked(let parked): try park(entry, parked, &transaction)
      }
    }
    try remove(gone, &transaction)
  }

  /// Writes what belongs to all of them.
  mutating func end(_ transaction: inout WriteTransaction) throws {
    try known.end(&transaction)
    try tables.setTotals(totals, &transaction)
    try tables.setNumber(.lastAcknowledged, counter, &transaction)
  }

  // MARK: The only mutation of its record

  /// Takes one that is the only mutation of its record, and that nobody may name: nothing is based on it,
  /// and it is settled where it lies. Its rows in `outbox` and `sent` are left to ``remove(_:_:)``.
  ///
  /// One that is based on a mutation is another one: its base may have been rewritten since the copy.
  /// - Returns: false when it is another one; nothing was changed then.
  private mutating func takeOnly(
    _ order: UInt64, _ mutation: UUID, _ version: UInt64, _ bytes: RawSpan?,
    _ transaction: inout WriteTransaction
  ) throws -> Bool {
    guard let bytes else { return false }
    let entry = try StoredEntry(bytes)
    if case .mutation = entry.base { return false }
    guard entry.mutation == mutation, !entry.isParked, !entry.isCallerGiven,
      try RecordBytes.withBytes(
        of: entry.record,
        { try transaction.delete($0, ifItsOnlyValueIs: order, in: tables.editsInPlace) })
    else { return false }
    try totals.change(count: -1, payloadByteCount: -Int64(entry.payload?.byteCount ?? 0))
    try known.take(
      entry.record, version: version, payload: entry.payload, isOwn: true, &transaction)
    guard keepsAcknowledged else { return true }
    counter = try Area.next(after: counter, .lastAcknowledged)
    try transaction.append(
      byteCount: AcknowledgedCodec.byteCount(of: bytes), for: counter, in: tables.acknowledged
    ) { [epoch, now] room in
      AcknowledgedCodec.write(
        epoch: epoch, version: version, acknowledgedAt: now, order: order, entry: bytes, to: &room)
    }
    return true
  }

  private func remove(_ gone: Set<UInt64>, _ transaction: inout WriteTransaction) throws {
    try remove(gone, from: tables.outbox, &transaction)
    try remove(gone, from: tables.sent, &transaction)
  }

  private func remove<Value>(
    _ gone: Set<UInt64>, from table: Table<UInt64Codec, Value>,
    _ transaction: inout WriteTransaction
  ) throws {
    guard let first = gone.min(), let last = gone.max() else { return }
    try transaction.deleteAll(in: table, .through(first, last)) { key, _ in
      gone.contains(try UInt64Codec.decode(key))
    }
  }

  // MARK: Any other

  private mutating func acknowledge(
    _ entry: OutboxEntry, _ version: UInt64, _ transaction: inout WriteTransaction
  ) throws {
    try area.rebase(followersOf: entry, onto: .version(version), &transaction)
    try area.remove(entry, &totals, &transaction)
    try known.take(
      entry.record, version: version, payload: entry.payload, isOwn: true, &transaction)
    guard keepsAcknowledged else { return }
    counter = try Area.next(after: counter, .lastAcknowledged)
    try transaction.append(
      AcknowledgedMutation(epoch: epoch, version: version, acknowledgedAt: now, entry: entry),
      for: counter, in: tables.acknowledged)
  }

  private mutating func park(
    _ before: OutboxEntry, _ parked: Parked, _ transaction: inout WriteTransaction
  ) throws {
    var entry = before
    entry.parked = parked
    try area.update(entry, before: before, &totals, &transaction)
    if keepsRecords, let current = parked.current, !current.isPayloadOmitted {
      try known.take(
        entry.record, version: current.version, payload: current.payload, isOwn: false,
        &transaction)
    }
  }
}

/// Copies of the outbox's entries at some places.
private struct WaitingEntries {
  private var copies: [UInt8] = []
  private var places: [Range<Int>?]

  /// - Parameter orders: ascending; else none is found, and each is looked up by itself.
  init<T: Transaction & ~Copyable>(
    _ orders: [UInt64], in tables: AreaTables, _ transaction: borrowing T
  ) throws {
    places = Array(repeating: nil, count: orders.count)
    guard let first = orders.first, let last = orders.last,
      zip(orders, orders.dropFirst()).allSatisfy({ $0 < $1 })
    else { return }
    var index = 0
    var (copies, places) = ([UInt8](), places)
    copies.reserveCapacity(orders.count * 512)
    try transaction.scan(tables.outbox, .through(first, last)) { key, bytes in
      let order = try UInt64Codec.decode(key)
      while index < orders.count, orders[index] < order { index += 1 }
      guard index < orders.count else { return .stop }
      guard orders[index] == order else { return .next }
      places[index] = copies.count..<copies.count + bytes.byteCount
      bytes.withUnsafeBytes { copies.append(contentsOf: $0) }
      return .next
    }
    (self.copies, self.places) = (copies, places)
  }

  /// nil: none was found there.
  @_lifetime(borrow self)
  func bytes(_ index: Int) -> RawSpan? {
    guard let place = places[index] else { return nil }
    return copies.span.bytes.extracting(place)
  }
}
