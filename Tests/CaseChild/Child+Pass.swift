import Foundation
import HubClient
import HubProtocol
import ProfileStore
import ProfileSync
import Synchronization

/// Counts the places that a pass comes to, each kind by itself, and ends the process at one of them, or
/// stays there. Without one it says them all.
final class Places: Sendable {
  private let end: String?
  private let stays: Bool
  private let counts = Mutex<[String: Int]>([:])

  /// - Parameter place: kind and number, as in `request:3`; `stay request:3`: waits there to be killed.
  init(_ place: String?) {
    stays = place?.hasPrefix("stay ") == true
    end = stays ? place.map { String($0.dropFirst(5)) } : place
  }

  func reach(_ kind: String) {
    let place = counts.withLock { counts in
      counts[kind, default: 0] += 1
      return "\(kind):\(counts[kind] ?? 0)"
    }
    if place == end {
      guard stays else { endHere() }
      say("stays")
      while true { pause() }
    }
    if end == nil { say(place) }
  }
}

/// The store of an app's own: a file that is replaced as a whole.
struct AppFile {
  struct Row: Codable {
    var version: UInt64
    var text: String
  }

  let file: URL

  /// Saves a batch in "one transaction".
  func save(_ batch: borrowing ChangeBatch, owner: Data) throws {
    var rows = try read()
    for change in try batch.changes(localOwner: owner).copies() {
      rows[change.record.text] = change.payload.map {
        Row(version: change.version, text: String(decoding: $0, as: UTF8.self))
      }
    }
    try JSONEncoder().encode(rows).write(to: file, options: .atomic)
  }

  func read() throws -> [String: Row] {
    guard let data = FileManager.default.contents(atPath: file.path) else { return [:] }
    return try JSONDecoder().decode([String: Row].self, from: data)
  }
}

extension Child {
  /// `pass ordinary|replay APPFILE PLACE|- TEXT…`: puts a record for each text, then makes a pass,
  /// and is killed at the place.
  func pass() async throws {
    guard let goal = word(0), let file = word(1), let place = word(2) else { throw BadWords() }
    let transport = PlacedTransport(try HubConnection(url: hub))
    let (account, profile) = try await signIn(keeping: .app, over: transport)
    var next = 3
    while let text = word(next) {
      let record = RecordID("own\(next)")
      try await profile.enqueue(.put(record, Data(text.utf8)), account: account)
      say("enqueued \(record.text) \(text)")
      next += 1
    }
    let places = Places(place == "-" ? nil : place)
    transport.places.withLock { $0 = places }
    profile.area.onCommit.withLock { hook in
      hook = { step in places.reach(step == .commits ? "commits" : "committed") }
    }
    let app = AppFile(file: URL(filePath: file))
    try await profile.synchronize(account: account, replayFromStart: goal == "replay") { batch in
      places.reach("handed")
      try app.save(batch, owner: account.bytes)
      places.reach("saved")
    }
    say("done")
  }
}

/// The way to the hub, on which each request and each answer is a place once the pass has begun.
private final class PlacedTransport: HubTransport {
  let places = Mutex<Places?>(nil)
  private let connection: HubConnection

  init(_ connection: HubConnection) { self.connection = connection }

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let places = places.withLock { $0 }
    places?.reach("request")
    let response = try await connection.send(request)
    places?.reach("answer")
    return response
  }
}
