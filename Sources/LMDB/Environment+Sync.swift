internal import CLMDB
import Foundation

extension Environment {
  /// Flushes all that was committed to the disk, whatever the ``Durability`` is, blocking the calling
  /// thread. For tools, tests and threads that may block.
  ///
  /// After it, what was committed before it survives a crash of the kernel and a loss of power. With
  /// `.durable` there is nothing left to flush.
  /// - Throws: `closed`, `readOnly`; `ioFailed` when the device reports an error: what was committed
  ///   since the last flush may then be lost, and a later flush may claim that all is well.
  /// - Cost: a flush of the disk; writers and readers go on meanwhile, the map cannot grow.
  ///   Corresponds to `mdb_env_sync`.
  @available(*, noasync, message: "use `try await sync`, which does not block a task's thread")
  public func sync() throws(LMDBError) {
    try flush()
  }

  /// The same without blocking a task's thread.
  /// - Throws: as the blocking form.
  public func sync() async throws {
    try requireOwnProcess("sync")
    try await withCheckedThrowingContinuation { continuation in
      writer.queue.async {
        continuation.resume(with: Result { try self.flush() })
      }
    }
  }

  private func flush() throws(LMDBError) {
    try inside("sync") { () throws(LMDBError) in
      guard configuration.access != .read else {
        throw LMDBError(.readOnly, rawCode: EROFS, operation: "mdb_env_sync", path: path)
      }
      try check(unsafe mdb_env_sync(handle, 1), "mdb_env_sync")
    }
  }
}
