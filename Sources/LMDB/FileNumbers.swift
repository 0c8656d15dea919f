internal import CLMDB
internal import Foundation

/// What the file system says of a file, without its times. Corresponds to `statx`, else `stat`.
struct FileNumbers {
  let device: UInt64
  let inode: UInt64
  let byteCount: Int
  /// What of it has a place on the disk; a hole has none.
  let allocatedByteCount: Int64
  /// The rights, without the file's kind.
  let mode: UInt32

  /// Asks for a path, through symbolic links.
  /// - Returns: nil with the reason in `errno`.
  init?(path: String) {
    guard !path.isEmpty else {
      errno = ENOENT
      return nil
    }
    self.init(AT_FDCWD, path)
  }

  /// Asks for an open file.
  /// - Returns: nil with the reason in `errno`.
  init?(descriptor: Int32) {
    self.init(descriptor, "")
  }

  private init?(_ descriptor: Int32, _ path: String) {
    var numbers = clmdb_file_numbers()
    guard unsafe clmdb_ask_file(descriptor, path, &numbers) == 0 else { return nil }
    device = numbers.device
    inode = numbers.inode
    byteCount = Int(numbers.byte_count)
    allocatedByteCount = numbers.allocated_byte_count
    mode = numbers.mode & 0o7777
  }
}
