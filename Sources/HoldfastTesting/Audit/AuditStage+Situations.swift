import Foundation
import HubProtocol
import ProfileStore
import ProfileSync

extension AuditStage {
  /// Plays the situation.
  /// - Throws: ``AuditDeviation`` for what the app got wrong; ``Missing``.
  func play() async throws {
    switch situation {
    case .ordinary: try await ordinary()
    case .sameBatchTwice: try await sameBatchTwice()
    case .throwHalfWay: try await throwHalfWay()
    case .cancellation: try await cancellation()
    case .crashBeforeCommit: try await crashBeforeCommit()
    case .crashAfterCommit: try await crashAfterCommit()
    case .accountSwitch: try await accountSwitch()
    case .wrongDocument: try await wrongDocument()
    case .sameIDsInTwoAccounts: try await sameIDsInTwoAccounts()
    case .pendingEdit: try await pendingEdit()
    case .editDuringClosure: try await editDuringClosure()
    case .parkedEdit: try await parkedEdit()
    case .pendingDelete: try await pendingDelete()
    case .tombstone: try await tombstone()
    case .unknownTombstone: try await unknownTombstone()
    case .inferredDeletion: try await inferredDeletion()
    case .replay: try await replay()
    case .newEpoch: try await newEpoch()
    case .equalVersion: try await equalVersion()
    case .restoredStore: try await restoredStore()
    case .position: try await position()
    case .emptyBatch: try await emptyBatch()
    case .emptyPayload: try await emptyPayload()
    case .equivalentIDs: try await equivalentIDs()
    }
  }

  // MARK: Batches

  private func ordinary() async throws {
    try await begin()
    try await put(2, 4)
    try await bring()
    try await expectHub("after an update and a new record")
  }

  private func sameBatchTwice() async throws {
    try await begin()
    try await put(1, 4)
    try await bringWithoutCommit()
    try await bring()
    try await expectHub("after the second delivery")
  }

  /// Cancels the task where the closure reads the changes, and where it asks about the second one.
  private func cancellation() async throws {
    try await begin()
    var isReached = false
    for (question, number) in [(ChangeBatch.Question.changes, 1), (.isPending, 2)] {
      try await put(1, 2, 3 + number)
      let cue = Cue(question, number)
      await cancelledPass(cue)
      // Where it did not ask, nothing was cancelled.
      guard cue.hasCome else { continue }
      isReached = true
      try await bring()
      try await expectHub("after a pass that was cancelled and one that was not")
    }
    guard isReached else { throw Missing(reason: "the closure asked nothing of the batch") }
  }

  private func cancelledPass(_ cue: Cue, isolation: isolated (any Actor)? = #isolation) async {
    let task = Task {
      // It runs where the app runs.
      _ = isolation
      _ = try await pass { batch in
        let watched = batch.watched { question in
          if cue.isNow(question) { withUnsafeCurrentTask { $0?.cancel() } }
        }
        try await apply(watched)
      }
    }
    // However it ends: what counts is what the next pass makes of it.
    _ = await task.result
  }

  // MARK: Crashes

  private func crashBeforeCommit() async throws {
    try await switchTo(.ada)
    try await put(1, 2, 3)
    try await bringWithoutCommit()
    try await crash()
    try await bring()
    try await expectHub("after the next launch and its first pass")
  }

  private func crashAfterCommit() async throws {
    try await begin()
    try await put(1, 4)
    try await bring()
    try await crash()
    try await expectHub("after the next launch, before any pass")
    try await put(2)
    try await bring()
    try await expectHub("after the next launch and its first pass")
  }

  // MARK: Deletions

  private func tombstone() async throws {
    try await begin()
    try await delete(2)
    try await bring()
    try await expectHub("after a deletion")
    try await put(2)
    try await bring()
    try await expectHub("after the record was put again")
  }

  private func unknownTombstone() async throws {
    try await begin()
    try await put(4)
    try await delete(4)
    try await bring()
    try await expectHub("after the deletion of a record that never came")
  }

  private func inferredDeletion() async throws {
    try await begin()
    try await delete(2)
    try await put(4)
    hub.purgeTombstones(of: Person.ada.rawValue)
    let owner = try place(.ada).account.bytes
    var hasCome = false
    let stopped = try await pass { batch in
      let changes = try batch.changes(localOwner: owner).copies()
      hasCome = hasCome || changes.contains(where: \.isInferred)
      try await apply(batch)
    }
    if let stopped { throw failure(stopped) }
    try require(hasCome, "no deletion was inferred")
    try await expectHub("after a whole scan")
  }

  // MARK: Contents

  private func emptyPayload() async throws {
    try await begin()
    try await hub.write([(id(4), Data())], of: Person.ada.rawValue)
    try await bring()
    try await expectHub("after a put of no bytes")
  }

  private func equivalentIDs() async throws {
    try await switchTo(.ada)
    let ids = ["\u{e9}", "e\u{301}"].map { RecordID("\(id(1).text)/\($0)") }
    try await hub.write(ids.map { ($0, newPayload()) }, of: Person.ada.rawValue)
    try await bring()
    try await expectHub("after two records whose IDs look alike")
    try await hub.write([(ids[0], nil)], of: Person.ada.rawValue)
    try await bring()
    try await expectHub("after one of them was deleted")
  }
}
