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
      guard let area = try openOwned(account) else {
        throw StoreError(.unknownAccount, "this store has no profile of that account")
      }
      try withdrawFreezes(naming: account)
      try requireNothingPending(area, discardingPending)
      try erase(area, account: account.bytes)
    }
  }

  /// Erases an unowned area by name: the current one, one set aside, or one that was adopted.
  /// - Throws: `unknownArea`; `ownedByAnotherAccount` when it has an owner; `pendingMutations`.
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
      if row.state != .moved { try requireNothingPending(unowned, discardingPending) }
      try erase(unowned, account: nil)
      if row.state == .unowned { try index.write { $0.setUndecided(nil) } }
    }
  }

  private func requireNothingPending(_ area: Area, _ discarding: Bool) throws {
    let pending = try area.read { try area.pendingSummary($0) }
    guard discarding || pending.isEmpty else {
      throw StoreError(
        .pendingMutations,
        "\(pending.count) changes have not reached the hub, \(pending.parked) of them parked: "
          + "synchronize first, or erase with discardingPending: true", pending: pending)
    }
  }

  private func withdrawFreezes(naming account: VerifiedAccount) throws {
    for (id, intent) in try index.snapshot().intents
    where intent.kind == .adopt && intent.account == account.bytes {
      try withdraw(try open(id))
    }
  }

  private func erase(_ area: Area, account: Data?) throws {
    try index.write { $0.setIntent(area.id, Intent(kind: .erase, account: account)) }
    try area.markErased()
    // The account has no area from here on; the row goes with the files.
    try removeErased(area.id)
  }

  /// Removes the files of an area that says `erased`, unless another process still holds it.
  func removeErased(_ id: AreaID) throws {
    let path = directory(of: id)
    try Area.release(path)
    if FileManager.default.fileExists(atPath: path + "/holders.lock") {
      guard let lock = try FileLock.ifFree(path + "/holders.lock") else {
        // Another process has it open: its next transaction throws `erased`, the files go later.
        try index.write { writing in
          writing.set(id, nil)
          writing.setIntent(id, Intent(kind: .erase))
        }
        return
      }
      try withExtendedLifetime(lock) { try removeFiles(path) }
    } else {
      try removeFiles(path)
    }
    try index.write { writing in
      writing.set(id, nil)
      writing.setIntent(id, nil)
    }
  }

  private func removeFiles(_ path: String) throws {
    // Under another name first, so that a half removed directory is never taken for an area.
    let doomed = path + ".erased"
    if FileManager.default.fileExists(atPath: path) { try Files.rename(path, to: doomed) }
    try Files.remove(doomed)
  }
}
