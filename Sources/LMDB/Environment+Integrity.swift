extension Environment {
  /// Checks every page that the last commit reaches, while everybody goes on reading and writing.
  ///
  /// Walks the unnamed database, each table with its overflow pages and trees of duplicates, and the
  /// free list, and counts what belongs to nobody. Reads the data file through a descriptor, never
  /// through the map: damage is a finding, not a crash. Holds one snapshot as long as it runs, so
  /// the file grows while others write; nobody waits for it. What stands in the values is not
  /// looked at: LMDB stores no sums over them.
  ///
  /// - Parameter progress: called on another thread about every 1,024 pages; an error that it throws
  ///   ends the check and is thrown here.
  /// - Returns: the report; ``IntegrityReport/isIntact`` when nothing was found.
  /// - Throws: `CancellationError` soon after the task was cancelled; `closed` when the environment
  ///   was closed meanwhile; `readersFull`, `outOfResources`, `ioFailed`. Damage is no error.
  /// - Cost: reads each page in use once, one to two seconds per GiB from memory; two bits of memory per
  ///   page.
  public func checkIntegrity(
    progress: (@Sendable (IntegrityProgress) throws -> Void)? = nil
  ) async throws -> IntegrityReport {
    try await Self.onOwnThread { flag in
      try self.checkBlocking {
        try flag.check()
        try progress?($0)
      }
    }
  }

  /// The same, blocking the calling thread. For tools, tests and threads that may block.
  @available(*, noasync, message: "use the async form, which does not block a task's thread")
  public func checkIntegrity(
    progress: ((IntegrityProgress) throws -> Void)? = nil
  ) throws -> IntegrityReport {
    try checkBlocking { try progress?($0) }
  }

  /// Checks an environment that nobody has open, or that does not open any more.
  ///
  /// Nothing is written and no lock is taken: if others write meanwhile, the pages change under the
  /// check. Open it then, and check it under its snapshot.
  ///
  /// - Parameters:
  ///   - directory: the environment's directory.
  ///   - progress: as for the form without a path.
  /// - Throws: `missing`, `noPermission`; `busy` when somebody committed meanwhile;
  ///   `CancellationError`. Damage is no error, that of both meta pages neither.
  /// - Cost: as for the form without a path.
  public static func checkIntegrity(
    at directory: String, progress: (@Sendable (IntegrityProgress) throws -> Void)? = nil
  ) async throws -> IntegrityReport {
    try await onOwnThread { flag in
      try checkBlocking(at: directory) {
        try flag.check()
        try progress?($0)
      }
    }
  }

  /// The same, blocking the calling thread. For tools, tests and threads that may block.
  @available(*, noasync, message: "use the async form, which does not block a task's thread")
  public static func checkIntegrity(
    at directory: String, progress: ((IntegrityProgress) throws -> Void)? = nil
  ) throws -> IntegrityReport {
    try checkBlocking(at: directory) { try progress?($0) }
  }

  /// Closes it again when anything is wrong.
  /// - Throws: `damaged` with the first finding; what a check throws.
  func requireIntact() throws(LMDBError) {
    let finding: IntegrityFinding?
    do {
      finding = try checkBlocking { _ in }.findings.first
    } catch let error as LMDBError {
      try close()
      throw error
    } catch {
      preconditionFailure("LMDB: a check without progress threw \(type(of: error))")
    }
    guard let finding else { return }
    try close()
    throw LMDBError(.damaged, operation: "open", path: path, detail: finding.description)
  }

  private func checkBlocking(
    progress: (IntegrityProgress) throws -> Void
  ) throws -> IntegrityReport {
    let snapshot = try HeldSnapshot(of: self)
    let report = try withoutActuallyEscaping(progress) { progress in
      try IntegrityWalk(file: snapshot.file, meta: snapshot.meta) {
        try snapshot.requireHeld()
        try progress($0)
      }.run()
    }
    try snapshot.end()
    return report
  }

  private static func checkBlocking(
    at directory: String, progress: (IntegrityProgress) throws -> Void
  ) throws -> IntegrityReport {
    let file = try PageFile(directory: directory)
    guard let meta = file.newestMeta else {
      return IntegrityReport(
        transaction: 0, pageCount: 0, usedPageCount: 0, freePageCount: 0, entryCount: 0,
        findings: (0..<PageLayout.metaPageCount).map {
          IntegrityFinding(
            kind: .damagedHead, page: $0, table: nil, detail: "the meta page cannot be read")
        }, findingCount: Int(PageLayout.metaPageCount))
    }
    let report = try withoutActuallyEscaping(progress) { progress in
      try IntegrityWalk(file: file, meta: meta, progress: progress).run()
    }
    try file.readMetaPages()
    guard file.newestMeta == meta else {
      throw LMDBError(
        .busy, operation: "checkIntegrity", path: directory,
        detail: "somebody wrote meanwhile; open it and check it then")
    }
    return report
  }
}
