internal import Foundation

// `struct stat` belongs to whichever C module the compiler meets first, and that changes with the
// number of files in this target: the one file that uses it imports all that it can be.
#if canImport(CDispatch)
  internal import CDispatch
#endif
#if canImport(Glibc)
  internal import Glibc
#endif

/// What the file system says of a file. Corresponds to `stat`.
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
    var numbers = stat()
    guard unsafe stat(path, &numbers) == 0 else { return nil }
    self.init(numbers)
  }

  /// Asks for an open file.
  /// - Returns: nil with the reason in `errno`.
  init?(descriptor: Int32) {
    var numbers = stat()
    guard unsafe fstat(descriptor, &numbers) == 0 else { return nil }
    self.init(numbers)
  }

  private init(_ numbers: stat) {
    device = UInt64(truncatingIfNeeded: numbers.st_dev)
    inode = UInt64(numbers.st_ino)
    byteCount = Int(numbers.st_size)
    allocatedByteCount = Int64(numbers.st_blocks) * 512
    mode = UInt32(numbers.st_mode & 0o7777)
  }
}
