import Foundation
import LMDB
import Synchronization

// What a crash left half done: settled by what the area says, under the store's lock, by a process
// that opened for writing.
extension ProfileRegistry {
  /// Finishes or withdraws every intent that can be.
  ///
  /// One that cannot stays and is listed with its profile. It stops the calls of its own account,
  /// which meet its error again (`settleIntents(of:)`), and nobody else's.
  func settleIntents() throws {
    guard try index.hasIntents() else { return }
    for (id, intent) in try index.snapshot().intents {
      do {
        try settle(id, intent)
        unsettled.withLock { $0[id] = nil }
      } catch {
        let failure = StoreError.reading("what was begun with the profile", error)
        unsettled.withLock { $0[id] = failure }
      }
    }
  }

  /// Settles what would write an owner for this account (nil: make a signed-out area), or throws.
  func settleIntents(of account: Data?) throws {
    guard try index.hasIntents() else { return }
    for (id, intent) in try index.snapshot().intents
    where intent.account == account && (intent.kind == .provision || intent.kind == .bind) {
      try settle(id, intent)
    }
  }

  func settle(_ id: AreaID, _ intent: Intent) throws {
    switch intent.kind {
    case .provision: try settleProvision(id, intent)
    case .bind: try settleBind(id, intent)
    case .adopt: try settleAdoption(id, intent)
    case .erase: try settleErase(id)
    }
  }

  private func settleProvision(_ id: AreaID, _ intent: Intent) throws {
    let path = directory(of: id)
    if Files.exists(path + ".making") { try Files.remove(path + ".making") }
    guard Files.exists(path) else {
      try index.write { $0.setIntent(id, nil) }
      return
    }
    // It was moved into place whole; only the row is missing.
    let area = try open(id)
    let (identity, owner) = try area.readState { transaction in
      (try area.tables.identity(transaction), try area.tables.owner(transaction))
    }
    guard owner == intent.account else {
      throw StoreError.disagrees("a provisioned area has another owner than its intent")
    }
    let createdAt = identity?.createdAt ?? policy.now()
    try index.write { writing in
      writing.set(
        id,
        AreaRow(state: owner == nil ? .unowned : .owned, owner: owner, createdAt: createdAt))
      writing.setIntent(id, nil)
    }
  }

  private func settleBind(_ id: AreaID, _ intent: Intent) throws {
    guard let row = try index.row(id) else {
      throw StoreError.disagrees("an area that was being bound has no row in the registry")
    }
    let area = try open(id)
    switch try area.readState({ try area.tables.owner($0) }) {
    case nil: try index.write { $0.setIntent(id, nil) }
    case intent.account: try complete(id, intent, row: row)
    default: throw StoreError.disagrees("a bound area has another owner than its intent")
    }
  }

  /// Only the last step of an adoption is finished for its account. A freeze whose content was not
  /// taken over waits for the same account's next call, or for being withdrawn.
  private func settleAdoption(_ id: AreaID, _ intent: Intent) throws {
    guard let row = try index.row(id), let adoption = intent.adoption, let target = intent.target,
      let account = intent.account
    else { throw StoreError.disagrees("an area that was being adopted has no row in the registry") }
    let source = try open(id)
    switch try source.readState({ try source.tables.state($0) }) {
    case .active, .erased:
      // It was not frozen yet, or it was erased since.
      try index.write { $0.setIntent(id, nil) }
    case .frozen, .moved:
      guard try open(target).hasAdopted(adoption) else { return }
      try source.markMoved(AreaState.Adoption(account: account, id: adoption))
      try complete(id, intent, row: row)
    }
  }

  private func settleErase(_ id: AreaID) throws {
    guard Files.exists(directory(of: id)) else { return try finishErase(id) }
    let area = try open(id)
    guard try area.readState({ try area.tables.state($0) }) == .erased else {
      // It was never marked: the erase did not happen.
      try index.write { $0.setIntent(id, nil) }
      return
    }
    try removeErased(id)
  }
}
