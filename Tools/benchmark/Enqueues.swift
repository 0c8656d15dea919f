import CBench
import Foundation
import HubProtocol
import LMDB
import Measuring
import ProfileStore

/// R4: mutations enqueued durably, beside W4's and W1's writes of the same records in the same rounds.
struct Enqueues {
  static let callers = [1, 8, 64]
  static let countByDefault = 10_000

  let context: Context

  /// As many as the bars are meant for, where there are so many records.
  private var count: Int { min(Self.countByDefault, context.documents.count) }

  func groups() throws -> [Group] {
    let writes = DurableWrites(context: context)
    let rate = try writes.ratePerSecond()
    let concurrent = Self.callers.map { callers in
      let count = min(count, writes.count(callers: callers, ratePerSecond: rate))
      return Group(
        .enqueue, "\(callers) callers, \(count) mutations", pairedRounds: 11,
        [
          Subject(.c) { try writes.c(callers, count) },
          Subject(.lmdb) { try writes.module(callers, count) },
          Subject(.holdfast) { try enqueue(callers, count) },
        ]
          // The module can be called by a thread that blocks; an enqueue is awaited always.
          + (callers == 1 ? [Subject(.lmdb) { try writes.oneTask(count) }] : []))
    }
    return concurrent + [batchGroup(), EnqueueRows(context: context, depth: count).group()]
  }

  private func open() throws -> (directory: String, store: SignedInStore) {
    let directory = try context.freshDirectory()
    let store = try SignedInStore.make(
      in: directory, SignedInStore.account(try AccountID("writer"), hub: UUID()))
    return (directory, store)
  }

  /// Every mutation waits, and every record shows it.
  private func check(
    _ store: SignedInStore, _ written: Pass, _ indexes: some Collection<UInt32>
  ) throws -> Pass {
    let waiting = try store.profile.pendingSummary().count
    var seen = try store.seen()
    if waiting != indexes.count { seen.operations = waiting }
    _ = try seen.verified(
      .holdfast, "R4", operations: indexes.count, digest: context.digest(of: indexes))
    return written
  }

  // MARK: - Callers

  /// From as many tasks, which each wait for their mutation.
  private func enqueue(_ callers: Int, _ count: Int) throws -> [(Metric, Double)] {
    let (directory, store) = try open()
    let edits = Edits(context, context.inOrder.prefix(count))
    let commits = store.commitCount
    let start = cbench_now()
    try runBlocking {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<callers {
          group.addTask {
            for index in stride(from: number, to: count, by: callers) {
              try await store.profile.enqueue(edits.mutation(index), account: store.account)
            }
          }
        }
        try await group.waitForAll()
      }
    }
    var pass = Pass()
    pass.nanoseconds = cbench_now() - start
    pass.operations = count
    pass.commits = Int(store.commitCount - commits)
    pass = try check(store, pass, context.inOrder.prefix(count))
    try context.remove(directory)
    let numbers = DurableWrites.numbers(pass, callers)
    guard callers == 1 else { return numbers }
    return numbers + [(.enqueueCommits, Double(pass.commits) / Double(count))]
  }

  // MARK: - One batch

  private func batchGroup() -> Group {
    let inOrder = Array(context.inOrder.prefix(count))
    var random = SplitMix64(seed: Documents.seed + 4)
    let shuffled = random.permutation(of: count)
    return Group(
      .enqueue, "one batch of \(count) mutations", pairedRounds: 15,
      [
        Subject(.c) { try pagesC(inOrder, .pages) },
        Subject(.lmdb) { try pagesModule(inOrder, .pages) },
        Subject(.holdfast) { try batch(inOrder, .batch) },
        Subject(.c) { try pagesC(shuffled, .pagesShuffled) },
        Subject(.holdfast) { try batch(shuffled, .batchShuffled) },
      ])
  }

  private func pagesC(_ order: [UInt32], _ metric: Metric) throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try CStore(directory)
    let pass = try store.apply(context.documents, in: order)
      .verified(.c, "R4", operations: order.count, digest: 0)
    try context.remove(directory)
    return [(metric, pass.speed)]
  }

  private func pagesModule(_ order: [UInt32], _ metric: Metric) throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try ModuleStore(directory)
    let pass = try store.apply(context.documents, in: order)
      .verified(.lmdb, "R4", operations: order.count, digest: 0)
    try store.close()
    try context.remove(directory)
    return [(metric, pass.speed)]
  }

  private func batch(_ order: [UInt32], _ metric: Metric) throws -> [(Metric, Double)] {
    let (directory, store) = try open()
    let edits = Edits(context, order)
    let mutations = order.indices.map { edits.mutation($0) }
    var pass = Pass()
    let commits = store.commitCount
    let start = cbench_now()
    pass.operations = try blocking {
      try await store.profile.enqueue(mutations, account: store.account).count
    }
    pass.nanoseconds = cbench_now() - start
    pass.commits = Int(store.commitCount - commits)
    pass = try check(store, pass, order)
    try context.remove(directory)
    return [(metric, pass.speed), (.batchCommits, Double(pass.commits))]
  }
}

/// What an app has in hand before it enqueues: IDs and payloads.
struct Edits: Sendable {
  private let records: [RecordID]
  private let payloads: [Data]

  init(_ context: Context, _ indexes: some Collection<UInt32>) {
    records = indexes.map { RecordID(uncheckedBytes: context.names[Int($0)]) }
    payloads = indexes.map { Data(context.documents.value(Int($0))) }
  }

  /// The edit at a place of the indexes, with a UUID of its own.
  func mutation(_ place: Int) -> Mutation { .put(records[place], payloads[place]) }
}
