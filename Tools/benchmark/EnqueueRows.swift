import CBench
import Foundation
import HubProtocol
import Measuring
import ProfileStore

/// What one mutation of one caller costs the disk, at a depth of the outbox; and C putting and deleting
/// the same rows in as many tables of a copy of the same file, one durable transaction for each.
struct EnqueueRows {
  private static let steps = 20
  /// Behind a load the first small writes make room in the file for many that follow them.
  private static let settling = 2

  let context: Context
  let depth: Int

  func group() -> Group {
    Group(
      .enqueue, "what a mutation writes", pairedRounds: 1,
      [
        Subject(together: { try measure(isDeep: false) }),
        Subject(together: { try measure(isDeep: true) }),
      ])
  }

  private func measure(isDeep: Bool) throws -> [Reading] {
    guard cbench_can_count_writes() != 0 else { return [] }
    let directory = try context.freshDirectory()
    let copies = try context.freshDirectory()
    let store = try SignedInStore.make(
      in: directory, SignedInStore.account(try AccountID("writer"), hub: UUID()))
    var random = SplitMix64(seed: Documents.seed + 5)
    let order = random.permutation(of: context.documents.count)
    let before = isDeep ? max(Self.settling, depth - Self.steps) : 0
    let edits = Edits(context, order.prefix(before + Self.steps))
    if before > 0 {
      let waiting = (Self.settling..<before).map { edits.mutation($0) }
      _ = try blocking { try await store.profile.enqueue(waiting, account: store.account) }
      for place in 0..<Self.settling {
        let mutation = edits.mutation(place)
        _ = try blocking { try await store.profile.enqueue(mutation, account: store.account) }
      }
    }
    let (writes, rows) = try enqueue(edits, from: before, store, copies)
    var same = cbench_writes()
    let pass = try Pass(
      rows.perform(in: copies + "/first", counting: &same), .c, message: cbench_lmdb_message)
    _ = try pass.verified(.c, "R4", operations: rows.count, digest: 0)
    try context.remove(directory)
    try context.remove(copies)
    func each(_ number: some BinaryInteger) -> Double { Double(number) / Double(Self.steps) }
    return [
      Reading(.c, .enqueueBytes(deep: isDeep), each(same.bytes)),
      Reading(.holdfast, .enqueueBytes(deep: isDeep), each(writes.bytes)),
      Reading(.c, .enqueueFlushes(deep: isDeep), each(same.flushes)),
      Reading(.holdfast, .enqueueFlushes(deep: isDeep), each(writes.flushes)),
      Reading(.holdfast, .enqueueRows(deep: isDeep), each(rows.count)),
      Reading(.holdfast, .enqueueTables(deep: isDeep), each(rows.tableCount)),
    ]
  }

  /// Enqueues one after another. The file is copied in between, while nobody writes.
  private func enqueue(
    _ edits: Edits, from first: Int, _ store: SignedInStore, _ copies: String
  ) throws -> (cbench_writes, RowSteps) {
    var total = cbench_writes()
    let rows = RowSteps()
    try DataCopy.make(of: store.dataFile, in: copies + "/first")
    var last = copies + "/first"
    for step in 0..<Self.steps {
      let mutation = edits.mutation(first + step)
      cbench_start_counting_writes()
      _ = try blocking { try await store.profile.enqueue(mutation, account: store.account) }
      let writes = cbench_stop_counting_writes()
      total.bytes += writes.bytes
      total.flushes += writes.flushes
      let next = copies + "/\(step)"
      try DataCopy.make(of: store.dataFile, in: next)
      try rows.note(from: last, to: next)
      if step > 0 { try FileManager.default.removeItem(atPath: last) }
      last = next
    }
    return (total, rows)
  }
}
