internal import CLMDB

/// A snapshot kept for reading the data file, without looking at the map.
///
/// Its pages are not reused while it is held, so the file's pages that it reaches do not change under
/// a reader with a descriptor. The map may be moved meanwhile: writers grow it without waiting. The
/// environment may be closed meanwhile, too; ``end()`` says so then. Holds one reader slot.
@safe final class HeldSnapshot {
  let environment: Environment
  let file: PageFile
  /// The meta page that this snapshot was begun from.
  let meta: MetaRecord
  private var reader: OpaquePointer?

  /// - Throws: `closed`, `readersFull`; `damaged` when the head of the file is none; `busy` when
  ///   others committed so fast that no meta page could be read in time.
  init(of environment: Environment) throws(LMDBError) {
    self.environment = environment
    file = try PageFile(directory: environment.path)
    // A meta page is overwritten by the second commit after it, so it is read right behind the
    // snapshot's begin, twice, and taken if it is whole and still the snapshot's.
    for _ in 0..<1_000 {
      let reader = unsafe try environment.beginHeldReader()
      let transaction = unsafe UInt64(mdb_txn_id(reader))
      do {
        if let meta = try Self.meta(of: transaction, in: file) {
          self.meta = meta
          unsafe self.reader = reader
          return
        }
      } catch {
        unsafe environment.endHeldReader(reader)
        throw error
      }
      unsafe environment.endHeldReader(reader)
    }
    throw LMDBError(
      .busy, operation: "snapshot", path: environment.path,
      detail: "no meta page stood still; others commit too fast, or it is damaged")
  }

  private static func meta(of transaction: UInt64, in file: PageFile) throws(LMDBError)
    -> MetaRecord?
  {
    try file.readMetaPages()
    let index = Int(transaction & 1)
    guard let first = file.metaPages[index], first.transaction == transaction else { return nil }
    try file.readMetaPages()
    return file.metaPages[index] == first ? first : nil
  }

  deinit {
    if let reader = unsafe reader { unsafe environment.endHeldReader(reader) }
  }

  /// Gives the snapshot up.
  /// - Throws: `closed`, `broken`, `forked` when it was lost before this: what was read since may
  ///   have been overwritten.
  func end() throws(LMDBError) {
    guard let held = unsafe reader else { return }
    unsafe reader = nil
    unsafe environment.endHeldReader(held)
    try environment.requireUsable("snapshot")
  }

  /// What an error means that reading its pages reported: once the snapshot was lost others may have
  /// overwritten them, and that is no damage. Gives it up.
  func meaning(of error: LMDBError) -> LMDBError {
    guard error.code == .damaged else { return error }
    do {
      try end()
      return error
    } catch {
      return error
    }
  }

  /// - Throws: what makes going on useless.
  func requireHeld() throws(LMDBError) { try environment.requireUsable("snapshot") }
}

extension Environment {
  /// Begins a snapshot that is held outside the gate: nobody waits for it.
  @unsafe func beginHeldReader() throws(LMDBError) -> OpaquePointer {
    let reader = try beginOwnReading(ThreadState.current, hasWriterTurn: false)
    unsafe gate.leave(slot: reader.slot, keeping: nil)
    return unsafe reader.core.handle
  }

  /// Ends it. After a close the handle died with the environment, and its slot with it.
  @unsafe func endHeldReader(_ reader: OpaquePointer) {
    // SAFETY: inside the gate and not closed, so the C environment is there. Ending a reader touches
    // its slot only, never the map that may have moved.
    _ = inside { unsafe mdb_txn_abort(reader) }
  }
}
