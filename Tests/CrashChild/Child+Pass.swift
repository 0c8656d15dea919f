import CCrashSteps
import Foundation
import HubClient
import HubProtocol
import ProfileStore
import ProfileSync

/// The store of an app's own: a file that is replaced as a whole.
private struct AppFile {
  let file: URL

  /// Saves a batch in "one transaction": versions by record, 0 once it is deleted.
  func save(_ batch: borrowing ChangeBatch, owner: Data) throws {
    var rows: [String: UInt64] = [:]
    if let data = FileManager.default.contents(atPath: file.path) {
      rows = try JSONDecoder().decode([String: UInt64].self, from: data)
    }
    for change in try batch.changes(localOwner: owner).copies() {
      rows[change.record.text] = change.payload == nil ? 0 : change.version
    }
    // Not by Foundation's atomic write, which a kill makes leave a directory elsewhere.
    let new = file.appendingPathExtension("new")
    try JSONEncoder().encode(rows).write(to: new)
    guard rename(new.path, file.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
  }
}

/// The way to the hub, on which each request and each answer is a step.
private struct SteppedTransport: HubTransport {
  let connection: HubConnection

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    crash_steps_reach("request")
    let response = try await connection.send(request)
    crash_steps_reach("answer")
    return response
  }
}

extension Child {
  /// `push|apply|replay … HUB TOKEN TEXT`: enqueues three records with the text, then makes a pass: of
  /// an area that keeps the records, of an app that keeps them in a file, a replay of such an app.
  func pass() async throws {
    guard let url = URL(string: try word(0)) else { throw BadWords() }
    let (token, text) = (try word(1), try word(2))
    let isManaged = story == "push"
    let registry = try openStore(keeping: isManaged ? .area : .app)
    registry.connect(to: SteppedTransport(connection: try HubConnection(url: url)))
    let account = try await registry.verify(token: token, clientName: "crash")
    (registry.session as? AppSession)?.signIn(account, token: token)
    let profile = try await registry.profile(for: account)
    for name in ["own1", "own2", "own3"] {
      try await profile.enqueue(.put(RecordID(name), Data(text.utf8)), account: account)
    }
    say("enqueued")
    watch(profile)
    let app = AppFile(file: directory.deletingLastPathComponent().appending(path: "app.json"))
    begin()
    if isManaged {
      try await profile.synchronize(account: account)
    } else {
      try await profile.synchronize(account: account, replayFromStart: story == "replay") { batch in
        crash_steps_reach("handed")
        try app.save(batch, owner: account.bytes)
        crash_steps_reach("saved")
      }
    }
    end()
  }
}
