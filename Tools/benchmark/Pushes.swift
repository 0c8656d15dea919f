import CBench
import Foundation
import HubClient
import HubProtocol
import Measuring
import ProfileStore
import ProfileSync

/// R5: mutations pushed to `hubd` over the loopback in batches of 500; and its parts, each by itself in
/// the same round: HTTP with the same bytes, C putting the rows that the hub puts, and C deleting
/// those that the client deletes, a durable transaction for each batch.
///
/// It is measured for an app with a store of its own, whose mutations only leave the area; and for one
/// that keeps its records in the area, where each becomes a record: there C also puts what the client puts.
final class Pushes {
  static let countByDefault = 10_000

  private let context: Context
  private let keeping: ProfileRegistry.RecordKeeping
  private let count: Int
  private let directory: String
  private let copies: String
  private let process: HubProcess
  private let connection: HubConnection
  private let echo: EchoServer
  private let heard: [Wiretap.Exchange]
  private let hubRows = RowSteps()
  private let clientRows = RowSteps()
  private var accounts = 0

  init(_ context: Context, keeping: ProfileRegistry.RecordKeeping) throws {
    self.context = context
    self.keeping = keeping
    count = min(Self.countByDefault, context.documents.count)
    directory = try context.freshDirectory()
    copies = try context.freshDirectory()
    process = try HubProcess(in: directory)
    connection = try HubConnection(url: process.url)
    echo = try EchoServer()
    let store = try Self.waiting(
      context, count, try process.token(for: "heard"), connection, keeping)
    let snapshots = Snapshots(of: process.dataFile, store.store.dataFile, in: copies)
    let settled = SettledBatches(store.store)
    let tap = Wiretap(connection) { request in
      // What a batch came to is there when the next one, or the pull, is asked for; but at the client,
      // which settles it meanwhile.
      if request.method == "POST" || request.target.hasPrefix("/v1/changes") {
        try await settled.waitForNext()
        try snapshots.take()
      }
    }
    store.store.registry.connect(to: tap)
    try store.store.pushPass(keeping)
    heard = tap.take().filter { $0.path == "/v1/mutations" }
    for step in 0..<heard.count {
      try hubRows.note(from: snapshots.hub(step), to: snapshots.hub(step + 1))
      try clientRows.note(from: snapshots.client(step), to: snapshots.client(step + 1))
    }
    try snapshots.removeAll(after: 0)
    try context.remove(store.directory)
  }

  func remove() throws {
    connection.close()
    process.end()
    try context.remove(directory)
    try context.remove(copies)
  }

  func group() -> Group {
    Group(
      .push,
      "\(count) mutations, records \(keeping == .area ? "in the area" : "in the app's store")",
      pairedRounds: 7, [Subject(together: { [self] in try round() })])
  }

  /// A store whose first scan is over and in whose outbox the mutations wait.
  private static func waiting(
    _ context: Context, _ count: Int, _ token: String, _ transport: any HubTransport,
    _ keeping: ProfileRegistry.RecordKeeping
  ) throws -> (directory: String, store: SignedInStore) {
    let directory = try context.freshDirectory()
    let store = try SignedInStore.make(
      in: directory, token: token, transport: transport, keeping: keeping)
    try store.pushPass(keeping)
    var random = SplitMix64(seed: Documents.seed + 7)
    let edits = Edits(context, random.permutation(of: context.documents.count).prefix(count))
    try blocking {
      _ = try await store.profile.enqueue(
        (0..<count).map { edits.mutation($0) }, account: store.account)
    }
    return (directory, store)
  }

  // MARK: - A round

  private func round() throws -> [Reading] {
    let bare = try BareHTTP.repeating(heard, headers: heard[0].request.headers) { [echo] in
      echo.url(answering: $0.answerByteCount)
    }
    let hub = try perform(hubRows, copies + "/hub-0", deletesOnly: false)
    let isManaged = keeping == .area
    let client = try perform(clientRows, copies + "/client-0", deletesOnly: !isManaged)
    let pushed = try push()
    let parts = bare.seconds + hub.seconds + client.seconds
    guard !isManaged else {
      return [
        Reading(.c, .managedPushClientRows, client.seconds),
        Reading(.c, .managedPushParts, parts),
        Reading(.holdfast, .managedPush, pushed.seconds),
      ]
    }
    return [
      Reading(.c, .pushBare, bare.seconds),
      Reading(.c, .pushHubRows, hub.seconds),
      Reading(.c, .pushClientRows, client.seconds),
      Reading(.c, .pushParts, parts),
      Reading(.holdfast, .push, pushed.seconds),
      Reading(.holdfast, .pushCommits, Double(pushed.commits) / Double(heard.count)),
    ]
  }

  private func perform(_ rows: RowSteps, _ base: String, deletesOnly: Bool) throws -> Pass {
    let copy = try context.freshDirectory() + "/copy"
    try DataCopy.make(of: base + "/data.mdb", in: copy)
    var writes = cbench_writes()
    let pass = try Pass(
      rows.perform(in: copy, deletesOnly: deletesOnly, counting: &writes), .c,
      message: cbench_lmdb_message)
    try context.remove(copy)
    return pass
  }

  /// From the hub's answer to who is asking, to the settlement of the last batch: when the pull begins.
  private func push() throws -> Pass {
    accounts += 1
    let token = try process.token(for: "pushed-\(accounts)")
    let tap = Wiretap(connection)
    let (pushing, store) = try Self.waiting(context, count, token, tap, keeping)
    _ = tap.take()
    let commitsAtPull = CommitsAtPull(store)
    let listening = Wiretap(connection) { commitsAtPull.note($0) }
    store.registry.connect(to: listening)
    let commits = store.commitCount
    try store.pushPass(keeping)
    let exchanges = listening.take()
    let left = try store.profile.pendingSummary().count
    guard left == 0, let first = exchanges.firstIndex(where: { $0.path == "/v1/mutations" }),
      first > 0, let last = exchanges.lastIndex(where: { $0.path == "/v1/mutations" }),
      last + 1 < exchanges.count, last - first + 1 == heard.count
    else {
      throw Disagreement(sentence: "holdfast: R5 pushed otherwise than was heard, \(left) wait")
    }
    var pass = Pass()
    pass.nanoseconds = exchanges[last + 1].begun - exchanges[first - 1].ended
    pass.operations = count
    pass.commits = Int(commitsAtPull.count - commits)
    try context.remove(pushing)
    return pass
  }
}
