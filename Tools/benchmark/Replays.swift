import CBench
import Foundation
import HubClient
import HubProtocol
import Measuring
import ProfileStore
import ProfileSync

/// R3: a whole replay from `hubd` over the loopback into an area that keeps the records; and its parts,
/// each by itself in the same round.
///
/// The hub has the records in an order that is not that of their IDs, as hubs do.
final class Replays {
  private let context: Context
  private let directory: String
  private let process: HubProcess
  private let connection: HubConnection
  private let token: String
  /// The requests that bring the pages.
  private let pages: [Wiretap.Exchange]
  /// The same pages in memory.
  private let hub: PreparedHub
  private let nothing: PreparedHub.Pages
  private let prepared: PreparedHub.Pages

  init(_ context: Context) throws {
    self.context = context
    directory = try context.freshDirectory()
    process = try HubProcess(in: directory)
    connection = try HubConnection(url: process.url)
    token = try process.token(for: "reader")
    try Self.fill(context, token, connection)
    let tap = Wiretap(connection)
    let tapped = try context.freshDirectory()
    let store = try SignedInStore.make(in: tapped, token: token, transport: tap)
    _ = try store.pass(replaying: true)
    pages = tap.take().filter { $0.path == "/v1/changes" && $0.request.target.contains("until=") }
    try context.remove(tapped)
    hub = PreparedHub(account: try AccountID("reader"))
    nothing = hub.prepare(context.documents, context.names, in: [], after: 0)
    prepared = hub.prepare(context.documents, context.names, in: context.shuffled, after: 0)
  }

  /// Another device sends all records.
  private static func fill(
    _ context: Context, _ token: String, _ connection: HubConnection
  ) throws {
    let directory = try context.freshDirectory()
    let store = try SignedInStore.make(in: directory, token: token, transport: connection)
    let edits = Edits(context, context.shuffled)
    try blocking {
      _ = try await store.profile.enqueue(
        context.shuffled.indices.map { edits.mutation($0) }, account: store.account)
      let report = try await store.profile.synchronize(account: store.account)
      guard report.acknowledged == context.documents.count else {
        throw Disagreement(
          sentence: "holdfast: the hub took \(report.acknowledged) of the records")
      }
    }
    try context.remove(directory)
  }

  func remove() throws {
    connection.close()
    process.end()
    try context.remove(directory)
  }

  func groups() -> [Group] {
    [
      Group(
        .replay, Metric.replay.name, pairedRounds: 7, [Subject(together: { [self] in try round() })]
      ),
      Group(
        .replay, Metric.replayMemory.name, pairedRounds: 3,
        [Subject(.holdfast) { [self] in [(.replayMemory, try memory())] }]),
    ]
  }

  // MARK: - A round

  private func round() throws -> [Reading] {
    let bare = try BareHTTP.repeating(pages, headers: pages[0].request.headers) { [process] in
      process.url.absoluteString + $0.request.target
    }
    let staged = try stage()
    let applied = try apply()
    let whole = try replay()
    let sum = bare.seconds + staged.seconds + applied.seconds
    return [
      Reading(.c, .replayFetch, bare.seconds),
      Reading(.c, .replayStage, staged.seconds),
      Reading(.holdfast, .replayApply, applied.seconds),
      Reading(.c, .replayParts, sum),
      Reading(.holdfast, .replay, whole.seconds),
      Reading(.holdfast, .replayCommits, Double(whole.commits)),
    ]
  }

  private func stage() throws -> Pass {
    let staging = try context.freshDirectory()
    let store = try CStore(staging, isSynced: false)
    let pass = try store.stage(context.documents)
      .verified(.c, "R3", operations: context.documents.count, digest: 0)
    try context.remove(staging)
    return pass
  }

  /// R2 with the same pages.
  private func apply() throws -> Pass {
    let applying = try context.freshDirectory()
    hub.serve(nothing)
    let store = try SignedInStore.make(in: applying, hub)
    _ = try store.pass()
    hub.serve(prepared)
    let pass = try store.pass().verified(
      .holdfast, "R3", operations: context.documents.count, digest: 0)
    try context.remove(applying)
    return pass
  }

  private func replay() throws -> Pass {
    let replaying = try context.freshDirectory()
    let store = try SignedInStore.make(in: replaying, token: token, transport: connection)
    let pass = try store.pass(replaying: true).verified(
      .holdfast, "R3", operations: context.documents.count, digest: 0)
    _ = try store.seen().verified(
      .holdfast, "R3", operations: context.documents.count, digest: context.digest)
    try context.remove(replaying)
    return pass
  }

  // MARK: - Memory

  private func memory() throws -> Double {
    let replaying = try context.freshDirectory()
    let bytes = try ReplayedCommand.measure(
      hub: process.url, token: token, directory: replaying, count: context.documents.count)
    try context.remove(replaying)
    return bytes
  }
}
