import Measuring

/// W4: single records, each durable when its caller goes on.
struct DurableWrites {
  static let callers = [1, 8, 64, 512]

  let context: Context

  func groups() throws -> [Group] {
    let rate = try ratePerSecond()
    return Self.callers.map { callers in
      let count = count(callers: callers, ratePerSecond: rate)
      return Group(
        .durableWrite, "\(callers) callers, \(count) writes", subjects(callers, count))
    }
  }

  /// A disk's flush may take 50 times as long as another's: as many writes are measured as take C
  /// some tenths of a second.
  func ratePerSecond() throws -> Double {
    let directory = try context.freshDirectory()
    let store = try CStore(directory)
    let pass = try store.write(
      context.documents, count: min(200, context.documents.count), callers: 1)
    try context.remove(directory)
    return pass.speed
  }

  func count(callers: Int, ratePerSecond: Double) -> Int {
    let sharing: Double =
      switch callers {
      case 1: 1
      case 8: 2.5
      case 64: 12
      default: 25
      }
    let available = context.documents.count
    let scale = Double(available) / 50_000
    let wanted = Int(ratePerSecond * sharing * 0.35 * min(scale, 1))
    // On a slow disk too each caller has some turns, where there are records for it.
    let fewest = max(available / 250, min(callers * 8, available / 10), callers)
    return min(max(wanted, fewest), 40_000, available)
  }

  private func subjects(_ callers: Int, _ count: Int) -> [Subject] {
    var subjects = [
      Subject(.c) { try c(callers, count) },
      Subject(.lmdb) { try module(callers, count) },
    ]
    if callers == 1 {
      subjects.append(Subject(.lmdb) { try oneTask(count) })
    }
    for engine in [Engine.sqliteFull, .sqliteNormal] {
      subjects.append(
        Subject(engine, isPaired: engine == .sqliteFull && callers <= 8) {
          try sqlite(engine, callers, count)
        })
    }
    return subjects
  }

  private func check(_ engine: Engine, _ written: Pass, _ seen: Pass, _ count: Int) throws -> Pass {
    _ = try seen.verified(
      engine, "W4", operations: count, digest: context.digest(of: context.inOrder.prefix(count)))
    return try written.verified(engine, "W4", operations: count, digest: 0)
  }

  static func numbers(_ pass: Pass, _ callers: Int) -> [(Metric, Double)] {
    let speed = (Metric.writes(callers: callers), pass.speed)
    guard callers > 1, pass.commits > 0 else { return [speed] }
    return [
      speed,
      (.grouping(callers: callers), Double(pass.operations) / Double(pass.commits)),
    ]
  }

  func c(_ callers: Int, _ count: Int) throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try CStore(directory)
    let written = try store.write(context.documents, count: count, callers: callers)
    let pass = try check(.c, written, store.scan(passes: 1, prefetch: false), count)
    try context.remove(directory)
    return Self.numbers(pass, callers)
  }

  /// One caller is a thread that blocks, as C's is; more are tasks.
  func module(_ callers: Int, _ count: Int) throws -> [(Metric, Double)] {
    let pass = try inModule(count) { store in
      callers == 1
        ? try store.writeBlocking(context.documents, count: count)
        : try store.write(context.documents, count: count, tasks: callers)
    }
    return Self.numbers(pass, callers)
  }

  func oneTask(_ count: Int) throws -> [(Metric, Double)] {
    let pass = try inModule(count) { store in
      try store.write(context.documents, count: count, tasks: 1)
    }
    return [(.oneTask, pass.speed)]
  }

  private func inModule(_ count: Int, _ write: (ModuleStore) throws -> Pass) throws -> Pass {
    let directory = try context.freshDirectory()
    let store = try ModuleStore(directory)
    let written = try write(store)
    let pass = try check(.lmdb, written, store.scan(passes: 1, prefetch: false), count)
    try store.close()
    try context.remove(directory)
    return pass
  }

  private func sqlite(
    _ engine: Engine, _ callers: Int, _ count: Int
  ) throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try SQLiteStore(directory, engine)
    let written = try store.write(context.documents, count: count, callers: callers)
    let pass = try check(engine, written, store.scan(passes: 1), count)
    try context.remove(directory)
    return Self.numbers(pass, callers)
  }
}
