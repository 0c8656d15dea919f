import CBench
import Foundation
import HubProtocol
import Measuring
import ProfileStore
import ProfileSync

/// R1: the staged records of a leg, read back in batches of 500 through an apply closure that touches
/// every byte, as W2 does. C scans the same records, one small value each.
///
/// Neither side's pages are in the process's map before: C opens its file anew, a leg is staged anew.
/// What a pass does besides (leaving out what is older than known, and asking which records have an
/// edit that waits) is measured apart, R1b.
final class ReadBack {
  private let context: Context
  private let small: String
  private let staged: String
  private let directory: String
  private let hub: PreparedHub
  private let store: SignedInStore
  private let changes: [[IncomingChange]]

  init(_ context: Context) throws {
    self.context = context
    small = try context.freshDirectory()
    staged = try context.freshDirectory()
    directory = try context.freshDirectory()
    do { _ = try CStore(small).apply(context.documents, in: context.inOrder) }
    do { _ = try CStore(staged).stage(context.documents) }
    // An area that knows every record, and has one edit that waits.
    hub = PreparedHub(account: try AccountID("reader"))
    hub.serve(hub.prepare(context.documents, context.names, in: context.inOrder, after: 0))
    store = try SignedInStore.make(in: directory, hub, keeping: .app)
    let (store, edits) = (store, Edits(context, context.inOrder.prefix(1)))
    try blocking {
      try await store.profile.synchronize(account: store.account) { batch in
        _ = try batch.changes(localOwner: store.account.bytes)
      }
      try await store.profile.enqueue(edits.mutation(0), account: store.account)
    }
    changes = stride(from: 0, to: context.documents.count, by: Context.page).map { begin in
      (begin..<min(begin + Context.page, context.documents.count)).map { index in
        IncomingChange(
          record: RecordID(uncheckedBytes: context.names[index]), version: UInt64(index) + 1,
          payload: Data(context.documents.value(index)), isDeleted: false)
      }
    }
  }

  func remove() throws {
    for path in [small, staged, directory] { try context.remove(path) }
  }

  func group() -> Group {
    Group(
      .readBack, Workload.readBack.title, pairedRounds: 15,
      [
        Subject(.c) { [self] in [(.readBack, try scanSmall())] },
        Subject(.c) { [self] in [(.readBackPages, try scanPages())] },
        Subject(.holdfast) { [self] in try readBack() },
      ])
  }

  private func check(_ engine: Engine, _ pass: Pass) throws -> Double {
    try pass.verified(
      engine, "R1", operations: context.documents.count, digest: context.digest
    ).speed
  }

  private func scanSmall() throws -> Double {
    try check(.c, CStore(small).scan(passes: 1, prefetch: false))
  }

  private func scanPages() throws -> Double {
    try check(.c, CStore(staged).scanStaged(passes: 1))
  }

  private func readBack() throws -> [(Metric, Double)] {
    let (filtering, flagging, reading) = try blocking { [store, changes, epoch = hub.epoch] in
      try await Self.stageAndRead(changes, store, epoch)
    }
    return [
      (.readBack, try check(.holdfast, reading)),
      (.filtering, filtering.speed), (.editFlags, flagging.speed),
    ]
  }

  private static func stageAndRead(
    _ changes: [[IncomingChange]], _ store: SignedInStore, _ epoch: UUID
  ) async throws -> (filtering: Pass, flagging: Pass, reading: Pass) {
    let count = changes.reduce(0) { $0 + $1.count }
    let area = store.profile.area
    let owner = store.account.bytes
    let scratch = try Scratch(
      area: area, account: owner, epoch: epoch, until: UInt64(count),
      place: 0, byteCountMax: 1 << 30)
    var (filtering, flagging, reading) = (Pass(), Pass(), Pass())
    for page in changes.map({ ChangePage($0) }) {
      let start = cbench_now()
      try area.mark(page, epoch: epoch, lineage: [])
      filtering.nanoseconds += cbench_now() - start
      filtering.operations += page.count
      try await scratch.stage(page)
    }
    try await scratch.finish()

    var digest: UInt64 = 0
    let apply: (borrowing ChangeBatch) async throws -> Void = { batch in
      let changes = try batch.changes(localOwner: owner)
      var seen: UInt64 = 0
      changes.forEach { seen ^= touch($0.payload) }
      digest ^= seen
    }
    let start = cbench_now()
    for number in 0..<scratch.pageCount {
      let contents = BatchContents([try scratch.page(number)])
      let batch = ChangeBatch(
        position: BatchPosition(UInt64(number) + 1), isReplay: true, owner: owner,
        contents: contents, area: area)
      try await apply(batch)
      reading.operations += contents.count
    }
    reading.nanoseconds = cbench_now() - start
    reading.digest = digest

    for number in 0..<scratch.pageCount {
      let page = try scratch.page(number)
      let start = cbench_now()
      let edits = try area.localEdits(in: [page])
      flagging.nanoseconds += cbench_now() - start
      flagging.operations += edits?.count ?? 0
    }
    _ = try flagging.verified(
      .holdfast, "R1b", operations: count, digest: 0)
    try scratch.remove()
    return (filtering, flagging, reading)
  }
}
