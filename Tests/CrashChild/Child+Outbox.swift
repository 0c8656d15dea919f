import CCrashSteps
import Foundation
import HubProtocol
import LMDB
import ProfileStore

extension Child {
  /// Puts, deletes, a batch and a mutation whose UUID the app gives, each said once it is stored.
  func enqueue() async throws {
    let (ada, profile) = try await signIn("ada", try openStore())
    watch(profile)
    begin()
    let steps: [(String, [Mutation])] = [
      ("a", [put("a")]), ("bcd", ["b", "c", "d"].map { put($0) }),
      ("given", [.put("e", canary("ada", "e"), mutation: Self.given)]), ("x", [.delete("a")]),
      ("big", [.put("big", big)]), ("f", [put("f")]),
    ]
    for (name, mutations) in steps {
      do {
        try await profile.enqueue(mutations, account: ada)
        say("stored \(name)")
      } catch {
        say("refused \(name) \(describe(error))")
      }
    }
    end()
  }

  /// The UUID that the app gives.
  private static let given = UUID(uuid: (7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7))

  /// More than the room that a file keeps ready.
  private var big: Data { canary("ada", "big") + Data(repeating: 1, count: 600_000) }

  private func put(_ name: String) -> Mutation {
    .put(RecordID(name), canary("ada", name))
  }

  /// Fills an area nearly up to its map, and goes on beyond it.
  func grow() async throws {
    let (ada, profile) = try await signIn("ada", try openStore())
    func put(_ number: Int) async throws {
      let payload = Data(repeating: UInt8(number), count: 1 << 20)
      try await profile.enqueue(.put(RecordID("r\(number)"), payload), account: ada)
      say("stored \(number)")
    }
    let before = profile.area.environment.mapByteCount
    var number = 1
    // The map is doubled ahead of the need at four fifths, or else when a write does not fit.
    while try profile.area.environment.statistics().usedByteCount < before / 5 * 4 - (3 << 20) {
      try await put(number)
      number += 1
    }
    watch(profile)
    begin()
    for next in number...(number + 16) {
      let isGrown = profile.area.environment.mapByteCount > before
      try await put(next)
      if isGrown { break }
    }
    crash_steps_reach(profile.area.environment.mapByteCount > before ? "grown" : "not grown")
    end()
  }

  /// `write … COUNT PREFIX`: a second app on one store, that writes and says what it has stored.
  func write() async throws {
    let (ada, profile) = try await signIn("ada", try openStore())
    let prefix = try word(1)
    for number in 1...(try number(0)) {
      try await profile.enqueue(
        .put(RecordID("\(prefix)\(number)"), canary("ada", "\(number)")), account: ada)
    }
    say("stored")
  }

  /// Holds a snapshot of the area of `ada` until it is killed.
  func hang() async throws {
    let (_, profile) = try await signIn("ada", try openStore())
    try profile.area.read { _ in
      say("holds")
      while true { pause() }
    }
  }
}
