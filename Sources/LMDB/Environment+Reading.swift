internal import CLMDB
import Foundation

extension Environment {
  /// Lends a snapshot to `body` and returns what it returns.
  ///
  /// The snapshot is that of the last commit when `body` begins; writers go on meanwhile, and a read
  /// never waits for one. A read inside a read of one thread sees the outer one's snapshot. Keep it
  /// short: pages that it sees are not reused until it ends, and the map cannot grow meanwhile.
  ///
  /// At most 16 transactions are kept ready for the next reads, each with a reader slot; those that
  /// were not used for some seconds are given back by the next write.
  /// - Throws: `closed`, `readersFull`, what LMDB reports, and what `body` throws.
  /// - Cost: some 30 ns, and no allocation, while at most 16 reads run at once; above that some
  ///   100 ns. Corresponds to `mdb_txn_renew` and `mdb_txn_reset`.
  @inlinable
  public func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    let reader = try beginReading()
    defer { endReading(reader) }
    return try body(ReadTransaction(reader.core))
  }

  /// A snapshot that a thread is inside of.
  @safe @usableFromInline
  struct Reader {
    @usableFromInline let core: TransactionCore
    /// The slot of the gate, -1 for a reader without one, -2 for one inside another.
    let slot: Int

    static let nested = -2
  }

  @usableFromInline
  func beginReading() throws(LMDBError) -> Reader {
    let thread = ThreadState.current
    if thread.isOutside, fork.isOurs, let place = unsafe gate.enterAtOnce(thread) {
      if let reader = unsafe place.reader, unsafe mdb_txn_renew(reader) == 0 {
        unsafe thread.enter(self, reader: reader)
        return unsafe Reader(
          core: TransactionCore(
            handle: reader, environment: self, isReading: true,
            idleCursors: gate.cursors(of: place.slot)),
          slot: place.slot)
      }
      // Renewed once more on the slow way, which finds out what stopped it.
      unsafe gate.leave(place)
    }
    return try beginReadingSlowly(thread)
  }

  @usableFromInline
  func endReading(_ reader: Reader) {
    ThreadState.current.leave()
    if reader.slot >= 0 {
      unsafe mdb_txn_reset(reader.core.handle)
      unsafe gate.leave(slot: reader.slot, keeping: reader.core.handle)
    } else if reader.slot != Reader.nested {
      unsafe mdb_txn_abort(reader.core.handle)
      unsafe gate.leave(slot: reader.slot, keeping: nil)
    }
  }

  @inline(never)
  private func beginReadingSlowly(_ thread: ThreadState) throws(LMDBError) -> Reader {
    if let outer = unsafe thread.reader(of: self) {
      try requireUsable("read")
      // The map cannot be moved before the outer one ends, so a snapshot of its own might not fit.
      unsafe thread.enter(self, reader: outer)
      return unsafe Reader(
        core: TransactionCore(handle: outer, environment: self, isReading: true),
        slot: Reader.nested)
    }
    let reader = try beginOwnReading(thread, hasWriterTurn: false)
    unsafe thread.enter(self, reader: reader.core.handle)
    return reader
  }

  /// Begins a snapshot on the slow way; the thread is not told of it.
  /// - Throws: with the gate left.
  func beginOwnReading(_ thread: ThreadState, hasWriterTurn: Bool) throws(LMDBError) -> Reader {
    let isInside = thread.isReading(self) || thread.isWriting(self)
    var result: Int32 = 0
    for _ in 0..<Self.adoptionCountMax {
      try requireUsable("read")
      guard let place = unsafe gate.enter(thread, isInside: isInside) else { continue }
      if let reader = unsafe beginRead(renewing: place.reader, &result) {
        return unsafe Reader(
          core: TransactionCore(
            handle: reader, environment: self, isReading: true,
            idleCursors: gate.cursors(of: place.slot)),
          slot: place.slot)
      }
      unsafe gate.leave(slot: place.slot, keeping: nil)
      // Moving the map needs every reader out: one that this thread is inside of cannot be.
      guard result == MDB_MAP_RESIZED, !isInside else { break }
      if let error = hasWriterTurn ? adoptMapSize() : adoptMapSizeAsReader() { throw error }
    }
    throw LMDBError.from(result, operation: "mdb_txn_begin", path: path)
  }

  /// A snapshot, or nil and why not; the idle transaction is gone then.
  @unsafe private func beginRead(
    renewing idle: OpaquePointer?, _ result: inout Int32
  ) -> OpaquePointer? {
    if let idle = unsafe idle {
      result = unsafe mdb_txn_renew(idle)
      if result == 0 { return unsafe idle }
      unsafe mdb_txn_abort(idle)
      return nil
    }
    let numbers = numbers()
    result = readerSlots.prepare(
      usedCount: numbers.readerSlotCount, maximum: numbers.readerCountMax, in: path)
    guard result == 0 else { return nil }
    var created: OpaquePointer?
    result = unsafe mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &created)
    if result == MDB_READERS_FULL {
      // One of our own that nobody uses is as good as a new one.
      if let other = unsafe gate.takeIdleReader() {
        return unsafe beginRead(renewing: other, &result)
      }
      if hasClearedDeadReaders() {
        result = unsafe mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &created)
      }
    }
    return result == 0 ? unsafe created : nil
  }

  /// Frees the slots of readers whose process has died, and with them the pages that they kept.
  /// - Returns: whether there were any.
  func hasClearedDeadReaders() -> Bool {
    var dead: Int32 = 0
    return unsafe mdb_reader_check(handle, &dead) == 0 && dead > 0
  }

  /// Gives back the reader slots of transactions that were not used since the last time.
  func trimIdleReaders() {
    unsafe gate.trim { unsafe mdb_txn_abort($0) }
  }

  /// Runs `body` with the map in its place, without a snapshot.
  /// - Throws: `closed`, `broken`, `forked`, and what `body` throws.
  func inside<R>(
    _ operation: String, _ body: () throws(LMDBError) -> R
  ) throws(LMDBError) -> R {
    try requireUsable(operation)
    let thread = ThreadState.current
    let isInside = thread.isReading(self) || thread.isWriting(self)
    guard let place = unsafe gate.enter(thread, isInside: isInside) else {
      try requireUsable(operation)
      throw LMDBError(.closed, operation: operation, path: path)
    }
    defer { unsafe gate.leave(place) }
    return try body()
  }

  /// The same; nil when the environment is closed, broken or of another process.
  func inside<R>(_ body: () -> R) -> R? {
    do throws(LMDBError) {
      return try inside("") { () throws(LMDBError) in body() }
    } catch {
      return nil
    }
  }
}
