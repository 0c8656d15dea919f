extension Bar {
  private static func noMore(_ metric: Metric) -> [Bar] {
    [Bar(measure: .noMore(than: .c, metric), limit: 1)]
  }

  private static func within(_ limit: Double) -> [Bar] { [Bar(measure: .within, limit: limit)] }

  private static func atMost(_ limit: Double) -> [Bar] { [Bar(measure: .atMost, limit: limit)] }

  /// The bars of profiles and their passes.
  static let syncTable: [Workload: [Metric: [Bar]]] = [
    .readBack: [
      .readBack: [ratio(5, .c, .readBack)]
    ],
    .managedApply: [
      .applyOrdered: [ratio(0.9, .c, .applyOrdered)],
      .applyShuffled: [ratio(2, .c, .applyShuffled)],
      .applyUpdates: [ratio(2, .c, .applyUpdates)],
      .updateGrowth: within(1.5),
    ],
    .replay: [
      // At most twice as long as its parts.
      .replay: [ratio(0.5, .c, .replayParts)],
      .replayMemory: within(64 * 1_048_576),
    ],
    .enqueue: [
      .writes(callers: 1): [ratio(0.9, .lmdb, .writes(callers: 1))],
      .writes(callers: 8): [ratio(0.9, .lmdb, .writes(callers: 8))],
      .writes(callers: 64): [ratio(0.9, .lmdb, .writes(callers: 64))],
      .batch: [ratio(0.8, .lmdb, .pages)],
      .enqueueCommits: atMost(1),
      .batchCommits: atMost(1),
      .enqueueBytes(deep: false): noMore(.enqueueBytes(deep: false)),
      .enqueueBytes(deep: true): noMore(.enqueueBytes(deep: true)),
      .enqueueFlushes(deep: false): noMore(.enqueueFlushes(deep: false)),
      .enqueueFlushes(deep: true): noMore(.enqueueFlushes(deep: true)),
    ],
    .push: [
      // At most one and a half times as long as its parts.
      .push: [ratio(1 / 1.5, .c, .pushParts)],
      // One for each batch, and one before the first of a pass.
      .pushCommits: within(1.1),
    ],
    .switching: [
      // At most twice as long as C.
      .switchClosed: [ratio(0.5, .c, .switchClosed)],
      .switchOpen: within(5),
      .switchCommits: atMost(0),
      .lookupMany: [ratio(1 / 1.5, .holdfast, .lookupFew)],
    ],
  ]
}
