internal import CLMDB
import Foundation
import Synchronization

/// When the map is looked after; used with the turn to write.
struct MapCare {
  /// It is not grown ahead of the need before then.
  var nextGrowth: ContinuousClock.Instant?
  /// Reader slots that nobody used are given back then.
  var nextTrim: ContinuousClock.Instant?
  /// The slots of dead processes are cleared every so many times.
  var trimCount = 0

  static let growthPause = Duration.milliseconds(100)
  static let trimPause = Duration.seconds(5)
  static let trimsPerClearing = 6
}

// All of this is done with the turn to write, and with no write transaction open.
extension Environment {
  /// How often one call takes over a larger map. A busy other process can double it again before
  /// this one gets its turn at LMDB's lock, which is not fair; but no map doubles more often.
  static let adoptionCountMax = 64

  /// Takes over the size that another process gave the map.
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

  /// Doubles the map, up to the ceiling; for a draining write that is not enough for, beyond it.
  ///
  /// A reader that was killed with its snapshot keeps every page since: clearing it may be all that
  /// is needed, so the transaction is tried again before the map grows.
  /// - Returns: what stopped it.
  func growMap(for purpose: WritePurpose) -> LMDBError? {
    if hasClearedDeadReaders() { return nil }
    let old = numbers().mapByteCount
    let ceiling = configuration.mapSizeByteCountMax
    if old < ceiling { return resize(to: old > ceiling / 2 ? ceiling : old * 2) }
    let limit = Self.drainingCeiling(above: ceiling)
    guard purpose == .draining, old < limit else {
      return LMDBError(
        .mapFull, rawCode: MDB_MAP_FULL, operation: "grow", path: path,
        detail: "map \(old) bytes, ceiling \(ceiling)" + whoKeepsPages())
    }
    return resize(to: limit)
  }

  /// The oldest snapshot, where one keeps pages from being used again: deleting is no remedy then.
  private func whoKeepsPages() -> String {
    guard let oldest = try? readers().max(by: { $0.lag ?? 0 < $1.lag ?? 0 }), let lag = oldest.lag,
      lag > 1
    else { return "" }
    return "; process \(oldest.process) reads a snapshot that is \(lag) commits old, end it"
  }

  /// The room that only draining writes get ends here.
  static func drainingCeiling(above ceiling: Int) -> Int {
    let (sum, isOver) = ceiling.addingReportingOverflow(max(1 << 20, ceiling / 16))
    return isOver ? ceiling : sum
  }

  /// Takes back what draining writes got beyond the ceiling, before a storing write begins.
  ///
  /// LMDB keeps as much as is used; a storing write then has the pages that are free in between.
  /// Where a long reader stands in the way the map stays as it is while half of that room is left:
  /// ``CeilingRoom`` alone limits the write then.
  func lowerMapToCeiling() throws(LMDBError) {
    let ceiling = configuration.mapSizeByteCountMax
    let numbers = numbers()
    guard numbers.mapByteCount > max(ceiling, numbers.usedByteCount) else { return }
    guard let error = resize(to: ceiling, patience: .zero) else { return }
    let half = (Self.drainingCeiling(above: ceiling) - ceiling) / 2
    if error.code != .busy || numbers.usedByteCount - ceiling > half { throw error }
  }

  /// After a commit: grows the map before it is full, and gives back what nobody needs.
  ///
  /// Growing ahead spares a write that does not fit its second run. It takes the first moment
  /// without a reader and bars readers for 2 ms at most.
  func careForMap(_ numbers: Statistics) {
    let now = ContinuousClock.now
    if numbers.usedByteCount > numbers.mapByteCount / 5 * 4,
      numbers.mapByteCount < configuration.mapSizeByteCountMax, now >= care.nextGrowth ?? now
    {
      let isGrown = numbers.mapByteCount < configuration.mapSizeByteCountMax / 2
      // What stops it now stops it again when the room is needed, and is reported then.
      _ = resize(
        to: isGrown ? numbers.mapByteCount * 2 : configuration.mapSizeByteCountMax,
        patience: .zero)
      care.nextGrowth = now + MapCare.growthPause
    }
    guard let nextTrim = care.nextTrim else {
      care.nextTrim = now + MapCare.trimPause
      return
    }
    guard now >= nextTrim, !isClosed else { return }
    care.nextTrim = now + MapCare.trimPause
    trimIdleReaders()
    care.trimCount += 1
    if care.trimCount % MapCare.trimsPerClearing == 0 { _ = hasClearedDeadReaders() }
  }

  private func resize(to byteCount: Int, patience: Duration = .seconds(30)) -> LMDBError? {
    if isClosed { return LMDBError(.closed, operation: "resize", path: path) }
    // Asked before, because LMDB gives the old map up first: refused now, nothing has happened.
    if let error = lackOfAddressSpace(for: byteCount - numbers().mapByteCount) { return error }
    var failure: LMDBError?
    let isDone = gate.exclusively(patience: patience) {
      let result = unsafe mdb_env_set_mapsize(handle, byteCount)
      guard result != 0 else { return .open }
      // A failed resize leaves the environment unmapped, and the next transaction would crash: it is
      // closed here, so that it can be opened again.
      failure = LMDBError.from(result, operation: "mdb_env_set_mapsize", path: path)
      closeHandle(sealing: 0)
      return .broken
    }
    return isDone ? failure : LMDBError(.busy, operation: "resize", path: path)
  }

  /// Whether the process may map so many bytes more.
  private func lackOfAddressSpace(for byteCount: Int) -> LMDBError? {
    guard byteCount > 0 else { return nil }
    let probe = unsafe mmap(nil, byteCount, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0)
    guard unsafe probe != MAP_FAILED else {
      return LMDBError.from(
        errno, operation: "mmap", path: path, detail: "\(byteCount) bytes more for the map")
    }
    // SAFETY: mapped here, and nobody was told of it.
    unsafe munmap(probe, byteCount)
    return nil
  }

  /// The map's size now, in bytes; 0 once it is closed.
  public var mapByteCount: Int {
    inside { numbers().mapByteCount } ?? 0
  }
}
