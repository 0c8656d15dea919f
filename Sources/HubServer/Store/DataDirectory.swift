import Foundation

/// The hub's directory, held by one process at a time.
///
///     hub.lock         locked by the process that serves the directory
///     run.json         which data file belongs here; see ``RunLedger``
///     erasures.jsonl   erasures and their undoing; see ``ErasureNotes``
///     store/           the LMDB environment
final class DataDirectory: Sendable {
  let url: URL
  private let lockDescriptor: Int32

  var runFile: URL { url.appending(path: "run.json", directoryHint: .notDirectory) }
  var erasuresFile: URL { url.appending(path: "erasures.jsonl", directoryHint: .notDirectory) }
  var store: URL { url.appending(path: "store", directoryHint: .isDirectory) }

  /// Makes the directory if it is not there, and locks it.
  /// - Throws: ``HubServerError`` `directoryInUse` when a hub serves it, `directoryUnusable`.
  init(_ url: URL) throws(HubServerError) {
    self.url = url
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw HubServerError(
        .directoryUnusable, "\(url.path) cannot be made; name a directory that may be written",
        cause: error)
    }
    let lock = url.appending(path: "hub.lock", directoryHint: .notDirectory)
    lockDescriptor = open(lock.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lockDescriptor >= 0 else {
      throw HubServerError(
        .directoryUnusable,
        "\(lock.path) cannot be opened: \(String(cString: strerror(errno))); check its rights")
    }
    // The lock ends with the process, however that ends.
    guard flock(lockDescriptor, LOCK_EX | LOCK_NB) == 0 else {
      let isHeld = errno == EWOULDBLOCK
      close(lockDescriptor)
      throw HubServerError(
        isHeld ? .directoryInUse : .directoryUnusable,
        isHeld
          ? "another hub serves \(url.path); stop it, or give this one a directory of its own"
          : "\(lock.path) cannot be locked; use a local file system")
    }
  }

  /// Lets another process serve it.
  ///
  /// Closing the descriptor would not do: a child that was just forked holds a copy until it runs
  /// its own program.
  func unlock() { flock(lockDescriptor, LOCK_UN) }

  deinit {
    unlock()
    close(lockDescriptor)
  }
}
