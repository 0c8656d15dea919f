import Foundation
import Holdfast
import ToolSupport

/// The main job, told so that a person can follow it: each line is checked, and the first that is not
/// so ends it.
final class Story {
  let console: Console
  let directory: URL
  let hubd: String
  let profilectl: String
  let isoCodes: String
  /// Strings that only one account writes, to be found nowhere else.
  let canaries = (ada: "canary-ada-\(UUID().uuidString)", bob: "canary-bob-\(UUID().uuidString)")
  private var step = 0
  private(set) var rates: [(step: String, records: Int, duration: Duration)] = []

  init(
    console: Console, directory: URL, hubd: String, profilectl: String, isoCodes: String
  ) {
    self.console = console
    self.directory = directory
    self.hubd = hubd
    self.profilectl = profilectl
    self.isoCodes = isoCodes
  }

  func tell() async throws {
    let codes = try IsoCodes(directory: isoCodes)
    let hub = try await startHub()
    do {
      let first = try await firstDevice(hub)
      let guest = try await enqueueSignedOut(first, codes)
      try await adopt(first, guest, hub)
      try await sendAll(first, hub)
      try await switchAccounts(first, hub)
      try await tryCrossovers(first, hub)
      let second = try await secondDevice(first, hub, codes)
      try await replay(second)
      try showTools(first)
      try await scan(first)
      try showRates()
      try hub.process.stop()
    } catch {
      // What was not so counts, not how the hub ends after it.
      hub.process.end()
      throw error
    }
    try console.print()
    try console.print("Every step was so: two accounts, one device, nothing crossed over.")
  }

  // MARK: Telling

  func begin(_ title: String) throws {
    step += 1
    try console.print()
    try console.print(console.styled("\(step). \(title)", .bold))
  }

  /// States something, and that it is so.
  func state(_ sentence: String, _ isSo: Bool) throws {
    guard isSo else { throw StoryFailure(sentence: sentence) }
    try console.print("   \(sentence)")
  }

  /// States that something was refused, with what and why.
  func refused(
    _ attempt: String, with code: String, _ body: () async throws -> Void
  ) async throws {
    let found: String
    let reason: String
    do {
      try await body()
      throw StoryFailure(sentence: "\(attempt) was not refused")
    } catch let error as StoreError {
      found = error.code.description
      reason = error.message
    } catch let error as SyncError {
      found = error.code.description
      reason = error.message
    }
    guard found == code else {
      throw StoryFailure(sentence: "\(attempt) was refused with \(found) instead of \(code)")
    }
    try console.print("   refused: \(attempt)")
    try console.print("            \(found): \(reason)")
  }

  /// Measures a step in records per second.
  func timed<R>(_ step: String, records: Int, _ body: () async throws -> R) async throws -> R {
    let start = ContinuousClock.now
    let result = try await body()
    rates.append((step, records, start.duration(to: .now)))
    return result
  }

  /// Notes a step that was measured elsewhere.
  func note(_ step: String, records: Int, _ duration: Duration) {
    rates.append((step, records, duration))
  }

  private func showRates() throws {
    try begin("How fast it was")
    for rate in rates {
      try console.print(
        "   \(rate.step): \(Quantity.count(rate.records)) records in "
          + "\(Quantity.duration(rate.duration)) (\(Quantity.rate(rate.records, over: rate.duration)))"
      )
    }
  }
}
