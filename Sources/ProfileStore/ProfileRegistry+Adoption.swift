import Foundation
import LMDB

// Binding an unowned area for ever, or adopting its content into the area that an account has
// already: intent, area, row. (Contract section 3.)
extension ProfileRegistry {
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
      guard adoption.account == account.bytes else { throw StoreError.adoptedByAnother }
      try withdraw(source, adoption)
    }
  }

  /// Undoes a freeze once it is sure that nobody has the content.
  func withdraw(_ source: Area, _ adoption: AreaState.Adoption) throws {
    if let target = try index.intent(source.id)?.target {
      guard try !open(target).hasAdopted(adoption.id) else {
        throw StoreError(.alreadyAdopted, "the adoption was carried out")
      }
    }
    try source.thaw()
    try index.write { $0.setIntent(source.id, nil) }
  }

  /// Binds an area, or adopts it into the area that the account has already.
  func bind(
    _ id: AreaID, to account: VerifiedAccount, adopting: Bool, saving: BindingClosure?
  ) async throws -> Profile {
    let area = try await locked { [self] in
      guard let row = try index.row(id) else { throw StoreError.unknownArea }
      try settleIntents(of: account.bytes)
      let source = try open(id)
      if let owner = try source.owner() {
        guard owner == account.bytes else { throw StoreError.foreignArea }
        return source
      }
      let (adoption, state) = try source.adoption(by: account)
      let own = try openOwned(account)
      if case .moved = state, let own, try own.hasAdopted(adoption.id) { return own }
      let summary = try source.unownedSummary()
      guard adopting || summary.isEmpty else { throw StoreError.unownedDataPresent(summary) }
      guard let own else {
        // The freeze names an account that has no area any more.
        if case .frozen = state { try withdraw(source, adoption) }
        try bindInPlace(source, account: account, adopting: adopting, row: row, saving: saving)
        return source
      }
      if summary.isEmpty, state == .active { return own }
      try Self.requireCarried(summary, by: saving)
      try adopt(source, adoption, into: own, row: row, saving: saving)
      own.signals.outbox.raise()
      return own
    }
    return Profile(area: area, registry: self, session: nil)
  }

  /// The app's own tables are carried over by the app's closure, or not at all.
  private static func requireCarried(
    _ summary: UnownedSummary, by saving: BindingClosure?
  ) throws(StoreError) {
    guard saving != nil || summary.appEntries == 0 else {
      throw StoreError(
        .closureRequired,
        "the app's own tables hold \(summary.appEntries) unowned entries and the account has an "
          + "area already: pass a `saving` closure that carries them over", unowned: summary)
    }
  }

  private func bindInPlace(
    _ area: Area, account: VerifiedAccount, adopting: Bool, row: AreaRow, saving: BindingClosure?
  ) throws {
    guard let ticket = account.clientTicket else {
      throw StoreError(
        .proofRequired,
        "binding an area needs the hub's word for its owner: verify the account online once")
    }
    try requireNoHiddenArea(of: account.bytes)
    let appTables = try area.appTables()
    let intent = Intent(kind: .bind, account: account.bytes)
    try index.write { $0.setIntent(area.id, intent) }
    policy.onStep(.bindIntended)
    let client = ticket.take()
    let binding = AreaBinding(source: nil, tables: BindingTables(area))
    do {
      try binding.tables.run {
        try area.writeBlocking { transaction in
          try area.bind(
            to: account, client: client, isAdopting: adopting, appTables: appTables, &transaction)
          try saving?(&transaction, binding)
          try binding.tables.requireNoneWanted()
        }
      }
    } catch {
      ticket.giveBack(client)
      // What the area says decides: a commit that failed may yet be on disk.
      try settle(area.id, intent)
      throw error
    }
    policy.onStep(.bindWritten)
    try complete(area.id, intent, row: row)
  }

  private func adopt(
    _ source: Area, _ adoption: AreaState.Adoption, into target: Area, row: AreaRow,
    saving: BindingClosure?
  ) throws {
    let intent = Intent(
      kind: .adopt, account: adoption.account, adoption: adoption.id, target: target.id)
    let wasOpen = try index.intent(source.id) != nil
    try index.write { $0.setIntent(source.id, intent) }
    policy.onStep(.adoptIntended)
    let binding = AreaBinding(
      source: AdoptionSource(area: source), tables: BindingTables(target))
    do {
      try source.freeze(for: adoption)
      policy.onStep(.adoptFrozen)
      // Only now does nothing come in any more.
      try Self.requireCarried(try source.unownedSummary(), by: saving)
      try binding.tables.run {
        try target.adopt(source, adoption, policy: policy) { transaction in
          try saving?(&transaction, binding)
          try binding.tables.requireNoneWanted()
        }
      }
    } catch {
      // Nothing has changed, unless an earlier call had frozen it already.
      if !wasOpen, try !target.hasAdopted(adoption.id) { try withdraw(source, adoption) }
      throw error
    }
    policy.onStep(.adoptCopied)
    try source.markMoved(adoption)
    policy.onStep(.adoptMoved)
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
    }
  }
}

extension StoreError {
  static func unownedDataPresent(_ summary: UnownedSummary) -> StoreError {
    StoreError(
      .unownedDataPresent,
      "there is unowned data: \(summary.records) records, \(summary.mutations) changes, "
        + "\(summary.appEntries) entries of the app; adopt it with adoptingUnownedData: true, or "
        + "decline with setAsideUnowned(decidedBy:)", unowned: summary)
  }
}
