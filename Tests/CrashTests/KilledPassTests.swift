import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

/// What a pass of a child that was cut off has left, and a hub to go on with.
private struct CutPass {
  let hub: TestHub
  let account: String
  let isManaged: Bool

  private func open(
    _ telling: CrashStory.Telling
  ) async throws -> (VerifiedAccount, Profile) {
    let session = AppSession()
    let registry = try telling.registry(keeping: isManaged ? .area : .app, session: session)
    registry.connect(to: hub.connection)
    let token = try hub.token(for: account)
    let verified = try await registry.verify(token: token, clientName: "after")
    session.signIn(verified, token: token)
    return (verified, try await registry.profile(for: verified))
  }

  /// Nothing is lost, nothing is ahead of the app; then a pass finishes it, and all is there once.
  /// - Parameters:
  ///   - text: of the three records that were enqueued.
  ///   - applied: how many mutations the hub has to have in the end.
  func check(_ telling: CrashStory.Telling, text: String, applied: UInt64) async throws {
    let (verified, profile) = try await open(telling)
    #expect(try profile.area.violations() == [], "\(telling.step)")
    #expect(try profile.area.owner() == verified.bytes, "\(telling.step)")
    let records = try await hub.records(of: account)
    let waiting = try profile.outbox()
    for name in ["own1", "own2", "own3"] {
      let payload = Data(text.utf8)
      let isSafe =
        waiting.contains { $0.record.text == name && $0.payload == payload }
        || records.contains { $0.id.text == name && $0.payload == payload }
      #expect(isSafe, "\(telling.step): an enqueued mutation is neither here nor at the hub")
    }
    let cursor = try profile.cursor()?.sequence ?? 0
    let rows = isManaged ? [:] : try appRows(telling)
    for record in records where record.version <= cursor {
      if isManaged {
        guard !waiting.contains(where: { $0.record == record.id }) else { continue }
        #expect(try profile.record(record.id)?.payload == record.payload, "\(telling.step)")
      } else {
        #expect(
          rows[record.id.text] == (record.deleted ? 0 : record.version),
          "\(telling.step): the cursor is beyond what the app has")
      }
    }
    try await finish(telling, verified, profile, applied: applied)
  }

  private func finish(
    _ telling: CrashStory.Telling, _ verified: VerifiedAccount, _ profile: Profile, applied: UInt64
  ) async throws {
    var rows = isManaged ? [:] : try appRows(telling)
    if isManaged {
      try await profile.synchronize(account: verified)
    } else {
      try await profile.synchronize(account: verified) { batch in
        for change in try batch.changes(localOwner: verified.bytes).copies() {
          rows[change.record.text] = change.payload == nil ? 0 : change.version
        }
      }
    }
    #expect(try profile.outbox().isEmpty, "\(telling.step)")
    #expect(try await hub.highWater(of: account) == applied, "\(telling.step): not each once")
    let records = try await hub.records(of: account)
    if isManaged {
      let texts = Dictionary(
        uniqueKeysWithValues: try profile.records().map { ($0.id, $0.payload) })
      #expect(
        texts
          == Dictionary(
            uniqueKeysWithValues: records.compactMap { r in r.payload.map { (r.id, $0) } }),
        "\(telling.step)")
    } else {
      for record in records {
        #expect(rows[record.id.text] == (record.deleted ? 0 : record.version), "\(telling.step)")
      }
    }
    #expect(try profile.area.violations() == [], "\(telling.step)")
    let left = try FileManager.default.contentsOfDirectory(atPath: profile.area.directory)
    #expect(!left.contains("scratch"), "\(telling.step): a replay's pages are left")
  }

  private func appRows(_ telling: CrashStory.Telling) throws -> [String: UInt64] {
    let file = telling.directory.url.appending(path: "app.json")
    guard let data = FileManager.default.contents(atPath: file.path) else { return [:] }
    return try JSONDecoder().decode([String: UInt64].self, from: data)
  }
}

@Suite("A pass cut off at each step of its work on disk and on the wire")
struct KilledPassTests {
  private static let limits = HubLimits(pullRecords: 4, pushMutations: 2)

  /// Seven records of another device, one of them deleted.
  private func fill(_ hub: TestHub, _ account: String) async throws -> UInt64 {
    let desk = try await Device(hub).signIn(account)
    try await desk.send(ids(1...7), "desk")
    try await desk.delete(["r0007"])
    try await desk.profile.synchronize(account: desk.account)
    return 8
  }

  @Test(
    "by SIGKILL: nothing is lost or sent twice, no cursor is ahead of the app, and the next finishes it",
    arguments: ["push", "apply", "replay"])
  func killed(_ name: String) async throws {
    try await TestHub.run(Self.limits) { hub in
      var applied = try await fill(hub, name)
      let pass = CutPass(hub: hub, account: name, isManaged: name == "push")
      let url = hub.server.url.absoluteString
      let story = CrashStory(name, [url, try hub.token(for: name), "text"])
      applied += 3
      try await story.killAtEach(atLeast: 25) { telling in
        applied += 3
        try await pass.check(telling, text: "text", applied: applied)
      }
    }
  }

  @Test(
    "by a full disk: a typed error or none, and the next pass finishes it once there is room",
    .enabled(if: SmallDisk.isPermitted, SmallDisk.reason), arguments: ["push", "apply", "replay"])
  func full(_ name: String) async throws {
    let disk = try SmallDisk(byteCount: 8 << 20)
    try await TestHub.run(Self.limits) { hub in
      var applied = try await fill(hub, name)
      let pass = CutPass(hub: hub, account: name, isManaged: name == "push")
      let url = hub.server.url.absoluteString
      let story = CrashStory(name, [url, try hub.token(for: name), "text"])
      applied += 3
      try await story.fillAtEach(disk, atLeast: 25) { telling in
        applied += 3
        try await pass.check(telling, text: "text", applied: applied)
      }
    }
  }
}
