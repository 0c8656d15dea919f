import Foundation
import Synchronization

/// Files that this process has looked at, or has closed itself: who opens the next one of them a
/// thousand times a minute does not read it a thousand times.
private struct SeenFiles {
  private static let countMax = 65_536
  /// The commit that each had.
  private var files: [EnvironmentRegistry.FileID: UInt64] = [:]

  func has(_ file: EnvironmentRegistry.FileID, _ transaction: UInt64) -> Bool {
    files[file] == transaction
  }

  mutating func note(_ file: EnvironmentRegistry.FileID, _ transaction: UInt64) {
    if files.count >= Self.countMax, files[file] == nil {
      // Whichever: half of them are known still.
      files = Dictionary(uniqueKeysWithValues: files.dropFirst(files.count / 2).map { $0 })
    }
    files[file] = transaction
  }

  mutating func forget() { files = [:] }
}

// A small file is checked whole when this process first opens it, and sealed when it is closed.
extension Environment {
  private static let seen = Mutex(SeenFiles())

  /// As if this process had opened no file yet: for tests that change what lies on the disk.
  package static func forgetSeenFiles() { seen.withLock { $0.forget() } }

  /// Does what opening a file will do anyway, while others may still be opened and closed.
  static func checkAhead(_ directory: String, _ configuration: Configuration) {
    guard configuration.access != .read, configuration.sealedByteCountMax > 0,
      let id = EnvironmentRegistry.FileID(file: directory + "/data.mdb"),
      !EnvironmentRegistry.shared.hasOpen(id)
    else { return }
    do {
      let file = try PageFile(directory: directory)
      guard let meta = file.newestMeta,
        Self.uses(meta, atMost: configuration.sealedByteCountMax, pageByteCount: file.pageByteCount)
      else { return }
      try requireUnharmed(id, in: directory)
    } catch {
      // It is not noted as seen: opening finds the same, and says it.
      return
    }
  }

  /// Whether the pages in use take so many bytes at most. A harmed head may name any page as the last.
  private static func uses(
    _ meta: MetaRecord, atMost byteCountMax: Int, pageByteCount: Int
  ) -> Bool { meta.lastPage < UInt64(max(0, byteCountMax) / pageByteCount) }

  /// Looks at every page that the last commit reaches before LMDB maps them: it believes what stands
  /// there, and garbage can end the process.
  ///
  /// - Throws: `damaged` when a page is not what it has to be, or the whole is not what was sealed.
  /// - Cost: reads the file, one to two seconds per GiB; nothing when this process has seen it.
  static func requireUnharmed(
    _ id: EnvironmentRegistry.FileID, in directory: String
  ) throws(LMDBError) {
    let file = try PageFile(directory: directory)
    let pages = file.metaPages
    guard let meta = file.newestMeta, !seen.withLock({ $0.has(id, meta.transaction) }) else {
      return
    }
    let walk = try IntegrityWalk(file: file, meta: meta, isSumming: true) { _ in }
    let report = try report(of: walk)
    try file.readMetaPages()
    // Somebody has it open and commits: whoever opened it first has looked at it.
    guard file.metaPages == pages else { return }
    func requireIs(_ isTrue: Bool, _ detail: @autoclosure () -> String) throws(LMDBError) {
      guard isTrue else {
        throw LMDBError(.damaged, operation: "open", path: directory, detail: detail())
      }
    }
    let finding = report.findings.first { $0.kind != .pageLeaked }
    try requireIs(finding == nil, finding?.description ?? "")
    try requireIs(arePaired(pages), "the meta pages are not those of two commits in a row")
    if let seal = Seal(in: directory), seal.speaks(of: id, meta.transaction, walk.head) {
      try requireIs(
        seal.sum == walk.sum.value,
        "its content is not what it was when it was closed: something on the disk has changed; if "
          + "somebody has changed it on purpose, remove \(Seal.path(in: directory))")
    }
    seen.withLock { $0.note(id, meta.transaction) }
  }

  private static func report(of walk: IntegrityWalk) throws(LMDBError) -> IntegrityReport {
    do {
      return try walk.run()
    } catch let error as LMDBError {
      throw error
    } catch {
      preconditionFailure("LMDB: a check without progress threw \(type(of: error))")
    }
  }

  /// Whether each meta page stands where its commit writes, one behind the other: one that claims to
  /// be newer than it is would bring back what was overwritten.
  private static func arePaired(_ pages: [MetaRecord?]) -> Bool {
    guard let first = pages[0]?.transaction, let second = pages[1]?.transaction else {
      return false
    }
    if first == 0, second == 0 { return true }
    return max(first, second) - min(first, second) == 1 && first & 1 == 0
  }

  /// Before it is closed, while nobody of this process is inside: notes what the file holds.
  ///
  /// Others may commit meanwhile; then the last of them to close it seals it.
  func sealIfSmall(byteCountMax: Int) {
    let byteCountMax = min(byteCountMax, configuration.sealedByteCountMax)
    guard byteCountMax > 0, commitCount > 0 else { return }
    do {
      try seal(byteCountMax: byteCountMax)
    } catch {
      // What cannot be read now is told to whoever opens it next; without a seal only the form is
      // checked.
      return
    }
  }

  private func seal(byteCountMax: Int) throws {
    let file = try PageFile(directory: path)
    guard let numbers = FileNumbers(descriptor: file.descriptor),
      EnvironmentRegistry.FileID(numbers) == fileID, let meta = file.newestMeta,
      Self.uses(meta, atMost: byteCountMax, pageByteCount: file.pageByteCount)
    else { return }
    let walk = try IntegrityWalk(file: file, meta: meta, isSumming: true) { _ in }
    let report = try walk.run()
    try file.readMetaPages()
    // A seal over damage would hide it.
    guard report.findings.allSatisfy({ $0.kind == .pageLeaked }), file.newestMeta == meta else {
      return
    }
    Seal(file: fileID, transaction: meta.transaction, sum: walk.sum.value, head: walk.head)
      .write(in: path)
    Self.seen.withLock { $0.note(fileID, meta.transaction) }
  }
}
