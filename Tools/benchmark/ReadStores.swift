import Measuring

/// W2 and W3: scans and gets in a store whose records were inserted in order.
///
/// C and the module read the same file by turns, so that both meet the same pages of memory.
final class ReadStores {
  /// Odd, so that the XOR over all passes is that of one.
  private static let scans = 5
  private static let getsByDefault = 50_000

  private let context: Context
  private let lmdb: String
  private let sqlite: String
  private let indexes: [UInt32]
  private let expectedGets: UInt64

  init(_ context: Context) throws {
    self.context = context
    lmdb = try context.freshDirectory()
    sqlite = try context.freshDirectory()
    let store = try CStore(lmdb)
    _ = try store.apply(context.documents, in: context.inOrder)
    _ = try SQLiteStore(sqlite, .sqliteNormal).apply(context.documents, in: context.inOrder)
    var random = SplitMix64(seed: Documents.seed + 2)
    let count = context.documents.count
    indexes = (0..<min(Self.getsByDefault, 2 * count)).map { _ in
      UInt32(random.next(below: count))
    }
    expectedGets = context.digest(of: indexes)
  }

  func remove() throws {
    try context.remove(lmdb)
    try context.remove(sqlite)
  }

  // MARK: - W2

  func scanGroup() -> Group {
    var subjects = [
      Subject(.c) { [self] in try scanC(prefetch: false) },
      Subject(.lmdb) { [self] in try scanModule(prefetch: false) },
      Subject(.c) { [self] in try scanC(prefetch: true) },
      Subject(.lmdb) { [self] in try scanModule(prefetch: true) },
    ]
    for engine in [Engine.sqliteFull, .sqliteNormal] {
      subjects.append(
        Subject(engine) { [self] in
          let store = try SQLiteStore(sqlite, engine)
          return try scan(engine, .plainScan, .scanAllocations) { try store.scan(passes: $0) }
        })
    }
    return Group(.scan, Workload.scan.title, pairedRounds: 31, subjects)
  }

  private func scanC(prefetch: Bool) throws -> [(Metric, Double)] {
    let store = try CStore(lmdb)
    return try scan(
      .c, prefetch ? .prefetchedScan : .plainScan,
      prefetch ? .prefetchedScanAllocations : .scanAllocations
    ) { try store.scan(passes: $0, prefetch: prefetch) }
  }

  private func scanModule(prefetch: Bool) throws -> [(Metric, Double)] {
    let store = try ModuleStore(lmdb)
    let found = try scan(
      .lmdb, prefetch ? .prefetchedScan : .plainScan,
      prefetch ? .prefetchedScanAllocations : .scanAllocations
    ) { try store.scan(passes: $0, prefetch: prefetch) }
    try store.close()
    return found
  }

  private func scan(
    _ engine: Engine, _ speed: Metric, _ allocated: Metric, _ pass: (Int) throws -> Pass
  ) throws -> [(Metric, Double)] {
    func checked(_ passes: Int) throws -> Pass {
      try pass(passes).verified(
        engine, "W2", operations: passes * context.documents.count, digest: context.digest)
    }
    _ = try checked(1)
    let timed = try checked(Self.scans)
    guard canCountAllocations else { return [(speed, timed.speed)] }
    return [(speed, timed.speed), (allocated, try allocations { try checked(1) })]
  }

  // MARK: - W3

  func getGroups() -> [Group] {
    [
      getGroup(1_000, .getsTogether, .togetherAllocations),
      getGroup(1, .getsAlone, .aloneAllocations),
    ]
  }

  private func getGroup(_ together: Int, _ speed: Metric, _ allocated: Metric) -> Group {
    var subjects = [
      Subject(.c) { [self] in
        let store = try CStore(lmdb)
        return try get(.c, speed, allocated) {
          try store.get(context.documents, at: $0, together: together)
        }
      },
      Subject(.lmdb) { [self] in
        let store = try ModuleStore(lmdb)
        let found = try get(.lmdb, speed, allocated) {
          try store.get(context.documents, at: $0, together: together)
        }
        try store.close()
        return found
      },
    ]
    for engine in [Engine.sqliteFull, .sqliteNormal] {
      subjects.append(
        Subject(engine) { [self] in
          let store = try SQLiteStore(sqlite, engine)
          return try get(engine, speed, allocated) {
            try store.get(context.documents, at: $0, together: together)
          }
        })
    }
    return Group(.get, speed.name, pairedRounds: 31, subjects)
  }

  private func get(
    _ engine: Engine, _ speed: Metric, _ allocated: Metric, _ pass: ([UInt32]) throws -> Pass
  ) throws -> [(Metric, Double)] {
    func checked() throws -> Pass {
      try pass(indexes).verified(
        engine, "W3", operations: indexes.count, digest: expectedGets)
    }
    _ = try checked()
    let timed = try checked()
    guard canCountAllocations else { return [(speed, timed.speed)] }
    return [(speed, timed.speed), (allocated, try allocations { try checked() })]
  }
}
