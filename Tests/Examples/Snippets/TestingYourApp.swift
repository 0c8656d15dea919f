import Foundation
import Holdfast
import HoldfastTesting
import Testing

func lostAnswer(directory: URL) async throws {
  let hub = MemoryHub()
  let session = CuedSession()
  let registry = try ProfileRegistry(directory: directory, session: session)
  registry.connect(to: session.watching(hub))

  let token = hub.token(for: "ada")
  let ada = try await registry.verify(token: token)
  let profile = try await registry.profile(for: ada)
  session.signIn(ada, token: token)

  try await hub.write([("note/1", Data("From her other device".utf8))], of: "ada")
  try await profile.enqueue(.put("note/2", Data("From this one".utf8)), account: ada)
  hub.fail(.dropAfterCommit, at: .mutations)
  await #expect(throws: SyncError.self) { try await profile.synchronize(account: ada) }

  try await profile.synchronize(account: ada)
  #expect(try profile.records().count == 2)
  // The hub has taken it at once, and not again.
  #expect(hub.highWater(of: "ada") == 2)
}

func offlineForHours(profile: Profile, ada: VerifiedAccount, hub: MemoryHub) async throws {
  let clock = ManualClock()
  hub.fail(.unreachable, times: nil)
  let syncing = Task {
    try await profile.keepSynchronized(account: ada, pace: SyncPace(clock: clock))
  }
  try await clock.waitForSleepers()
  clock.advance(by: .seconds(3 * 3_600))
  syncing.cancel()
  await #expect(throws: CancellationError.self) { try await syncing.value }
}

func switchDuringPush(
  registry: ProfileRegistry, profile: Profile, ada: VerifiedAccount, session: CuedSession,
  hub: MemoryHub
) async throws {
  let token = hub.token(for: "bob")
  let bob = try await registry.verify(token: token)
  session.plan(.signIn(bob, token: token), at: .request(.mutations))

  try await profile.enqueue(.put("note/3", Data("Ada's".utf8)), account: ada)
  let error = await #expect(throws: SyncError.self) {
    try await profile.synchronize(account: ada)
  }
  #expect(error?.code == .sessionChanged)
  #expect(session.planned.isEmpty && hub.records(of: "bob").isEmpty)
}

func audit() async throws {
  let report = try await ApplyChangesAudit { directory in
    let notes = JSONNotes(in: directory)
    return AuditedApp(
      applyChanges: { batch, place in try notes.save(batch, of: place) },
      contents: { place in try notes.document(of: place).payloads })
  }.run()
  #expect(report.findings.isEmpty, "\(report)")
}

/// The smallest store that gets everything right: a JSON file for each account, written whole.
struct JSONNotes {
  struct Document: Codable {
    var owner: Data
    var notes: [RecordLine] = []

    var payloads: [RecordID: Data] {
      Dictionary(uniqueKeysWithValues: notes.map { (RecordID($0.id), $0.payload) })
    }
  }

  struct RecordLine: Codable {
    var id: String
    var payload: Data
  }

  let directory: URL

  init(in directory: URL) { self.directory = directory }

  /// One file for each area: another account's notes are not even open.
  private func file(of place: AuditedApp.Place) -> URL {
    directory.appending(path: "\(place.profile.id).json")
  }

  func document(of place: AuditedApp.Place) throws -> Document {
    let file = file(of: place)
    guard FileManager.default.fileExists(atPath: file.path) else {
      return Document(owner: place.account.bytes)
    }
    return try JSONDecoder().decode(Document.self, from: Data(contentsOf: file))
  }

  func save(_ batch: borrowing ChangeBatch, of place: AuditedApp.Place) throws {
    var document = try document(of: place)
    for change in try batch.changes(localOwner: document.owner).copies() {
      if try batch.isPending(change.record) { continue }
      document.notes.removeAll { RecordID($0.id) == change.record }
      guard let payload = change.payload else { continue }
      document.notes.append(RecordLine(id: change.record.text, payload: payload))
    }
    try JSONEncoder().encode(document).write(to: file(of: place), options: .atomic)
  }
}
