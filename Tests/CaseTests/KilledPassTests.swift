import Foundation
import HubProtocol
import ProfileStore
import SyncTestSupport
import Testing

/// A device whose passes run in a process of their own, with an app that keeps its records in a file.
private struct KilledDevice {
  private struct Row: Codable {
    var version: UInt64
    var text: String
  }

  let hub: TestHub
  let directory: TemporaryDirectory
  private var app: URL { directory.url.appending(path: "app.json") }
  private var store: URL { directory.url.appending(path: "store", directoryHint: .isDirectory) }

  init(_ hub: TestHub) throws {
    self.hub = hub
    directory = try TemporaryDirectory()
  }

  /// Puts the texts and makes a pass that ends at a place, or at none.
  /// - Returns: the places that it came to if it was to end at none; what it has enqueued.
  func pass(
    _ goal: String, endingAt place: String? = nil, _ texts: [String] = []
  ) async throws -> (places: [String], enqueued: [RecordID: String]) {
    let (lines, ending) = try await CaseChild.run(
      "pass", hub, store, as: "alice", [goal, app.path, place ?? "-"] + texts)
    #expect(
      ending == (place == nil ? .exited(0) : .signal(SIGKILL)), "\(place ?? "no place"): \(lines)")
    var enqueued: [RecordID: String] = [:]
    for line in lines where line.hasPrefix("enqueued ") {
      let words = line.split(separator: " ")
      enqueued[RecordID(String(words[1]))] = String(words[2])
    }
    return (lines.filter { $0.contains(":") }, enqueued)
  }

  private func rows() throws -> [String: Row] {
    guard let data = FileManager.default.contents(atPath: app.path) else { return [:] }
    return try JSONDecoder().decode([String: Row].self, from: data)
  }

  /// Nothing up to the cursor is missing in the app, and nothing enqueued is lost.
  func requireNothingSkipped(_ enqueued: [RecordID: String], _ place: String) async throws {
    let inspector = try StoreInspector(directory: store)
    let profile = try #require(try inspector.profiles().first)
    let rows = try rows()
    let cursor = profile.cursor?.sequence ?? 0
    let records = try await hub.records(of: "alice")
    for record in records where record.version <= cursor {
      #expect(
        rows[record.id.text]?.version == (record.deleted ? nil : record.version),
        "\(place): the cursor is beyond what the app has")
    }
    let waiting = try inspector.outbox(profile.area)
    for (id, text) in enqueued {
      let isSafe =
        waiting.contains { $0.record == id && $0.payload == Data(text.utf8) }
        || records.contains { $0.id == id && $0.payload == Data(text.utf8) }
      #expect(isSafe, "\(place): an enqueued mutation is neither here nor at the hub")
    }
  }

  /// What the app has is what the hub has, and nothing waits.
  func requireEqual(_ enqueued: [RecordID: String], _ place: String) async throws {
    let texts = try await hub.texts(of: "alice")
    let rows = try rows()
    #expect(
      Dictionary(uniqueKeysWithValues: rows.map { (RecordID($0.key), $0.value.text) }) == texts,
      "\(place)")
    for (id, text) in enqueued { #expect(texts[id] == text, "\(place)") }
    let profile = try #require(try StoreInspector(directory: store).profiles().first)
    #expect(profile.pending.isEmpty, "\(place)")
    #expect(try await profile.cursor?.sequence == hub.highWater(of: "alice"), "\(place)")
  }
}

@Suite("D1 to D3: a process killed anywhere in a pass")
struct KilledPassTests {
  /// Another device changes the same seven records, one of them deleted every second time.
  private func change(_ desk: Person, _ round: Int) async throws {
    try await desk.write(ids(1...6), "desk-\(round)")
    if round.isMultiple(of: 2) {
      try await desk.delete(["r0007"])
    } else {
      try await desk.write(["r0007"], "desk-\(round)")
    }
    try await desk.sync()
  }

  @Test(
    "D1, D2, D3: the cursor is never beyond the app, no enqueued mutation is lost, nothing is skipped",
    arguments: ["ordinary", "replay"])
  func killed(_ goal: String) async throws {
    try await TestHub.run(HubLimits(pullRecords: 3, pushMutations: 2)) { hub in
      let desk = try await Device(hub).signIn()
      let device = try KilledDevice(hub)
      try await change(desk, 0)
      _ = try await device.pass("ordinary", ["a", "b", "c"])
      try await change(desk, 1)
      let places = try await device.pass(goal, ["a1", "b1", "c1"]).places
      #expect(places.count >= 12)
      for (number, place) in places.enumerated() {
        let round = number + 2
        try await change(desk, round)
        let killed = try await device.pass(
          goal, endingAt: place, ["a\(round)", "b\(round)", "c\(round)"])
        #expect(killed.enqueued.count == 3)
        try await device.requireNothingSkipped(killed.enqueued, place)
        _ = try await device.pass("ordinary")
        try await device.requireEqual(killed.enqueued, place)
      }
    }
  }

  @Test("D1, D2, D3: the first pull of an area, too, killed anywhere, is gone on with")
  func killedFirst() async throws {
    try await TestHub.run(HubLimits(pullRecords: 3, pushMutations: 2)) { hub in
      let desk = try await Device(hub).signIn()
      try await change(desk, 1)
      let places = try await KilledDevice(hub).pass("ordinary", ["a0", "b0", "c0"]).places
      #expect(places.count >= 12)
      for (round, place) in places.enumerated() {
        let device = try KilledDevice(hub)
        let killed = try await device.pass(
          "ordinary", endingAt: place, ["a\(round)", "b\(round)", "c\(round)"])
        try await device.requireNothingSkipped(killed.enqueued, place)
        _ = try await device.pass("ordinary")
        try await device.requireEqual(killed.enqueued, place)
      }
    }
  }
}
