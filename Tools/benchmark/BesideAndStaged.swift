import Measuring

/// W6: two readers beside a writer; and pages of records stored as one value each.
struct BesideAndStaged {
  private static let nanoseconds: UInt64 = 300_000_000
  /// Odd, so that the XOR over all passes is that of one.
  private static let stagedScans = 21

  let context: Context

  // MARK: - W6

  func besideGroup() -> Group {
    Group(
      .readBesideWriter, Workload.readBesideWriter.title, pairedRounds: 21,
      Engine.stores.map { engine in
        Subject(engine) { try beside(engine) }
      })
  }

  private func beside(_ engine: Engine) throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let pass: Pass
    switch engine {
    case .c:
      let store = try CStore(directory)
      _ = try store.apply(context.documents, in: context.inOrder)
      pass = try store.beside(context, nanoseconds: Self.nanoseconds)
    case .lmdb:
      do { _ = try CStore(directory).apply(context.documents, in: context.inOrder) }
      let store = try ModuleStore(directory)
      pass = try store.beside(context, nanoseconds: Self.nanoseconds)
      try store.close()
    case .sqliteFull, .sqliteNormal:
      do { _ = try SQLiteStore(directory, engine).apply(context.documents, in: context.inOrder) }
      pass = try SQLiteStore.beside(directory, engine, context, nanoseconds: Self.nanoseconds)
    case .holdfast: preconditionFailure("profiles are measured elsewhere")
    }
    try context.remove(directory)
    let readers = Double(pass.readerOperations) * 1e9 / Double(Self.nanoseconds)
    return [(.readers, readers), (.writer, pass.speed)]
  }

  // MARK: - Staged pages

  func stagedGroup() -> Group {
    Group(
      .stagedPages, Workload.stagedPages.title, pairedRounds: 21,
      [Subject(.c) { try stageC() }, Subject(.lmdb) { try stageModule() }])
  }

  private func stageC() throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try CStore(directory)
    let staged = try store.stage(context.documents)
    let numbers = try numbers(.c, staged) { try store.scanStaged(passes: $0) }
    try context.remove(directory)
    return numbers
  }

  private func stageModule() throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try StagedModuleStore(directory)
    let staged = try store.stage(context.documents)
    let numbers = try numbers(.lmdb, staged) { try store.scan(passes: $0) }
    try store.close()
    try context.remove(directory)
    return numbers
  }

  private func numbers(
    _ engine: Engine, _ staged: Pass, _ scan: (Int) throws -> Pass
  ) throws -> [(Metric, Double)] {
    let count = context.documents.count
    _ = try staged.verified(engine, "staged", operations: count, digest: 0)
    _ = try scan(1).verified(engine, "staged", operations: count, digest: context.digest)
    let scanned = try scan(Self.stagedScans).verified(
      engine, "staged", operations: Self.stagedScans * count, digest: context.digest)
    return [(.staging, staged.speed), (.stagedScan, scanned.speed)]
  }
}
