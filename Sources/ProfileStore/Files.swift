import Foundation
import LMDB

/// The file system, as far as a store touches it beside LMDB.
enum Files {
  /// Makes a directory unless it is there, and flushes the one above it.
  static func makeDirectory(_ path: String) throws(StoreError) {
    guard mkdir(path, 0o700) == 0 else {
      let number = errno
      guard number == EEXIST else { throw failure("make a directory", number) }
      return
    }
    try flush((path as NSString).deletingLastPathComponent)
  }

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Whether a data file has both meta pages, which LMDB writes at once when it makes one.
  static func isWholeEnvironment(_ file: String) -> Bool {
    var numbers = stat()
    return stat(file, &numbers) == 0 && Int(numbers.st_size) >= 2 * Int(getpagesize())
  }

  /// The names in a directory, in no order.
  static func names(in directory: String) throws -> [String] {
    guard let stream = opendir(directory) else {
      // Foundation's error has the place and the kind, which callers look at.
      return try FileManager.default.contentsOfDirectory(atPath: directory)
    }
    defer { closedir(stream) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
      errno = 0
    }
    guard errno == 0 else { throw failure("list a directory", errno) }
    return names
  }

  /// Removes a directory and everything in it.
  static func remove(_ path: String) throws(StoreError) {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      if exists(path) {
        throw StoreError(
          .storage, "cannot remove the files of an area: \(error.localizedDescription)")
      }
    }
  }

  /// Renames and flushes the directory above, so that the name is as durable as the content.
  static func rename(_ old: String, to new: String) throws(StoreError) {
    guard unsafeRename(old, new) == 0 else { throw failure("rename an area's directory", errno) }
    try flush((new as NSString).deletingLastPathComponent)
  }

  private static func unsafeRename(_ old: String, _ new: String) -> Int32 {
    #if canImport(Darwin)
      Darwin.rename(old, new)
    #else
      Glibc.rename(old, new)
    #endif
  }

  /// Flushes a directory's entries to the disk.
  static func flush(_ directory: String) throws(StoreError) {
    let descriptor = open(directory, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("open a directory", errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure("flush a directory", errno) }
  }

  /// Device, inode and machine of an area's data file.
  static func identity(of area: String) throws(StoreError) -> FileIdentity {
    guard let file = Environment.dataFile(in: area) else {
      throw failure("look at data.mdb", errno)
    }
    return FileIdentity(file)
  }

  static let machine: [UInt8] = {
    #if canImport(Darwin)
      var bytes = [UInt8](repeating: 0, count: 16)
      var wait = timespec(tv_sec: 1, tv_nsec: 0)
      return gethostuuid(&bytes, &wait) == 0 ? bytes : []
    #else
      guard let text = FileManager.default.contents(atPath: "/etc/machine-id") else { return [] }
      return Array(text.prefix(32))
    #endif
  }()

  static func failure(_ what: String, _ number: Int32) -> StoreError {
    let reason = String(cString: strerror(number))
    return StoreError(.storage, "cannot \(what): \(reason)")
  }
}

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// An advisory lock on a file, which the kernel releases with its process. Corresponds to `flock`.
package final class FileLock: Sendable {
  let descriptor: Int32
  private let process = getpid()

  private init(descriptor: Int32) { self.descriptor = descriptor }

  /// A program that another thread is just starting has a copy of every descriptor for a moment, and
  /// with it the lock: closing ours alone would not end it. In a forked child it is the parent's.
  deinit {
    if getpid() == process { flock(descriptor, LOCK_UN) }
    close(descriptor)
  }

  private static func openFile(_ path: String) throws(StoreError) -> Int32 {
    // It is there nearly always, and asking for one to be made costs more.
    var descriptor = open(path, O_RDWR | O_CLOEXEC)
    if descriptor < 0, errno == ENOENT {
      descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    }
    guard descriptor >= 0 else { throw Files.failure("open a lock file", errno) }
    return descriptor
  }

  /// Waits until the lock is free and takes it.
  static func exclusive(_ path: String) throws(StoreError) -> FileLock {
    try lock(path, LOCK_EX)
  }

  /// Takes the lock beside others who share it.
  package static func shared(_ path: String) throws(StoreError) -> FileLock {
    try lock(path, LOCK_SH)
  }

  private static func lock(_ path: String, _ operation: Int32) throws(StoreError) -> FileLock {
    let descriptor = try openFile(path)
    while flock(descriptor, operation) != 0 {
      let number = errno
      if number == EINTR { continue }
      close(descriptor)
      throw Files.failure("lock a file", number)
    }
    return FileLock(descriptor: descriptor)
  }

  /// Takes the lock if it is free now, else returns nil.
  static func ifFree(_ path: String) throws(StoreError) -> FileLock? {
    let descriptor = try openFile(path)
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      let number = errno
      if number == EINTR { continue }
      close(descriptor)
      if number == EWOULDBLOCK { return nil }
      throw Files.failure("lock a file", number)
    }
    return FileLock(descriptor: descriptor)
  }
}
