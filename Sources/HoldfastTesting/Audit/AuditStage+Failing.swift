import Foundation
import ProfileStore
import ProfileSync

// A closure that cannot go on in the middle of a batch.
extension AuditStage {
  /// Fails at each question that the app asks of a batch and at each of its writes, one after the other.
  func throwHalfWay() async throws {
    try await begin()
    try await failEach("came again after questions that failed") { try await failQuestion($0) }
    guard app.failWrite != nil else { return }
    try await failEach("came again after writes that failed") { try await failWrite($0) }
  }

  /// - Parameter fail: makes a pass that fails at the n-th place and says whether there was such a one.
  private func failEach(_ moment: String, _ fail: (Int) async throws -> Bool) async throws {
    try await put(1, 2, 4)
    let before = try await contents()
    let position = try await savedPosition()
    var number = 1
    while try await fail(number) {
      try await expectUnchanged(
        since: before, "a batch that the closure threw for leaves nothing in the app's store")
      guard try await savedPosition() == position else {
        throw AuditDeviation(
          expected: "the position of a batch that the closure threw for is not saved",
          observed: "it is")
      }
      number += 1
    }
    try await expectHub("after the batch \(moment)")
  }

  private func failQuestion(_ number: Int) async throws -> Bool {
    let cue = Cue(.isPending, number)
    let stopped = try await pass { batch in
      let watched = batch.watched { question throws(StoreError) in
        // Not only this once: an app that asks again is right, and does not go on either.
        guard question == .isPending, cue.isNow(question) || cue.hasCome else { return }
        throw StoreError(.storage, "the audit lets the closure fail here: let it out")
      }
      try await apply(watched)
      guard !cue.hasCome else {
        throw AuditDeviation(
          expected: "the closure throws when it cannot ask about a record",
          observed: "it returned although `isPending` threw")
      }
    }
    if let stopped, !cue.hasCome { throw failure(stopped) }
    return cue.hasCome
  }

  private func failWrite(_ number: Int) async throws -> Bool {
    let place = try place(.ada)
    var hasThrown = false
    let stopped = try await pass { batch in
      try await app.failWrite?(number, place)
      do { try await apply(batch) } catch {
        hasThrown = true
        try await app.failWrite?(nil, place)
        throw error
      }
      try await app.failWrite?(nil, place)
    }
    if let stopped, !hasThrown { throw stopped }
    return hasThrown
  }
}
