import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

/// Contract section 7.
@Suite("Limits, checked where the thing enters and before anything is written")
struct LimitTests {
  let store: TemporaryStore

  init() throws { store = try TemporaryStore() }

  @Test(
    "a record ID has 1 to 400 bytes of UTF-8, compared byte for byte",
    arguments: [
      ("", false), ("x", true), (String(repeating: "x", count: 400), true),
      (String(repeating: "x", count: 401), false), (String(repeating: "\u{E9}", count: 200), true),
      (String(repeating: "\u{E9}", count: 201), false), ("a/../b", true), ("\0", true),
      ("\u{1F469}\u{200D}\u{1F4BB}", true),
    ])
  func recordID(_ id: String, _ isLegal: Bool) async throws {
    let (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    let record = RecordID(id)
    let expected: StoreError.Code? = isLegal ? nil : .badRecordID
    #expect(
      await code { try await profile.enqueue(.put(record, Data([1])), account: ada) } == expected)
    #expect(await code { try await profile.enqueue(.delete(record), account: ada) } == expected)
    #expect(await code { _ = try profile.record(record) } == expected)
    #expect(try profile.outbox().map(\.record) == (isLegal ? [record, record] : []))
  }

  @Test(
    "an ID beyond its limit is refused as such wherever one is asked for", arguments: [401, 70_000])
  func longRecordID(_ count: Int) async throws {
    let (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    let record = RecordID(String(repeating: "x", count: count))
    #expect(await code { _ = try profile.records(prefix: record) } == .badRecordID)
    #expect(await code { _ = try profile.records(after: record) } == .badRecordID)
    #expect(
      await code { try await profile.sendAgain(lost: [record], account: ada) } == .badRecordID)
    #expect(try profile.records(prefix: "", after: "").isEmpty)
  }

  @Test("record IDs are never normalized: each twin is a record of its own")
  func recordTwins() async throws {
    let (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    let ids = ["caf\u{E9}", "cafe\u{301}", "CAF\u{C9}", "a", "A", " a", "a\0", "a", "ab"]
    for (number, id) in ids.enumerated() {
      try await profile.enqueue(.put(RecordID(id), Data("\(number)".utf8)), account: ada)
    }
    #expect(try profile.records().count == 8)
    #expect(try profile.text("a") == "7")
    #expect(try profile.text("caf\u{E9}") == "0")
    #expect(try profile.text("cafe\u{301}") == "1")
  }

  @Test("a payload has 0 bytes to 1 MiB before the hub has announced its own limit")
  func payloadByDefault() async throws {
    let (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    try await payloads(of: 1 << 20, ada, profile)
    #expect(try profile.record("empty")?.payload == Data())
  }

  @Test(
    "a payload has 0 bytes to the smaller of the hub's announced limit and 16 MiB",
    arguments: [(0, 0), (1_000, 1_000), (16 << 20, 16 << 20), (64 << 20, 16 << 20)])
  func payloadAnnounced(_ announced: Int, _ limit: Int) async throws {
    let (ada, profile) = try await store.signedInProfile("ada", in: try store.registry())
    try await profile.area.note(
      SessionAnswer(
        nonce: UUID(), hub: Hub.first, epoch: Hub.epoch, lineage: [], account: ada.id,
        highWater: 0, minimumCursor: 0, idempotencyFloor: 0, empty: true, expiresAt: 0,
        limits: HubLimits(payloadBytes: announced)))
    try await payloads(of: limit, ada, profile)
  }

  private func payloads(
    of limit: Int, _ ada: VerifiedAccount, _ profile: Profile
  ) async throws {
    try await profile.enqueue(.put("empty", Data()), account: ada)
    try await profile.enqueue(.put("at", Data(count: limit)), account: ada)
    let before = try profile.outbox(limit: 9).map(\.mutation)
    let error = try await #require(throws: StoreError.self) {
      try await profile.enqueue(.put("above", Data(count: limit + 1)), account: ada)
    }
    #expect(error.code == .payloadTooLarge)
    #expect(error.message.contains("\(limit + 1)") && error.message.contains("\(limit)"))
    #expect(try profile.outbox().map(\.mutation) == before)
    #expect(try profile.record("at")?.payload.count == limit)
  }

  @Test("a store's place that is a file is refused, and the file is as it was")
  func placeIsFile() throws {
    let place = store.path + "/file"
    try Data("mine".utf8).write(to: URL(fileURLWithPath: place))
    for path in [place, place + "/below"] {
      let error = try #require(throws: StoreError.self) { try store.registry(at: path) }
      #expect(error.code == .notAStore)
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: place)) == Data("mine".utf8))
  }

  @Test("a store's place that cannot be written is refused, whoever asks")
  func placeIsNotWritable() throws {
    #if os(Linux)
      // Nobody makes a file there, root neither.
      for path in ["/proc", "/proc/holdfast"] {
        let error = try #require(throws: StoreError.self) { try store.registry(at: path) }
        #expect(error.code == .notAStore, "\(error)")
        #expect(error.message.contains("cannot be"))
      }
    #endif
  }

  @Test("a store's directory and files are for their user only")
  func permissions() async throws {
    let registry = try store.registry(at: store.path + "/new")
    let profile = try await registry.profile(for: verified("ada"))
    for path in [registry.directory.path, registry.directory(of: profile.id)] {
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.posixPermissions] as? Int == 0o700)
    }
    let data = registry.directory(of: profile.id) + "/data.mdb"
    let attributes = try FileManager.default.attributesOfItem(atPath: data)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }

  @Test("an area at its byte limit refuses with a typed error and loses nothing")
  func areaFull() async throws {
    var limits = StoreLimits()
    limits.areaByteCountMax = 4 << 20
    // Then an acknowledged mutation leaves nothing behind.
    limits.acknowledgedCountMax = 0
    let (ada, profile) = try await store.signedInProfile(
      "ada", in: try store.registry(keeping: .app, limits: limits))
    let payload = Data(count: 16 << 10)
    var stored = 0
    var failure: StoreError?
    while failure == nil, stored < 1_000 {
      do {
        try await profile.enqueue(.put("r\(stored)", payload), account: ada)
        stored += 1
      } catch let error as StoreError {
        failure = error
      }
    }
    #expect(failure?.code == .storage)
    #expect(failure?.cause?.code == .mapFull)
    #expect(stored > 50)
    #expect(try profile.outbox().count == stored)

    // What frees room goes through: the first half settles, in batches as a pass would.
    let mutations = try profile.outbox().map(\.mutation)
    let settled = mutations.prefix(stored / 2)
    let epoch = UUID()
    for (number, mutation) in settled.enumerated() {
      try await profile.area.markFirstSent([UInt64(number + 1)], highWater: 1)
      try await profile.settle(
        mutation, .acknowledged(version: UInt64(number + 1)), epoch: epoch,
        highWater: UInt64(number + 1))
    }
    #expect(try profile.outbox().map(\.mutation) == Array(mutations.dropFirst(settled.count)))
    // The room serves the next edits.
    try await profile.enqueue(.put("after", payload), account: ada)
    #expect(try profile.outbox().count == stored - settled.count + 1)
  }
}
