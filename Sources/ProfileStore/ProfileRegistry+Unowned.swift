import Foundation
public import LMDB

// The signed-out area: opened, adopted, set aside, kept. (Contract section 3.)
extension ProfileRegistry {
  /// Opens the signed-out area, made on demand. At most one is current.
  /// - Throws: `adoptionUndecided` after a sign-in that decided nothing about the data in it, until it
  ///   was adopted, set aside or explicitly kept; `sessionUnknown`; `storage`.
  public func unownedProfile() async throws -> Profile {
    let area = try await locked { [self] in
      if let id = try index.snapshot().unowned {
        let area = try open(id)
        try requireDecided(area)
        return area
      }
      return try provisionUnowned()
    }
    return Profile(area: area, registry: self, session: nil)
  }

  /// How much unowned data waits for a decision, or nil when there is none.
  public func unownedSummary() async throws -> UnownedSummary? {
    try await locked { [self] in
      guard let id = try index.snapshot().unowned else { return nil }
      let summary = try open(id).unownedSummary()
      return summary.isEmpty ? nil : summary
    }
  }

  /// Declines: the unowned area is set aside, untouched, and the next signed-out person gets a fresh
  /// one. It stays listed and is adopted only by name.
  /// - Returns: the area that was set aside, or nil when there was none.
  @discardableResult
  public func setAsideUnowned(decidedBy account: VerifiedAccount) async throws -> AreaID? {
    try await locked { [self] in
      guard let id = try index.snapshot().unowned, var row = try index.row(id) else { return nil }
      row.state = .setAside
      try index.write { writing in
        writing.set(id, row)
        writing.setUndecided(nil)
      }
      return id
    }
  }

  /// Keeps the unowned data as the current signed-out area: the next signed-out person goes on
  /// with it. The decision holds for this account until more is enqueued there.
  public func keepUnowned(decidedBy account: VerifiedAccount) async throws {
    try await locked { [self] in
      guard let id = try index.snapshot().unowned else { return }
      let decision = try Self.decision(of: account, for: try open(id))
      try index.write { writing in
        writing.setUndecided(nil)
        writing.setKept(decision)
      }
    }
  }

  /// Adopts an unowned area by name: the current one, or one that was set aside.
  ///
  /// - Parameter saving: as for ``Profile/bindAccount(_:adoptingUnownedData:saving:)``.
  /// - Throws: `unknownArea`; `alreadyAdopted`; as `bindAccount`.
  public func adopt(
    _ area: AreaID, by account: VerifiedAccount, saving: BindingClosure? = nil
  ) async throws -> Profile {
    try await bind(area, to: account, adopting: true, saving: saving)
  }

  /// Withdraws an adoption that was begun and never carried out; the area is current or set aside as
  /// it was.
  /// - Throws: `unknownArea`; `alreadyAdopted` when another account began it, or it was carried out.
  public func withdrawAdoption(of area: AreaID, by account: VerifiedAccount) async throws {
    try await locked { [self] in
      guard try index.row(area) != nil else { throw StoreError.unknownArea }
      let source = try open(area)
      guard case .frozen(let adoption) = try source.read({ try source.tables.state($0) }) else {
        throw StoreError(.alreadyAdopted, "no adoption of this area is open")
      }
      guard adoption.account == account.bytes else {
        throw StoreError(.alreadyAdopted, "another account began to adopt this area")
      }
      try withdraw(source)
    }
  }

  func withdraw(_ source: Area) throws {
    try source.thaw()
    try index.write { $0.setIntent(source.id, nil) }
  }

  /// The areas that were set aside, and how much is in each.
  public func setAsideAreas() async throws -> [UnownedSummary] {
    try await locked { [self] in
      try index.snapshot().areas.filter { $0.value.state == .setAside }
        .sorted { $0.value.createdAt < $1.value.createdAt }
        .map { try open($0.key).unownedSummary() }
    }
  }

  private func requireDecided(_ area: Area) throws {
    guard try index.undecided() != nil else { return }
    throw try undecided(area)
  }

  func undecided(_ area: Area) throws -> StoreError {
    StoreError(
      .adoptionUndecided,
      "somebody signed in and decided nothing about the unowned data: adopt it, set it aside or "
        + "keep it", unowned: try area.unownedSummary())
  }

  private func provisionUnowned() throws -> Area {
    let id = AreaID(uuid: UUID())
    let now = policy.now()
    try index.write { $0.setIntent(id, Intent(kind: .provision)) }
    try Files.makeDirectory((directory(of: id) as NSString).deletingLastPathComponent)
    try Area.create(
      id, directory: directory(of: id), limits: policy.limits, createdAt: now, fill: { _, _ in })
    try index.write { writing in
      writing.set(id, AreaRow(state: .unowned, owner: nil, createdAt: now))
      writing.setIntent(id, nil)
    }
    return try open(id)
  }
}

/// Runs in the transaction that binds or adopts, so that an app saves the person's choice and its own
/// data with it. It may run again and must have no effect outside the transaction.
///
/// The second argument lends the frozen area when its content is being adopted into another one, so
/// that the app carries its own tables over; it is nil when the area itself was bound.
public typealias BindingClosure =
  @Sendable (inout WriteTransaction, AdoptionSource?) throws -> Void

/// A frozen unowned area, readable while it is adopted.
public struct AdoptionSource: Sendable {
  let area: Area

  /// Lends a snapshot of it.
  public func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try area.read(body)
  }

  /// One of the app's own tables in it.
  /// - Throws: `storage`.
  public func table<K, V>(_ name: String, key: K.Type, value: V.Type) throws -> Table<K, V> {
    try area.environment.table(AreaTables.appPrefix + name, key: key, value: value)
  }
}

extension ProfileRegistry {
  /// Binds an area, or adopts it into the area that the account has already.
  func bind(
    _ id: AreaID, to account: VerifiedAccount, adopting: Bool, saving: BindingClosure?
  ) async throws -> Profile {
    let area = try await locked { [self] in
      guard let row = try index.row(id) else { throw StoreError.unknownArea }
      let source = try open(id)
      if let owner = try source.owner() {
        guard owner == account.bytes else { throw StoreError.foreignArea }
        return source
      }
      let summary = try source.unownedSummary()
      let own = try openOwned(account)
      if own != nil, account.clientTicket == nil { try Self.requireKnown(account, own) }
      if !summary.isEmpty, !adopting {
        throw StoreError(
          .unownedDataPresent,
          "there is unowned data: \(summary.records) records, \(summary.mutations) changes, "
            + "\(summary.appEntries) entries of the app; adopt it with adoptingUnownedData: true, "
            + "or decline with setAsideUnowned(decidedBy:)", unowned: summary)
      }
      if let own {
        guard !summary.isEmpty else { return own }
        try adopt(source, into: own, account: account, row: row, saving: saving)
        return own
      }
      try bindInPlace(source, account: account, row: row, saving: saving)
      return source
    }
    return Profile(area: area, registry: self, session: nil)
  }

  private static func requireKnown(_ account: VerifiedAccount, _ own: Area?) throws {
    // An area bound to it stands behind the account: adopting writes no owner.
    guard try own?.owner() == account.bytes else { throw StoreError.foreignArea }
  }

  private func bindInPlace(
    _ area: Area, account: VerifiedAccount, row: AreaRow, saving: BindingClosure?
  ) throws {
    guard account.clientTicket != nil else {
      throw StoreError(
        .proofRequired,
        "binding an area needs the hub's word for its owner: verify the account online once")
    }
    let intent = Intent(kind: .bind, account: account.bytes)
    try index.write { $0.setIntent(area.id, intent) }
    do {
      try area.writeBlocking { transaction in
        try area.bind(to: account, &transaction)
        try saving?(&transaction, nil)
      }
    } catch {
      try index.write { $0.setIntent(area.id, nil) }
      throw error
    }
    try complete(area.id, intent, row: row)
  }

  private func adopt(
    _ source: Area, into target: Area, account: VerifiedAccount, row: AreaRow,
    saving: BindingClosure?
  ) throws {
    let proposed = UUID()
    let adoption = try source.freeze(for: account, adoption: proposed)
    let intent = Intent(
      kind: .adopt, account: account.bytes, adoption: adoption.id, target: target.id)
    try index.write { $0.setIntent(source.id, intent) }
    try target.adopt(source, adoption, policy: policy) { transaction in
      try saving?(&transaction, AdoptionSource(area: source))
    }
    try source.markMoved(adoption)
    try complete(source.id, intent, row: row)
  }

  /// Completes the registry's row, and forgets the intent, in one transaction.
  func complete(_ area: AreaID, _ intent: Intent, row: AreaRow) throws {
    var row = row
    if intent.kind == .adopt {
      row.state = .moved
    } else {
      row.state = .owned
      row.owner = intent.account
    }
    try index.write { writing in
      writing.set(area, row)
      writing.setIntent(area, nil)
      writing.setUndecided(nil)
    }
  }
}

extension StoreError {
  static let unknownArea = StoreError(.unknownArea, "this store has no such area")
}
