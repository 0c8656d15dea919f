internal import CLMDB
import Foundation

/// Makes the data file of a new environment so that it is there whole or not at all.
///
/// LMDB creates it empty and then writes its head: a process that is killed in between, or a disk
/// that is full, leaves an empty file, which can never be told from one that has lost everything. So
/// it is made under another name, flushed, and then given its own.
enum NewDataFile {
  /// - Throws: `diskFull`, `noPermission`, `readOnly`, `outOfResources`, or what the system says.
  ///   Nothing is left then, or a file `data.mdb.new` that the next attempt replaces.
  static func make(
    _ file: String, in directory: String, configuration: Environment.Configuration
  ) throws(LMDBError) {
    let place = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard place >= 0 else { throw LMDBError.from(errno, operation: "open", path: directory) }
    // Also gives the lock back.
    defer { close(place) }
    // One process at a time makes it; a file system without such locks has but one, it is hoped.
    while flock(place, LOCK_EX) != 0, errno == EINTR {}
    if FileNumbers(path: file) != nil { return }
    let new = file + ".new"
    unsafe unlink(new)
    defer { unsafe unlink(new) }
    try check(makeHead(new, configuration), "mdb_env_open", directory)
    if configuration.durability != .unsafeWithoutSync { try flush(new, in: directory) }
    // Not `rename`, which would replace what another program has made meanwhile.
    guard unsafe link(new, file) != 0, errno != EEXIST else { return try settle(place, directory) }
    guard unsafe rename(new, file) == 0 else {
      throw LMDBError.from(errno, operation: "link", path: directory)
    }
    try settle(place, directory)
  }

  /// LMDB writes the head when it opens a file that is not there; nobody else knows this one.
  private static func makeHead(
    _ file: String, _ configuration: Environment.Configuration
  ) -> Int32 {
    var created: OpaquePointer?
    var result = unsafe mdb_env_create(&created)
    guard result == 0, let environment = unsafe created else { return result }
    defer { unsafe mdb_env_close(environment) }
    result = unsafe mdb_env_set_mapsize(environment, configuration.mapSizeByteCount)
    guard result == 0 else { return result }
    return unsafe mdb_env_open(
      environment, file, UInt32(MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC), 0o600)
  }

  private static func flush(_ file: String, in directory: String) throws(LMDBError) {
    let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw LMDBError.from(errno, operation: "open", path: directory) }
    defer { close(descriptor) }
    try check(fsync(descriptor) == 0 ? 0 : errno, "fsync", directory)
  }

  /// A name is not durable before its directory is flushed; some file systems cannot, and need not.
  private static func settle(_ place: Int32, _ directory: String) throws(LMDBError) {
    guard fsync(place) != 0, errno != EINVAL, errno != EROFS else { return }
    throw LMDBError.from(errno, operation: "fsync", path: directory)
  }

  private static func check(
    _ number: Int32, _ operation: String, _ directory: String
  ) throws(LMDBError) {
    if number != 0 { throw LMDBError.from(number, operation: operation, path: directory) }
  }
}
