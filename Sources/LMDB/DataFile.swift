import Foundation

/// The data file of an environment, open for reading while it is looked at before LMDB opens it.
///
/// Closing it harms no lock: LMDB's locks live in `lock.mdb`, and the claims on this file belong to
/// the descriptor that made them.
struct DataFile: ~Copyable {
  let descriptor: Int32
  let id: EnvironmentRegistry.FileID
  /// How it begins: both meta pages' heads, or what there is of them.
  let heads: [UInt8]
  /// Its length after that was read: another process may extend the file meanwhile, never cut it.
  let byteCount: Int

  /// Opens the file.
  /// - Returns: nil when there is none; whether there is a directory for it was not asked.
  /// - Throws: `notADirectory`, `noPermission`, `outOfResources`, or what the file system says.
  init?(_ file: String, in directory: String) throws(LMDBError) {
    let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw LMDBError.from(errno, operation: "open", path: directory)
    }
    let wanted = Int(getpagesize()) + MetaPages.headByteCount
    var count = 0
    let read = unsafe [UInt8](unsafeUninitializedCapacity: wanted) { room, filled in
      count = unsafe pread(descriptor, room.baseAddress, wanted, 0)
      filled = max(count, 0)
    }
    guard count >= 0, let numbers = FileNumbers(descriptor: descriptor) else {
      let number = errno
      close(descriptor)
      throw LMDBError.from(
        number, operation: count < 0 ? "pread" : "fstat", path: directory)
    }
    self.descriptor = descriptor
    heads = read
    byteCount = numbers.byteCount
    id = EnvironmentRegistry.FileID(numbers)
  }

  deinit { close(descriptor) }
}
