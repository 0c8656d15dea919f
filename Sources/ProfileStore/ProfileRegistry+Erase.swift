import Foundation
import LMDB

// Erasing: a call of its own that names the account. (Contract section 3.)
extension ProfileRegistry {
  /// Erases the account's area: records, outbox, metadata, cursor, scratch and backups together.
  ///
  /// `erased` is written first, so that every later transaction of any process throws; the files go
  /// once no process holds them, at the latest when the store is next opened.
  /// - Parameter discardingPending: also when something is still pending or parked.
  /// - Throws: `unknownAccount`; `pendingMutations` with how much is waiting, and nothing changed;
  ///   `storage`.
  public func erase(
    _ account: VerifiedAccount, discardingPending: Bool = false
  ) async throws {
    try await locked { [self] in
      guard let area = try openOwned(account) else { throw StoreError.unknownAccount }
      let check = Self.requireNothingPending(unless: discardingPending)
      try check(try area.read { try area.pendingSummary($0) })
      try withdrawFreezes(naming: account)
      try erase(area, account: account.bytes, check)
    }
  }

  /// Erases an unowned area by name: the current one, one set aside, or one that was adopted.
  /// - Parameter discardingPending: also when it holds changes, or entries of the app's own tables,
  ///   that exist nowhere else.
  /// - Throws: `unknownArea`; `ownedByAnotherAccount` when it has an owner; `alreadyAdopted` while an
  ///   adoption of it is open; `pendingMutations` with how much there is, and nothing changed.
  public func eraseUnowned(_ area: AreaID, discardingPending: Bool = false) async throws {
    try await locked { [self] in
      guard let row = try index.row(area) else { throw StoreError.unknownArea }
      let unowned = try open(area)
      guard try unowned.owner() == nil else { throw StoreError.foreignArea }
      if case .frozen = try unowned.read({ try unowned.tables.state($0) }) {
        throw StoreError(
          .alreadyAdopted, "an adoption of this area is open: repeat or withdraw it first")
      }
      // What was adopted lives in the account's area.
      let isDiscarding = discardingPending || row.state == .moved
      try erase(
        unowned, account: nil, keepingAppEntries: !isDiscarding,
        Self.requireNothingPending(unless: isDiscarding))
    }
  }

  private static func requireNothingPending(
    unless discarding: Bool
  ) -> (PendingSummary) throws -> Void {
    { pending in
      guard discarding || pending.isEmpty else {
        throw StoreError(
          .pendingMutations,
          "\(pending.count) changes have not reached the hub, \(pending.parked) of them parked: "
            + "synchronize first, or erase with discardingPending: true", pending: pending)
      }
    }
  }

  private func withdrawFreezes(naming account: VerifiedAccount) throws {
    for (id, intent) in try index.snapshot().intents
    where intent.kind == .adopt && intent.account == account.bytes {
      guard let adoption = intent.adoption else { continue }
      try withdraw(
        try open(id), AreaState.Adoption(account: account.bytes, id: adoption))
    }
  }

  private func erase(
    _ area: Area, account: Data?, keepingAppEntries: Bool = false,
    _ requireNothing: (PendingSummary) throws -> Void
  ) throws {
    let intent = Intent(kind: .erase, account: account)
    try index.write { $0.setIntent(area.id, intent) }
    policy.onStep(.eraseIntended)
    do {
      try area.markErased(keepingAppEntries: keepingAppEntries, requireNothing)
    } catch {
      // What the area says decides: a commit that failed may yet be on disk.
      try settle(area.id, intent)
      throw error
    }
    policy.onStep(.eraseMarked)
    try removeErased(area.id)
  }

  /// Removes the files of an area that says `erased`, unless somebody still holds it: then the row
  /// goes, and the files at a later call or the next open.
  func removeErased(_ id: AreaID) throws {
    let path = directory(of: id)
    guard try Area.release(path), let lock = try FileLock.ifFree(path + "/holders.lock") else {
      try index.write { writing in
        writing.set(id, nil)
        writing.setIntent(id, Intent(kind: .erase))
      }
      return
    }
    // Under another name first, so that a half removed directory is never taken for an area.
    try withExtendedLifetime(lock) { try Files.rename(path, to: path + ".erased") }
    policy.onStep(.eraseRenamed)
    try finishErase(id)
  }

  func finishErase(_ id: AreaID) throws {
    try Files.remove(directory(of: id) + ".erased")
    policy.onStep(.eraseRemoved)
    try index.write { writing in
      writing.set(id, nil)
      writing.setIntent(id, nil)
    }
  }
}
