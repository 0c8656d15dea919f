internal import CLMDB
import Foundation
import Synchronization

extension Environment {
  /// How often one call takes over a larger map. A busy other process can double it again before
  /// this one gets its turn at LMDB's lock, which is not fair; but no map doubles more often.
  static let adoptionCountMax = 64

  /// Takes over the size that another process gave the map. With the turn to write only.
  /// - Returns: what stopped it.
  func adoptMapSize() -> LMDBError? {
    if isClosed { return LMDBError(.closed, operation: "resize", path: path) }
    return isMapLargeEnough ? nil : resize(to: 0)
  }

  /// The same for a reader. It waits for the writer's commit only if the writer, itself waiting for
  /// another process, has not yet taken over that size.
  func adoptMapSizeAsReader() -> LMDBError? {
    for _ in 0..<20 {
      if turn.withLock({ $0.takeIfFree() }) {
        defer { passTurn() }
        return adoptMapSize()
      }
      if inside({ isMapLargeEnough }) != false { return nil }
      usleep(100)
    }
    return withTurn { adoptMapSize() }
  }

  private var isMapLargeEnough: Bool {
    let numbers = numbers()
    return numbers.usedByteCount <= numbers.mapByteCount
  }

  /// Doubles the map, up to its ceiling. With the turn to write, and no write transaction
  /// open.
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
