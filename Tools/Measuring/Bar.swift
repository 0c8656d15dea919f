/// What the module has to reach in one row: a ratio to another row of the same run, or a count.
package struct Bar: Hashable, Sendable {
  /// What is compared.
  package enum Measure: Hashable, Sendable {
    /// Speed over the speed of another engine, for costs turned round: higher is better.
    case ratio(to: Engine, Metric)
    /// The row's own number, at least.
    case atLeast
    /// The row's own number, a count, at most and in every round.
    case atMost
    /// The row's own number, a time or a size, at most.
    case within
    /// The row's own number, a count, at most that of another engine, in every round.
    case noMore(than: Engine, Metric)
  }

  package let measure: Measure
  package let limit: Double

  /// Equal code differs by some percent here, so a bar near 1 is judged by the upper quartile of
  /// paired rounds, and needs more of them.
  package var isNearOne: Bool {
    if case .ratio = measure { return limit >= 0.85 && limit <= 1.1 }
    return false
  }

  /// Whether the outcome depends on what the program does and not on how fast the machine is.
  package var isCount: Bool {
    switch measure {
    case .atMost, .noMore: true
    case .ratio, .atLeast, .within: false
    }
  }

  init(measure: Measure, limit: Double) {
    self.measure = measure
    self.limit = limit
  }

  /// The bars of a row.
  package static func bars(
    _ workload: Workload, _ engine: Engine, _ metric: Metric
  ) -> [Bar] {
    guard engine == workload.judged else { return [] }
    return (table[workload] ?? syncTable[workload])?[metric] ?? []
  }

  static func ratio(_ limit: Double, _ engine: Engine, _ metric: Metric) -> Bar {
    Bar(measure: .ratio(to: engine, metric), limit: limit)
  }

  private static func both(_ metric: Metric, c: Double, sqlite: Double) -> [Bar] {
    [ratio(c, .c, metric), ratio(sqlite, .sqliteFull, metric)]
  }

  private static let none = [Bar(measure: .atMost, limit: 0)]

  private static let table: [Workload: [Metric: [Bar]]] = [
    .applyPages: [
      .ordered: both(.ordered, c: 0.95, sqlite: 2.2),
      .shuffled: both(.shuffled, c: 0.95, sqlite: 2.7),
    ],
    .scan: [
      .plainScan: both(.plainScan, c: 0.95, sqlite: 1),
      .prefetchedScan: [
        ratio(0.95, .c, .prefetchedScan), ratio(2.0, .c, .plainScan),
        ratio(3.3, .sqliteFull, .plainScan),
      ],
      .scanAllocations: none,
      .prefetchedScanAllocations: none,
    ],
    .get: [
      .getsTogether: both(.getsTogether, c: 0.95, sqlite: 1.9),
      .getsAlone: both(.getsAlone, c: 0.90, sqlite: 5),
      .togetherAllocations: none,
      .aloneAllocations: none,
    ],
    .durableWrite: [
      .writes(callers: 1): [ratio(0.95, .c, .writes(callers: 1))],
      .writes(callers: 8): both(.writes(callers: 8), c: 0.9, sqlite: 1.8),
      .writes(callers: 64): [ratio(0.9, .c, .writes(callers: 64))],
      .writes(callers: 512): [ratio(0.9, .c, .writes(callers: 512))],
      .grouping(callers: 64): [Bar(measure: .atLeast, limit: 24)],
    ],
    .manyStores: [
      .visit: both(.visit, c: 0.87, sqlite: 2.6),
      // At most 1.1 times C's memory, and 0.8 of SQLite's.
      .resident: both(.resident, c: 1 / 1.1, sqlite: 1 / 0.8),
    ],
    .readBesideWriter: [
      .readers: both(.readers, c: 0.95, sqlite: 1),
      .writer: both(.writer, c: 0.95, sqlite: 1),
    ],
    .stagedPages: [
      .staging: [ratio(0.95, .c, .staging)],
      .stagedScan: [ratio(0.95, .c, .stagedScan)],
    ],
  ]
}
