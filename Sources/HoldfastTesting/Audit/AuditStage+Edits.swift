import Foundation
import HubProtocol
import ProfileStore
import ProfileSync

// Newer edits of this device, which no download may overwrite.
extension AuditStage {
  private static let promise = "an edit that waits is not overwritten by what a pass brings"

  /// The first pass of an area pulls before it sends, so that the edit still waits.
  func pendingEdit() async throws {
    try await switchTo(.ada)
    try await put(1, 2)
    let (edit, before) = (newPayload(), try await contents())
    try await self.edit(1, edit)
    try await expectKept(1, edit, before)
    try await settle()
  }

  func editDuringClosure() async throws {
    try await begin()
    try await put(1, 4)
    let (edit, before) = (newPayload(), try await contents())
    try await expectKept(1, edit, before, editing: true)
    try await settle()
  }

  func pendingDelete() async throws {
    guard app.edit != nil else { throw Missing(reason: "the app has given no `edit`") }
    try await begin()
    try await put(1, 4)
    try await expectKept(1, nil, try await contents(), editing: true)
    try await settle()
  }

  /// A pass whose closure is called while the edit waits.
  /// - Parameter editing: the edit is made when the batch was.
  private func expectKept(
    _ number: Int, _ edit: Data?, _ before: [RecordID: Data], editing: Bool = false
  ) async throws {
    var hasEdited = !editing
    let stopped = try await pass { batch in
      if !hasEdited { try await self.edit(number, edit) }
      hasEdited = true
      let isWaiting = try batch.isPending(id(number))
      try await apply(batch)
      if isWaiting { try await expectEdit(number, edit, before: before, Self.promise) }
    }
    if let stopped { throw failure(stopped) }
  }

  func parkedEdit() async throws {
    try await park()
  }

  /// What was passed over comes again in the same version when the edit is given up.
  func equalVersion() async throws {
    do { try await park() } catch is AuditDeviation {
      // That it took the change too early is another situation's.
    }
    try await giveUpParked()
    try await bring()
    try await expectHub("after the edit was given up")
  }

  /// The hub refuses an edit for good, and has another version of the record.
  private func park() async throws {
    try await begin()
    let (edit, before) = (newPayload(), try await contents())
    try await self.edit(1, edit)
    try await put(1)
    hub.fail(.verdicts([.rejected]), at: .mutations)
    try await bring()
    hub.stopFailing()
    let parkedCount = try place(.ada).profile.pendingSummary().parked
    try require(parkedCount > 0, "nothing was parked")
    try await expectEdit(
      1, edit, before: before, "an edit that is parked is not overwritten by what a pass brings")
  }

  /// In several batches: what is there, and what was deleted.
  func replay() async throws {
    try await begin()
    try await delete(3)
    try await put(4)
    try await bring()
    // What the hub has no tombstone of comes in a batch of its own.
    hub.purgeTombstones(of: Person.ada.rawValue)
    let (edit, before) = (newPayload(), try await contents())
    var batchCount = 0
    let stopped = try await pass(replayFromStart: true) { batch in
      batchCount += 1
      if batchCount == 1, app.edit != nil { try await self.edit(2, edit) }
      try await apply(batch)
      if app.edit != nil { try await expectEdit(2, edit, before: before, Self.promise) }
    }
    if let stopped { throw failure(stopped) }
    try require(batchCount == 2, "a replay came in \(batchCount) batches")
    try await settle()
  }
}
