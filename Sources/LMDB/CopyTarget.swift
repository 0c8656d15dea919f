import Foundation

/// The place where a copy is made: under a name of its own until it is whole and on the disk.
///
/// Whoever looks at the wanted place finds nothing (for a moment at the end an empty directory) or
/// the whole copy. What a crash leaves behind is a
/// directory `NAME.copying-…` beside it, which nobody needs.
final class CopyTarget {
  private let directory: String
  private let partialDirectory: String
  private let partialFile: String
  private var descriptor: Int32 = -1
  private var offset: Int64 = 0
  private var isFinished = false

  /// - Throws: `exists` when there is anything at that place, a broken link too; `missing` when the
  ///   directory above is not there; `noPermission`, `readOnly`, `diskFull`.
  init(directory: String) throws(LMDBError) {
    var directory = directory
    while directory.count > 1, directory.hasSuffix("/") { directory.removeLast() }
    self.directory = directory
    partialDirectory = directory + ".copying-" + UUID().uuidString
    partialFile = partialDirectory + "/data.mdb"
    var isLink = [CChar](repeating: 0, count: 1)
    if unsafe access(directory, F_OK) == 0 || readlink(directory, &isLink, 1) >= 0 {
      throw LMDBError(.exists, operation: "copy", path: directory)
    }
    guard unsafe mkdir(partialDirectory, 0o700) == 0 else {
      throw LMDBError.from(errno, operation: "mkdir", path: directory)
    }
    descriptor = unsafe open(
      partialFile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else {
      let error = LMDBError.from(errno, operation: "open", path: directory)
      unsafe rmdir(partialDirectory)
      throw error
    }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    guard !isFinished else { return }
    unsafe unlink(partialFile)
    unsafe rmdir(partialDirectory)
  }

  /// Writes the first bytes of an array behind what was written.
  func append(_ bytes: [UInt8], byteCount: Int) throws(LMDBError) {
    try write(bytes, byteCount: byteCount, at: offset)
    offset += Int64(byteCount)
  }

  func write(_ bytes: [UInt8], byteCount: Int, at start: Int64) throws(LMDBError) {
    var done = 0
    while done < byteCount {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[done..<byteCount])
        return unsafe pwrite(descriptor, rest.baseAddress, rest.count, off_t(start + Int64(done)))
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw LMDBError.from(errno, operation: "pwrite", path: partialDirectory)
      }
      done += count
    }
  }

  /// Brings all of it to the disk, then under its name.
  func finish() throws(LMDBError) {
    try flush(descriptor)
    try flushDirectory(partialDirectory)
    // A plain rename would replace an empty directory that somebody has made meanwhile, so the name
    // is taken first; should others put a file into it before the rename, that fails.
    guard unsafe mkdir(directory, 0o700) == 0 else {
      throw LMDBError.from(errno, operation: "mkdir", path: directory)
    }
    guard unsafe rename(partialDirectory, directory) == 0 else {
      let error = LMDBError.from(
        errno == ENOTEMPTY ? EEXIST : errno, operation: "rename", path: directory)
      unsafe rmdir(directory)
      throw error
    }
    isFinished = true
    let parent = URL(fileURLWithPath: directory).deletingLastPathComponent().path
    try flushDirectory(parent)
  }

  private func flushDirectory(_ path: String) throws(LMDBError) {
    let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw LMDBError.from(errno, operation: "open", path: directory)
    }
    defer { close(descriptor) }
    try flush(descriptor)
  }

  private func flush(_ descriptor: Int32) throws(LMDBError) {
    #if canImport(Darwin)
      // `fsync` leaves the bytes in the device's cache there.
      let result = fcntl(descriptor, F_FULLFSYNC)
    #else
      let result = fsync(descriptor)
    #endif
    guard result == 0 else { throw LMDBError.from(errno, operation: "fsync", path: directory) }
  }
}
