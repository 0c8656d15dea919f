import Measuring

/// W1: durable transactions of 500 upserts into an empty store.
struct ApplyPages {
  let context: Context

  func groups() -> [Group] {
    [
      Group(
        .applyPages, "keys in order", pairedRounds: 21, subjects(context.inOrder, .ordered)),
      Group(
        .applyPages, "keys shuffled",
        subjects(context.shuffled, .shuffled) + [
          // SQLite's other layout writes bodies in the order of arrival; it reads more slowly.
          Subject(.sqliteFull) {
            try sqlite(.sqliteFull, context.shuffled, .shuffledByRowID, byRowID: true)
          }
        ]),
    ]
  }

  private func subjects(_ order: [UInt32], _ metric: Metric) -> [Subject] {
    [
      Subject(.c) { try c(order, metric) },
      Subject(.lmdb) { try module(order, metric) },
      Subject(.sqliteFull, isPaired: true) { try sqlite(.sqliteFull, order, metric) },
      Subject(.sqliteNormal) { try sqlite(.sqliteNormal, order, metric) },
    ]
  }

  private func check(_ engine: Engine, _ applied: Pass, _ seen: Pass) throws -> Pass {
    _ = try seen.verified(
      engine, "W1", operations: context.documents.count, digest: context.digest)
    return try applied.verified(engine, "W1", operations: context.documents.count, digest: 0)
  }

  private func c(_ order: [UInt32], _ metric: Metric) throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try CStore(directory)
    let applied = try store.apply(context.documents, in: order)
    let pass = try check(.c, applied, store.scan(passes: 1, prefetch: false))
    try context.remove(directory)
    return [(metric, pass.speed)]
  }

  private func module(_ order: [UInt32], _ metric: Metric) throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try ModuleStore(directory)
    let applied = try store.apply(context.documents, in: order)
    let pass = try check(.lmdb, applied, store.scan(passes: 1, prefetch: false))
    try store.close()
    try context.remove(directory)
    return [(metric, pass.speed)]
  }

  private func sqlite(
    _ engine: Engine, _ order: [UInt32], _ metric: Metric, byRowID: Bool = false
  ) throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try SQLiteStore(directory, engine, byRowID: byRowID)
    let applied = try store.apply(context.documents, in: order)
    let pass = try check(engine, applied, store.scan(passes: 1))
    try context.remove(directory)
    return [(metric, pass.speed)]
  }
}
