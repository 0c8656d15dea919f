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
    (.readBack, .readBack, [(c(.readBack), 5)]),
    (.readBack, .filtering, []),
    (.replay, .replay, [(c(.replayParts), 0.5)]),
    (.replay, .replayMemory, [(.within, 67_108_864)]),
    (.push, .push, [(c(.pushParts), 1 / 1.5)]),
    (.managedApply, .applyOrdered, [(c(.applyOrdered), 0.9)]),
    (.managedApply, .applyShuffled, [(c(.applyShuffled), 2)]),
    (.managedApply, .applyUpdates, [(c(.applyUpdates), 2)]),
    (.managedApply, .updateGrowth, [(.within, 1.5)]),
    (.managedApply, .decoding, []),
    (.enqueue, .writes(callers: 1), [(lmdb(.writes(callers: 1)), 0.9)]),
    (.enqueue, .writes(callers: 8), [(lmdb(.writes(callers: 8)), 0.9)]),
    (.enqueue, .writes(callers: 64), [(lmdb(.writes(callers: 64)), 0.9)]),
    (.enqueue, .grouping(callers: 64), []),
    (.enqueue, .batch, [(lmdb(.pages), 0.8)]),
    (.enqueue, .enqueueCommits, [(.atMost, 1)]),
    (.enqueue, .batchCommits, [(.atMost, 1)]),
    (.push, .pushCommits, [(.within, 1.1)]),
    (.switching, .switchCommits, [(.atMost, 0)]),
    (.enqueue, .enqueueBytes(deep: true), [(noMore(.enqueueBytes(deep: true)), 1)]),
    (.enqueue, .enqueueFlushes(deep: false), [(noMore(.enqueueFlushes(deep: false)), 1)]),
    (.switching, .switchClosed, [(c(.switchClosed), 0.5)]),
    (.switching, .switchOpen, [(.within, 5)]),
    (.switching, .lookupMany, [(.ratio(to: .holdfast, .lookupFew), 1 / 1.5)]),
  ]

  private static func lmdb(_ metric: Metric) -> Bar.Measure { .ratio(to: .lmdb, metric) }
  private static func noMore(_ metric: Metric) -> Bar.Measure { .noMore(than: .c, metric) }
  private static func c(_ metric: Metric) -> Bar.Measure { .ratio(to: .c, metric) }
  private static func sqlite(_ metric: Metric) -> Bar.Measure { .ratio(to: .sqliteFull, metric) }

  @Test("are those of the table", arguments: table.indices)
  func bars(row: Int) {
    let (workload, metric, expected) = Self.table[row]
    let bars = Bar.bars(workload, workload.judged, metric)
    #expect(bars.map(\.measure) == expected.map(\.0))
    #expect(bars.map(\.limit) == expected.map(\.1))
    for engine in Engine.allCases where engine != workload.judged {
      #expect(Bar.bars(workload, engine, metric).isEmpty)
    }
  }

  @Test("gate by what is counted, never by what is timed")
  func counts() {
    for (workload, metric, _) in Self.table {
      for bar in Bar.bars(workload, workload.judged, metric) {
        switch bar.measure {
        case .atMost, .noMore: #expect(bar.isCount)
        case .ratio, .atLeast, .within: #expect(!bar.isCount)
        }
      }
    }
  }
}
