import Measuring
import Testing

@Suite("The bars that the module has to reach")
struct BarTests {
  static let table: [(Workload, Metric, [(Bar.Measure, Double)])] = [
    (.applyPages, .ordered, [(c(.ordered), 0.95), (sqlite(.ordered), 2.2)]),
    (.applyPages, .shuffled, [(c(.shuffled), 0.95), (sqlite(.shuffled), 2.7)]),
    (
      .scan, .prefetchedScan,
      [(c(.prefetchedScan), 0.95), (c(.plainScan), 2), (sqlite(.plainScan), 3.3)]
    ),
    (.scan, .plainScan, [(c(.plainScan), 0.95), (sqlite(.plainScan), 1)]),
    (.scan, .scanAllocations, [(.atMost, 0)]),
    (.scan, .prefetchedScanAllocations, [(.atMost, 0)]),
    (.get, .getsTogether, [(c(.getsTogether), 0.95), (sqlite(.getsTogether), 1.9)]),
    (.get, .getsAlone, [(c(.getsAlone), 0.9), (sqlite(.getsAlone), 5)]),
    (.get, .togetherAllocations, [(.atMost, 0)]),
    (.get, .aloneAllocations, [(.atMost, 0)]),
    (.durableWrite, .writes(callers: 1), [(c(.writes(callers: 1)), 0.95)]),
    (.durableWrite, .oneTask, []),
    (
      .durableWrite, .writes(callers: 8),
      [(c(.writes(callers: 8)), 0.9), (sqlite(.writes(callers: 8)), 1.8)]
    ),
    (.durableWrite, .writes(callers: 64), [(c(.writes(callers: 64)), 0.9)]),
    (.durableWrite, .writes(callers: 512), [(c(.writes(callers: 512)), 0.9)]),
    (.durableWrite, .grouping(callers: 64), [(.atLeast, 24)]),
    (.durableWrite, .grouping(callers: 8), []),
    (.manyStores, .visit, [(c(.visit), 0.87), (sqlite(.visit), 2.6)]),
    (.manyStores, .resident, [(c(.resident), 1 / 1.1), (sqlite(.resident), 1 / 0.8)]),
    (.readBesideWriter, .readers, [(c(.readers), 0.95), (sqlite(.readers), 1)]),
    (.readBesideWriter, .writer, [(c(.writer), 0.95), (sqlite(.writer), 1)]),
    (.stagedPages, .staging, [(c(.staging), 0.95)]),
    (.stagedPages, .stagedScan, [(c(.stagedScan), 0.95)]),
  ]

  private static func c(_ metric: Metric) -> Bar.Measure { .ratio(to: .c, metric) }
  private static func sqlite(_ metric: Metric) -> Bar.Measure { .ratio(to: .sqliteFull, metric) }

  @Test("are those of the table", arguments: table.indices)
  func bars(row: Int) {
    let (workload, metric, expected) = Self.table[row]
    let bars = Bar.bars(workload, .lmdb, metric)
    #expect(bars.map(\.measure) == expected.map(\.0))
    #expect(bars.map(\.limit) == expected.map(\.1))
    for engine in Engine.allCases where engine != .lmdb {
      #expect(Bar.bars(workload, engine, metric).isEmpty)
    }
  }
}
