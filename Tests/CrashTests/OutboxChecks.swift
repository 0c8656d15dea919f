import Foundation
import HubProtocol
import ProfileStore
import SyncTestSupport
import Testing

/// What has to hold after the stories of an outbox that were cut off.
enum OutboxChecks {
  private static let mutations = [
    "a": ["a"], "bcd": ["b", "c", "d"], "given": ["e"], "x": ["a"], "big": ["big"], "f": ["f"],
  ]
  private static let order = ["a", "bcd", "given", "x", "big", "f"]

  static func enqueue(_ telling: CrashStory.Telling) async throws {
    let registry = try telling.registry()
    try await registry.requireSound(telling)
    let ada = try verified("ada")
    let profile = try await registry.profile(for: ada)
    let waiting = try profile.waitingRecords()
    let stored = telling.said("stored")
    let refused = telling.said("refused").map { String($0.prefix { $0 != " " }) }
    // The one that was running may be there or not, whole; where nothing ended it, none was.
    var allowed = [stored]
    let rest = order.filter { !stored.contains($0) && !refused.contains($0) }
    if let running = rest.first { allowed.append(stored + [running]) }
    #expect(
      allowed.map { $0.flatMap { mutations[$0] ?? [] } }.contains(waiting),
      "\(telling.step): \(stored), and \(waiting) wait")
    for record in Set(waiting) {
      let isDeleted = waiting.last == "a" ? record == "a" : waiting.filter { $0 == "a" }.count == 2
      guard record != "a" || !isDeleted else { continue }
      let (session, id) = (AppSession(), RecordID(record))
      session.signIn(ada, token: "token")
      let own = Profile(area: profile.area, registry: registry, session: session)
      let payload = try #require(try own.record(id)?.payload)
      #expect(payload.starts(with: Data("canary-ada \(record)".utf8)))
      #expect(payload.count == (record == "big" ? 600_014 : 11 + record.utf8.count))
    }
    // It goes on where it was.
    let session = AppSession()
    session.signIn(ada, token: "token")
    let own = Profile(area: profile.area, registry: registry, session: session)
    try await own.enqueue(.put("after", Data("canary-ada after".utf8)), account: ada)
    #expect(try profile.waitingRecords() == waiting + ["after"])
    try await registry.requireSound(telling)
  }

  static func growth(_ telling: CrashStory.Telling) async throws {
    let registry = try telling.registry()
    let ada = try verified("ada")
    let profile = try await registry.profile(for: ada)
    #expect(try profile.area.violations() == [], "\(telling.step)")
    let stored = telling.said("stored").count
    let count = try profile.area.read { try profile.area.pendingSummary($0) }.count
    #expect(count == stored || count == stored + 1, "\(telling.step): \(stored), \(count) wait")
    let session = AppSession()
    session.signIn(ada, token: "token")
    let own = Profile(area: profile.area, registry: registry, session: session)
    for number in 0..<3 {
      let payload = Data(repeating: 1, count: 1 << 20)
      try await own.enqueue(.put(RecordID("after\(number)"), payload), account: ada)
    }
    #expect(try own.pendingSummary().count == count + 3)
  }
}
