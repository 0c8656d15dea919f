import Foundation
import ProfileStore
import ProfileSync

// A closure that cannot go on in the middle of a batch.
extension AuditStage {
  /// An app that still fails there does not count its writes: a batch has three changes.
  private static let placeCountMax = 64

  /// Fails at each question that the app asks of a batch and at each of its writes, one after the other.
  func throwHalfWay() async throws {
    try await begin()
    var isReached = try await failEach("question") { try await failQuestion($0) }
    if app.failWrite != nil, try await failEach("write", { try await failWrite($0) }) {
      isReached = true
    }
    guard !isReached else { return }
    throw Missing(
      reason: "the closure asks no `isPending`, and "
        + (app.failWrite == nil ? "the app has no `failWrite`" : "`failWrite` failed no write"))
  }

  /// Each failure has a batch of its own, which comes again without one.
  /// - Parameter fail: makes a pass that fails at the n-th place and says whether there was such a one.
  /// - Returns: whether there was any.
  private func failEach(
    _ place: String, _ fail: (Int) async throws -> Bool
  ) async throws -> Bool {
    for number in 1...Self.placeCountMax {
      try await put(1, 2, 4)
      let before = try await contents()
      let position = try await savedPosition()
      guard try await fail(number) else {
        try await expectHub("after a batch that the closure returned for")
        return number > 1
      }
      try await expectUnchanged(
        since: before, "a batch that the closure threw for leaves nothing in the app's store")
      guard try await savedPosition() == position else {
        throw AuditDeviation(
          expected: "the position of a batch that the closure threw for is not saved",
          observed: "it is")
      }
      try await goOn(after: "a failed \(place)")
    }
    throw Missing(reason: "there is no end of places to fail: `failWrite` has to count the writes")
  }

  /// The same batch comes again, and nothing fails.
  private func goOn(after failure: String) async throws {
    let stopped = try await pass { try await apply($0) }
    if let stopped {
      guard let closureError else { throw stopped }
      throw AuditDeviation(
        expected: "the closure saves the batch when it comes again after \(failure)",
        observed: "it cannot go on after \(failure): it threw \(Self.name(of: closureError))")
    }
    try await expectHub("after the batch came again after \(failure)")
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
