internal import CLMDB
import Synchronization

/// A snapshot that is held and whose values are lent in place, from any thread, until it is given up.
///
/// For scratch data that was written to its end and is then read back: while it is held the map
/// cannot grow, and the pages that it reaches are not reused. It holds one reader slot. It is used
/// nowhere else: an environment that is written meanwhile would wait for it.
@safe package final class LentSnapshot: Sendable {
  private struct Held: ~Copyable, @unchecked Sendable {
    // SAFETY (@unchecked Sendable): `MDB_NOTLS`, so that any thread may use it, one at a time.
    var reader: Environment.Reader?
  }

  private let environment: Environment
  private let held: Mutex<Held>

  /// - Throws: as ``Environment/read(_:)``.
  package init(of environment: Environment) throws(LMDBError) {
    self.environment = environment
    let reader = try environment.beginOwnReading(ThreadState.current, hasWriterTurn: false)
    held = Mutex(Held(reader: reader))
  }

  deinit { end() }

  /// The stored bytes of a key in place, or nil if the key is not there.
  ///
  /// They stay where and as they are until ``end()``; who keeps the address keeps the snapshot.
  /// - Precondition: it was not given up.
  /// - Throws: `badKeySize`, and what LMDB reports.
  @unsafe package func bytes<K, V>(
    of key: K.Key, in table: Table<K, V>
  ) throws(LMDBError) -> UnsafeRawBufferPointer? {
    let place = try K.withEncodedKey(key) { (bytes) throws(LMDBError) in
      try held.withLock { (held) throws(LMDBError) -> Range<UInt>? in
        guard let reader = held.reader else {
          preconditionFailure("LMDB: a snapshot was read after it was given up")
        }
        // A transaction belongs to the thread that looks at it, which is another one each time.
        let core = unsafe TransactionCore(
          handle: reader.core.handle, environment: environment, isReading: true)
        guard let found = unsafe try core.lookUp(bytes, in: table.base) else { return nil }
        let start = UInt(bitPattern: found.baseAddress)
        return start..<start + UInt(found.count)
      }
    }
    guard let place else { return nil }
    return unsafe UnsafeRawBufferPointer(
      start: UnsafeRawPointer(bitPattern: place.lowerBound), count: place.count)
  }

  /// Reads values that will be asked for into memory and maps them, so that who looks at them meets no
  /// page fault. Only a hint: what is not there, or cannot be had, is left out.
  ///
  /// Blocks the calling thread for as long as the disk needs: call it on one that nobody waits for.
  package func populate<K, V>(_ keys: some Sequence<K.Key>, in table: Table<K, V>) {
    // A large value has pages of its own, and those of consecutive keys mostly follow one another: one
    // call asks for as many as do.
    var run: Range<UInt>?
    func ask() {
      guard let run else { return }
      unsafe Environment.populate(
        UnsafeRawBufferPointer(
          start: UnsafeRawPointer(bitPattern: run.lowerBound), count: run.count),
        stride: Environment.faultAroundByteCount)
    }
    for key in keys {
      guard let value = unsafe try? bytes(of: key, in: table) else { continue }
      let start = UInt(bitPattern: value.baseAddress)
      let place = start..<start + UInt(value.count)
      if let before = run, place.lowerBound >= before.upperBound,
        place.lowerBound - before.upperBound < 1 << 14
      {
        run = before.lowerBound..<place.upperBound
      } else {
        ask()
        run = place
      }
    }
    ask()
  }

  /// Gives the snapshot up; nothing that it lent may be read any more. Twice is once.
  package func end() {
    held.withLock { held in
      guard let reader = held.reader.take(), environment.fork.isOurs else { return }
      if reader.slot >= 0 {
        unsafe mdb_txn_reset(reader.core.handle)
        unsafe environment.gate.leave(slot: reader.slot, keeping: reader.core.handle)
      } else {
        unsafe mdb_txn_abort(reader.core.handle)
        unsafe environment.gate.leave(slot: reader.slot, keeping: nil)
      }
    }
  }
}
