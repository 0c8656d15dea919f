import Foundation
import LMDB

// What a crash left half done: settled by what the area says, under the store's lock.
extension ProfileRegistry {
  /// Finishes or withdraws every intent. Under the lock, by a process that opened for writing.
  func settleIntents() throws {
    guard try index.hasIntents() else { return }
    for (id, intent) in try index.snapshot().intents {
      switch intent.kind {
      case .provision: try settleProvision(id, intent)
      case .bind: try settleBind(id, intent)
      case .adopt: try settleAdoption(id, intent)
      case .erase: try settleErase(id)
      }
    }
  }

  private func settleProvision(_ id: AreaID, _ intent: Intent) throws {
    let path = directory(of: id)
    if FileManager.default.fileExists(atPath: path + ".making") {
      try Files.remove(path + ".making")
    }
    guard FileManager.default.fileExists(atPath: path) else {
      try index.write { $0.setIntent(id, nil) }
      return
    }
    // It was moved into place whole; only the row is missing.
    let area = try open(id)
    let (identity, owner) = try area.environment.read { transaction in
      (try area.tables.identity(transaction), try area.tables.owner(transaction))
    }
    guard owner == intent.account else {
      throw StoreError(
        .registryDisagrees, "a provisioned area has another owner than its intent; see profilectl")
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
    guard let row = try index.row(id), FileManager.default.fileExists(atPath: directory(of: id))
    else {
      try index.write { $0.setIntent(id, nil) }
      return
    }
    let area = try open(id)
    let owner = try area.environment.read { try area.tables.owner($0) }
    if owner == nil {
      try index.write { $0.setIntent(id, nil) }
    } else if owner == intent.account {
      try complete(id, intent, row: row)
    } else {
      throw StoreError(
        .registryDisagrees, "a bound area has another owner than its intent; see profilectl")
    }
  }

  /// Only the last step of an adoption is finished for its account. A freeze whose content was not
  /// taken over waits for the same account's next call, or for being withdrawn.
  private func settleAdoption(_ id: AreaID, _ intent: Intent) throws {
    guard let row = try index.row(id), let adoption = intent.adoption, let target = intent.target,
      let account = intent.account
    else {
      try index.write { $0.setIntent(id, nil) }
      return
    }
    guard FileManager.default.fileExists(atPath: directory(of: target)),
      FileManager.default.fileExists(atPath: directory(of: id))
    else { return }
    guard try hasAdopted(target, adoption) else { return }
    try open(id).markMoved(AreaState.Adoption(account: account, id: adoption))
    try complete(id, intent, row: row)
  }

  private func hasAdopted(_ target: AreaID, _ adoption: UUID) throws -> Bool {
    let area = try open(target)
    return try area.environment.read { transaction in
      try transaction.contains(adoption, in: area.tables.adoptions)
    }
  }

  private func settleErase(_ id: AreaID) throws {
    let path = directory(of: id)
    guard FileManager.default.fileExists(atPath: path) else {
      try index.write { writing in
        writing.set(id, nil)
        writing.setIntent(id, nil)
      }
      return
    }
    if FileManager.default.fileExists(atPath: path + "/data.mdb") {
      let area = try open(id)
      guard try area.environment.read({ try area.tables.state($0) }) == .erased else {
        // It was never marked: the erase did not happen.
        try index.write { $0.setIntent(id, nil) }
        return
      }
    }
    try removeErased(id)
  }

  /// Makes the index anew from what the areas say of themselves.
  ///
  /// Areas without an owner: whether one had been set aside is not known any more, so a single one
  /// is current but undecided, and several are all set aside. No two guests' data are mixed so.
  func rebuild() throws {
    var rows: [AreaID: AreaRow] = [:]
    var intents: [AreaID: Intent] = [:]
    for id in try areasOnDisk() {
      let area = try open(id)
      let (identity, owner, state) = try area.environment.read { transaction in
        (
          try area.tables.identity(transaction), try area.tables.owner(transaction),
          try area.tables.state(transaction)
        )
      }
      let createdAt = identity?.createdAt ?? policy.now()
      if state == .erased {
        intents[id] = Intent(kind: .erase, account: owner)
      } else if let owner {
        rows[id] = AreaRow(state: .owned, owner: owner, createdAt: createdAt)
      } else if case .moved = state {
        rows[id] = AreaRow(state: .moved, owner: nil, createdAt: createdAt)
      } else {
        rows[id] = AreaRow(state: .unowned, owner: nil, createdAt: createdAt)
      }
    }
    try refuseTwins(rows)
    let unowned = rows.filter { $0.value.state == .unowned }.keys
    if unowned.count > 1 {
      for id in unowned { rows[id]?.state = .setAside }
    }
    let undecided = unowned.count == 1 ? Data("rebuilt".utf8) : nil
    try index.write { writing in
      for (id, row) in rows { writing.set(id, row) }
      for (id, intent) in intents { writing.setIntent(id, intent) }
      if let undecided { writing.setUndecided(undecided) }
      writing.setFormat()
    }
    try settleIntents()
  }

  private func refuseTwins(_ rows: [AreaID: AreaRow]) throws {
    var seen: Set<Data> = []
    for row in rows.values {
      guard let owner = row.owner else { continue }
      guard seen.insert(owner).inserted else {
        throw StoreError(
          .registryDisagrees,
          "two areas say the same owner and there is no registry to tell which counts; see "
            + "profilectl audit")
      }
    }
  }
}
