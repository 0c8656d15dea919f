import ProfileSync

// Positions of batches, and stores and hubs that are older than the area believes.
extension AuditStage {
  /// What the app has saved; nil where positions are not looked at.
  func savedPosition() async throws -> BatchPosition? {
    guard let position = app.position else { return nil }
    do { return try await position(try place(.ada)) } catch {
      throw AuditDeviation(
        expected: "the app's position can be read",
        observed: "`position` threw \(Self.name(of: error))")
    }
  }

  private func expectPosition(_ wanted: BatchPosition?, _ moment: String) async throws {
    guard let saved = try await savedPosition(), let wanted, saved != wanted else { return }
    throw AuditDeviation(
      expected: "\(moment), the app has the position \(wanted.number) of the last batch",
      observed: "it has \(saved.number)")
  }

  /// A pass that the app's position is given to.
  /// - Returns: the position of its last batch.
  private func bringFromPosition(
    _ position: BatchPosition?, replayFromStart: Bool = false
  ) async throws -> BatchPosition? {
    var last: BatchPosition?
    let stopped = try await pass(replayFromStart: replayFromStart, from: position) { batch in
      last = batch.position
      try await apply(batch)
    }
    if let stopped { throw failure(stopped) }
    return last
  }

  func position() async throws {
    guard app.position != nil else { throw Missing(reason: "the app has given no `position`") }
    try await begin()
    try await put(1, 4)
    let last = try await bringFromPosition(nil)
    try await expectPosition(last, "after a pass")
    try await crash()
    try await expectPosition(last, "after the next launch")
  }

  func restoredStore() async throws {
    try await begin()
    try await backUp()
    try await put(1, 4)
    try await bring()
    try await restoreBackup()
    do {
      guard let position = try await savedPosition() else {
        // Nobody but a person knows then that it came from a backup.
        return try await replayed(from: nil)
      }
      _ = try await bringFromPosition(position)
    } catch let error as SyncError where error.code == .appStoreBehind {
      return try await replayed(from: try await savedPosition())
    }
    try await expectHub("after a pass from the position that the restored store has")
  }

  private func replayed(from position: BatchPosition?) async throws {
    try await expectPosition(
      try await bringFromPosition(position, replayFromStart: true), "after the replay")
    try await expectHub("after the replay")
  }

  /// The hub was restored from a backup: what was written since is gone, and versions are given again.
  func newEpoch() async throws {
    try await begin()
    let backup = hub.backUp()
    try await put(1, 2)
    try await bring()
    hub.restore(backup)
    try await put(3)
    let stopped = try await pass { try await apply($0) }
    try require((stopped as? SyncError)?.code == .epochChanged, "no new epoch was noticed")
    try await bring(replayFromStart: true)
    try await expectHub("after the replay")
  }

  /// A replay that has nothing for an app but that it is complete again: all that comes is older than
  /// what is known.
  func emptyBatch() async throws {
    try await begin()
    try await put(1, 2, 3)
    try await bring()
    hub.fail(.olderVersions, at: .changes, times: nil)
    var counts: [Int] = []
    var last: BatchPosition?
    let stopped = try await pass(replayFromStart: true, from: .start) { batch in
      counts.append(batch.count)
      last = batch.position
      try await apply(batch)
    }
    hub.stopFailing()
    if let stopped { throw failure(stopped) }
    try require(counts == [0], "batches of \(counts) came instead of an empty one")
    try await expectPosition(last, "after a batch without changes")
    try await expectHub("after a batch without changes")
  }
}
