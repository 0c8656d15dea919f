internal import CLMDB
import Foundation

extension Environment {
  /// Takes over the size that another process gave the map. On the writer's queue only.
  /// - Returns: what stopped it.
  func adoptMapSize() -> LMDBError? {
    resize(to: 0)
  }

  /// Doubles the map, up to its ceiling. On the writer's queue, with no write transaction open.
  ///
  /// A reader that was killed with its snapshot keeps every page since: clearing it may be all that
  /// is needed, so the transaction is tried again before the map grows.
  /// - Returns: what stopped it.
  func growMap() -> LMDBError? {
    if hasClearedDeadReaders() { return nil }
    let old = numbers().mapByteCount
    let ceiling = configuration.mapSizeByteCountMax
    guard old < ceiling else {
      return LMDBError(
        .mapFull, rawCode: MDB_MAP_FULL, operation: "grow", path: path,
        detail: "map \(old) bytes, ceiling \(ceiling)")
    }
    return resize(to: min(old * 2, ceiling))
  }

  private func resize(to byteCount: Int) -> LMDBError? {
    if isClosed { return LMDBError(.closed, operation: "resize", path: path) }
    var failure: LMDBError?
    let isDone = gate.exclusively(patience: .seconds(30)) {
      let result = unsafe mdb_env_set_mapsize(handle, byteCount)
      guard result != 0 else { return .open }
      // A failed resize leaves the environment unmapped, and the next transaction would crash: it is
      // closed here, so that it can be opened again.
      failure = LMDBError.from(result, operation: "mdb_env_set_mapsize", path: path)
      closeHandle()
      return .broken
    }
    return isDone ? failure : LMDBError(.busy, operation: "resize", path: path)
  }

  /// The map's size now, in bytes; 0 once it is closed.
  public var mapByteCount: Int {
    inside { numbers().mapByteCount } ?? 0
  }
}
