import CBench
import Foundation
import HubProtocol
import Measuring
import ProfileStore
import ProfileSync

/// R2: pages that were pulled become records, metadata and cursor, each page durable before the next.
///
/// An ordinary pull: the area has finished its first scan, of an empty hub, before it is measured.
final class ManagedApply {
  private let context: Context
  private let hub: PreparedHub
  private let nothing: PreparedHub.Pages
  private let ordered: PreparedHub.Pages
  private let shuffled: PreparedHub.Pages
  private let updates: PreparedHub.Pages
  private let updateOrder: [UInt32]

  init(_ context: Context) throws {
    self.context = context
    hub = PreparedHub(account: try AccountID("reader"))
    let count = context.documents.count
    var random = SplitMix64(seed: Documents.seed + 3)
    updateOrder = random.permutation(of: count)
    nothing = hub.prepare(context.documents, context.names, in: [], after: 0)
    ordered = hub.prepare(context.documents, context.names, in: context.inOrder, after: 0)
    shuffled = hub.prepare(context.documents, context.names, in: context.shuffled, after: 0)
    updates = hub.prepare(
      context.swapped, context.names, in: updateOrder, after: UInt64(count))
  }

  func groups() -> [Group] {
    [
      Group(
        .managedApply, Metric.applyOrdered.name, pairedRounds: 15,
        [
          Subject(.c) { [self] in try orderedC() },
          Subject(.holdfast) { [self] in try orderedPass() },
        ]),
      Group(
        .managedApply, Metric.applyShuffled.name, pairedRounds: 7,
        [
          Subject(.c) { [self] in try shuffledC() },
          Subject(.holdfast) { [self] in try shuffledPass() },
        ]),
    ]
  }

  // MARK: - C

  private func orderedC() throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try CStore(directory)
    let applied = try requireApplied(
      .c, store.apply(context.documents, named: context.names, in: context.inOrder))
    _ = try requireSeen(.c, store.scan(passes: 1, prefetch: false))
    try context.remove(directory)
    return [(.applyOrdered, applied.speed), (.applyCommits, perPage(applied))]
  }

  private func shuffledC() throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try CStore(directory)
    let first = try requireApplied(
      .c, store.apply(context.documents, named: context.names, in: context.shuffled))
    let before = try FileSize(directory + "/data.mdb")
    let second = try requireApplied(
      .c, store.apply(context.swapped, named: context.names, in: updateOrder))
    let after = try FileSize(directory + "/data.mdb")
    _ = try requireSeen(.c, store.scan(passes: 1, prefetch: false))
    try context.remove(directory)
    return [(.applyShuffled, first.speed), (.applyUpdates, second.speed)] + growth(before, after)
  }

  // MARK: - Holdfast

  private func orderedPass() throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try empty(in: directory)
    hub.serve(ordered)
    let decoded = try decodeBodies()
    let applied = try requireApplied(.holdfast, store.pass())
    _ = try requireSeen(.holdfast, store.seen())
    try context.remove(directory)
    return [
      (.applyOrdered, applied.speed), (.decoding, decoded.speed),
      (.applyCommits, perPage(applied)),
    ]
  }

  private func shuffledPass() throws -> [(Metric, Double)] {
    let directory = try context.freshDirectory()
    let store = try empty(in: directory)
    hub.serve(shuffled)
    let first = try requireApplied(.holdfast, store.pass())
    let before = try FileSize(store.dataFile)
    hub.serve(updates)
    let second = try requireApplied(.holdfast, store.pass())
    let after = try FileSize(store.dataFile)
    _ = try requireSeen(.holdfast, store.seen())
    try context.remove(directory)
    return [(.applyShuffled, first.speed), (.applyUpdates, second.speed)] + growth(before, after)
  }

  /// A store whose first scan is over.
  private func empty(in directory: String) throws -> SignedInStore {
    hub.serve(nothing)
    let store = try SignedInStore.make(in: directory, hub)
    _ = try store.pass().verified(.holdfast, "R2, an empty hub", operations: 0, digest: 0)
    return store
  }

  /// What a pass spends on reading the bodies, by itself.
  private func decodeBodies() throws -> Pass {
    var pass = Pass()
    let bodies = hub.bodies
    let start = cbench_now()
    for body in bodies {
      let page = PulledPage(try ChangesOutline(decoding: body, as: .cbor))
      pass.operations += page.parts.reduce(0) { $0 + $1.count }
    }
    pass.nanoseconds = cbench_now() - start
    return pass
  }

  // MARK: - Numbers

  private func requireApplied(_ engine: Engine, _ pass: Pass) throws -> Pass {
    try pass.verified(engine, "R2", operations: context.documents.count, digest: 0)
  }

  private func requireSeen(_ engine: Engine, _ pass: Pass) throws -> Pass {
    try pass.verified(
      engine, "R2", operations: context.documents.count, digest: context.digest)
  }

  private func perPage(_ pass: Pass) -> Double {
    let pages = (context.documents.count + Context.page - 1) / Context.page
    return Double(pass.commits) / Double(pages)
  }

  private func growth(_ before: FileSize, _ after: FileSize) -> [(Metric, Double)] {
    let live = Double(context.documents.values.count + context.names.bytes.count)
    return [
      (.updateGrowth, Double(after.diskByteCount - before.diskByteCount) / live),
      (.updatedSize, Double(after.diskByteCount) / live),
    ]
  }
}

/// What a file takes on the disk.
struct FileSize {
  let diskByteCount: Int

  init(_ path: String) throws {
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw BenchFailure(sentence: "\(path) can't be looked at")
    }
    // stat(2): in units of 512 bytes.
    diskByteCount = Int(status.st_blocks) * 512
  }
}
