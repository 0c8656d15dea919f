/// How far a copy is.
public struct CopyProgress: Sendable, Hashable {
  /// Bytes written so far.
  public let copiedByteCount: Int
  /// Bytes that there will be.
  public let totalByteCount: Int
}

extension Environment {
  /// Copies one snapshot of the environment into a new directory while everybody goes on reading and
  /// writing.
  ///
  /// The copy is what had been committed when it began. It appears under its name when it is whole
  /// and on the disk (a directory with mode 0700 and a data file with mode 0600, nothing else); until
  /// then and after a failure there is nothing. It holds one snapshot as long as it runs: pages given
  /// up meanwhile are not reused, so the source grows while others write. Nobody waits for it; the
  /// map may grow meanwhile.
  ///
  /// - Parameters:
  ///   - directory: a path where nothing is yet, in a directory that exists.
  ///   - compacting: leaves free pages behind and writes each table's pages one after the other. The
  ///     copy is as small as its entries allow; reading it in order is quicker.
  ///   - progress: called on another thread about once per MiB; an error that it throws ends the
  ///     copy and is thrown here.
  /// - Throws: `CancellationError` soon after the task was cancelled; `exists`; `missing` when the
  ///   directory above is not there; `diskFull`, `noPermission`, `readOnly` of the target; `closed`
  ///   when the environment was closed meanwhile; `readersFull`; `damaged` when a page on the way is
  ///   not what it should be (`checkIntegrity` tells more). Nothing is left behind.
  /// - Cost: the file's bytes read and written once, then flushed; 1 MiB of memory. Does what
  ///   `mdb_env_copyfd2` does, which can neither be watched nor stopped.
  public func copy(
    to directory: String, compacting: Bool = false,
    progress: (@Sendable (CopyProgress) throws -> Void)? = nil
  ) async throws {
    try await Self.onOwnThread { flag in
      try self.copyBlocking(to: directory, compacting: compacting) {
        try flag.check()
        try progress?($0)
      }
    }
  }

  /// The same, blocking the calling thread. For tools, tests and threads that may block.
  /// - Parameters:
  ///   - directory: a path where nothing is yet, in a directory that exists.
  ///   - compacting: leaves free pages behind; false by default.
  ///   - progress: called on this thread; an error that it throws ends the copy.
  /// - Throws: as the `async` form.
  @available(*, noasync, message: "use `try await copy`, which does not block a task's thread")
  public func copy(
    to directory: String, compacting: Bool = false,
    progress: ((CopyProgress) throws -> Void)? = nil
  ) throws {
    try copyBlocking(to: directory, compacting: compacting) { try progress?($0) }
  }

  private func copyBlocking(
    to directory: String, compacting: Bool, progress: (CopyProgress) throws -> Void
  ) throws {
    trapUnless(
      !ThreadState.current.isWriting(self),
      "a copy begun inside a write of the same environment (\(path)); end the write first")
    let snapshot = try HeldSnapshot(of: self)
    try progress(CopyProgress(copiedByteCount: 0, totalByteCount: snapshot.byteCount))
    let target = try CopyTarget(directory: directory)
    do {
      if compacting {
        try copyCompacting(snapshot, into: target, progress: progress)
      } else {
        try copyWhole(snapshot, into: target, progress: progress)
      }
    } catch let error as LMDBError {
      throw snapshot.meaning(of: error)
    }
    // Lost meanwhile, its pages may have been reused: then the copy is worth nothing.
    try snapshot.end()
    try target.finish()
  }

  private func copyWhole(
    _ snapshot: HeldSnapshot, into target: CopyTarget, progress: (CopyProgress) throws -> Void
  ) throws {
    let total = snapshot.byteCount
    // The head is the snapshot's, not what others have committed since.
    let head = snapshot.meta.encodedPages()
    try target.append(head, byteCount: head.count)
    var done = head.count
    var buffer = [UInt8](repeating: 0, count: Compaction.bufferByteCount)
    while done < total {
      let wanted = min(buffer.count, total - done)
      let count = try snapshot.file.read(at: Int64(done), byteCount: wanted, into: &buffer)
      // Free pages at the end may never have been written; see `MetaPages.isRestFree`.
      guard count > 0 else { break }
      try target.append(buffer, byteCount: count)
      done += count
      try snapshot.requireHeld()
      try progress(CopyProgress(copiedByteCount: done, totalByteCount: total))
    }
  }

  private func copyCompacting(
    _ snapshot: HeldSnapshot, into target: CopyTarget, progress: (CopyProgress) throws -> Void
  ) throws {
    var freePageCount: UInt64 = 0
    var reader = TreeReader(file: snapshot.file, meta: snapshot.meta)
    try reader.forEachFreePage(of: snapshot.meta) { _ in freePageCount += 1 }
    let listed = TreeStatistics(snapshot.meta.freeList).pageCount
    let pageCount = Int(snapshot.meta.lastPage) + 1 - Int(clamping: freePageCount) - listed
    let total = max(pageCount, 2) * snapshot.file.pageByteCount
    try withoutActuallyEscaping(progress) { progress in
      var compaction = Compaction(snapshot, into: target) { written in
        try snapshot.requireHeld()
        // Leaked pages stay behind, and so the total may be too large, never too small.
        try progress(
          CopyProgress(copiedByteCount: written, totalByteCount: max(total, written)))
      }
      try compaction.run(snapshot.meta)
    }
  }
}

extension HeldSnapshot {
  /// The bytes of the file up to the snapshot's last page.
  var byteCount: Int { (Int(clamping: meta.lastPage) + 1) * file.pageByteCount }
}
