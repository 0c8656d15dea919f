import Foundation

/// One environment once per process, found by the device and inode of its data file.
///
/// A second `mdb_env_open` of one file in a process succeeds and then breaks the locking of both, by
/// whatever path the file was reached: links and `..` meet here.
final class EnvironmentRegistry: @unchecked Sendable {
  static let shared = EnvironmentRegistry()

  struct FileID: Hashable {
    let device: UInt64
    let inode: UInt64

    /// - Returns: nil when there is no such file, or it cannot be asked.
    init?(file: String) {
      guard let numbers = FileNumbers(path: file) else { return nil }
      self.init(numbers)
    }

    init(_ numbers: FileNumbers) { self.init(device: numbers.device, inode: numbers.inode) }

    init(device: UInt64, inode: UInt64) {
      self.device = device
      self.inode = inode
    }
  }

  private struct Entry {
    weak var environment: Environment?
  }

  // SAFETY (@unchecked Sendable): `open` is read and written under `condition`.
  private let condition = NSCondition()
  private var open: [FileID: Entry] = [:]
  private var fork = ForkGeneration.current

  /// The open environment of that file, else the one that `make` opens; it gets nil where there is
  /// no file yet.
  func environment(
    file: String, in directory: String,
    make: (consuming DataFile?) throws(LMDBError) -> Environment
  ) throws(LMDBError) -> Environment {
    condition.lock()
    defer { condition.unlock() }
    if !fork.isOurs {
      // What is in here belongs to the parent of this process.
      open = [:]
      fork = ForkGeneration.current
    }
    while true {
      guard let found = try DataFile(file, in: directory) else {
        return try enter(make(nil))
      }
      guard let entry = open[found.id] else { return try enter(make(found)) }
      if let environment = entry.environment, !environment.isClosed { return environment }
      // The last reference is gone but the C environment is still closing: opening it now would let
      // that close drop our locks.
      condition.wait()
    }
  }

  /// Whether somebody of this process has it open, or is closing it.
  func hasOpen(_ id: FileID) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    return fork.isOurs && open[id] != nil
  }

  private func enter(_ environment: Environment) -> Environment {
    open[environment.fileID] = Entry(environment: environment)
    return environment
  }

  /// Closes the C environment while nobody can open its file again.
  func close(_ id: FileID, _ body: () -> Void) {
    condition.lock()
    body()
    open[id] = nil
    condition.broadcast()
    condition.unlock()
  }
}
