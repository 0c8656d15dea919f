import Foundation
import HubProtocol
import LMDB

// Owners are written once, here, and never changed afterwards. (Contract section 3.)
extension Area {
  /// Gives an unowned area its owner for ever, in the caller's transaction.
  /// - Parameters:
  ///   - client: the ID that the hub accepted for the account; nil: a pass registers its own.
  ///   - isAdopting: whether data that is there becomes the account's.
  ///   - appTables: the app's own tables that count as data.
  /// - Throws: `unownedDataPresent` unless `isAdopting`. It is asked here, since an enqueue may have
  ///   come in after the caller looked.
  func bind(
    to account: VerifiedAccount, client: UUID?, isAdopting: Bool, appTables: [AppTable],
    _ transaction: inout WriteTransaction
  ) throws {
    if let owner = try tables.owner(transaction) {
      guard owner == account.bytes else { throw StoreError.foreignArea }
      return
    }
    try requireActive(transaction)
    let summary = try unownedSummary(appTables, transaction)
    guard isAdopting || summary.isEmpty else { throw StoreError.unownedDataPresent(summary) }
    try baseOnAbsence(&transaction)
    try tables.setOwner(account.bytes, &transaction)
    try tables.setNumber(
      .unownedThrough, try tables.totals(transaction).lastOrder, &transaction)
    if let client {
      try tables.setClient(ClientIdentity(id: client, isRegistered: true), &transaction)
    }
  }

  /// Adopting never overwrites what the account has at the hub: the first mutation of each record
  /// goes up as *must not exist yet*, each later one is based on the one before.
  private func baseOnAbsence(_ transaction: inout WriteTransaction) throws {
    var previous: [RecordID: UUID] = [:]
    try updateEntries(&transaction) { entry in
      let base = previous[entry.record].map { Mutation.Base.mutation($0) } ?? .mustNotExist
      previous[entry.record] = entry.mutation
      defer { entry.base = base }
      return entry.base != base
    }
  }

  func requireActive<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws {
    switch try tables.state(transaction) {
    case .active: return
    case .frozen:
      throw StoreError(
        .moved,
        "the unowned area is being adopted: repeat the adoption of its account, or withdraw it")
    case .moved: throw StoreError.movedArea
    case .erased: throw StoreError.erasedArea
    }
  }

  /// The adoption that an account's call would begin or go on with.
  /// - Throws: `alreadyAdopted` when another account has begun one.
  func adoption(
    by account: VerifiedAccount
  ) throws -> (adoption: AreaState.Adoption, state: AreaState) {
    let state = try read { try tables.state($0) }
    switch state {
    case .active: return (AreaState.Adoption(account: account.bytes, id: UUID()), state)
    case .frozen(let adoption), .moved(let adoption):
      guard adoption.account == account.bytes else { throw StoreError.adoptedByAnother }
      return (adoption, state)
    case .erased: throw StoreError.erasedArea
    }
  }

  /// Freezes an unowned area for one account: from then on its enqueues throw `moved`.
  package func freeze(for adoption: AreaState.Adoption) throws {
    try writeBlocking { transaction in
      guard try tables.owner(transaction) == nil else { throw StoreError.foreignArea }
      switch try tables.state(transaction) {
      case .active: try tables.setState(.frozen(adoption), &transaction)
      case .frozen(adoption), .moved(adoption): return
      case .frozen, .moved: throw StoreError.adoptedByAnother
      case .erased: throw StoreError.erasedArea
      }
    }
  }

  /// Undoes a freeze whose content was never taken over.
  package func thaw() throws {
    try writeBlocking { transaction in
      guard case .frozen = try tables.state(transaction) else { return }
      try tables.setState(.active, &transaction)
    }
  }

  /// The last step of an adoption, repeatable.
  package func markMoved(_ adoption: AreaState.Adoption) throws {
    try writeBlocking(for: .draining) { try tables.setState(.moved(adoption), &$0) }
  }

  /// Whether this area has taken over the content, also if it was erased since.
  func hasAdopted(_ adoption: UUID) throws -> Bool {
    try readState { try $0.contains(adoption, in: tables.adoptions) }
  }

  /// Takes over records and outbox of a frozen area, and runs the app's closure, all in one
  /// transaction of this area. A second time it changes nothing.
  func adopt(
    _ source: Area, _ adoption: AreaState.Adoption, policy: StorePolicy,
    saving: (inout WriteTransaction) throws -> Void
  ) throws {
    try writeBlocking { transaction in
      guard try tables.owner(transaction) == adoption.account else { throw StoreError.foreignArea }
      guard try !transaction.contains(adoption.id, in: tables.adoptions) else { return }
      var receipt = AdoptionReceipt(
        source: source.id, adoptedAt: policy.now(), mutations: 0, records: 0)
      let hadEdits = try editedRecords(transaction)
      var previous: [RecordID: UUID] = [:]
      var totals = try tables.totals(transaction)
      try source.read { content in
        try content.scan(source.tables.outbox) { key, bytes in
          var entry = try OutboxEntry(order: UInt64Codec.decode(key), bytes: bytes)
          let isFirst = previous[entry.record] == nil
          switch try familiarity(of: entry, transaction) {
          case .new: break
          case .same: return .next
          case .reused:
            entry.mutation = UUID()
            entry.isCallerGiven = false
            entry.parked = Parked(reason: .adopted, code: HubCode.mutationReused.rawValue)
          }
          // Adopting never overwrites what the account already has at the hub.
          entry.base = previous[entry.record].map { .mutation($0) } ?? .mustNotExist
          if isFirst, hadEdits.contains(entry.record), entry.parked == nil {
            entry.parked = Parked(reason: .adopted)
          }
          previous[entry.record] = entry.mutation
          entry.stamp = adoption.account
          entry.isShown =
            try !hadEdits.contains(entry.record)
            && transaction.value(of: entry.record, in: tables.known)?.body == nil
          try add(entry, &totals, &transaction)
          receipt.mutations += 1
          if policy.keepsRecords, isFirst, entry.isShown { receipt.records += 1 }
          return .next
        }
      }
      try tables.setTotals(totals, &transaction)
      try transaction.put(receipt, for: adoption.id, in: tables.adoptions)
      try saving(&transaction)
    }
  }

  private enum Familiarity {
    case new
    /// The app has enqueued it in both areas, as it does after a crash with what is left.
    case same
    /// The same UUID stands for another change here; both are kept.
    case reused
  }

  private func familiarity(
    of entry: OutboxEntry, _ transaction: borrowing WriteTransaction
  ) throws -> Familiarity {
    var known: OutboxEntry?
    switch try transaction.value(of: entry.mutation, in: tables.mutations) {
    case nil:
      known = try orders(of: entry.record, transaction).lazy
        .compactMap { try self.entry($0, transaction) }.first { $0.mutation == entry.mutation }
    case .settled: return .same
    case .waiting(let order):
      known = try self.entry(order, transaction)
      if known == nil { throw StoreError.damaged("outbox") }
    }
    guard let known else { return .new }
    let isSame =
      known.kind == entry.kind && known.record == entry.record && known.payload == entry.payload
    return isSame ? .same : .reused
  }

  private func editedRecords<T: Transaction & ~Copyable>(
    _ transaction: borrowing T
  ) throws -> Set<RecordID> {
    var records: Set<RecordID> = []
    try transaction.scan(tables.edits) { key, _ in
      records.insert(try RecordIDCodec.decode(key))
      return .next
    }
    return records
  }

  /// Writes `erased`, which every later transaction of any process reads and throws on.
  /// - Parameters:
  ///   - keepingAppEntries: throws `pendingMutations` when the app's own tables hold entries.
  ///   - requireNothing: sees what is pending, in the same transaction.
  package func markErased(
    keepingAppEntries: Bool = false, _ requireNothing: (PendingSummary) throws -> Void = { _ in }
  ) throws {
    let appTables = keepingAppEntries ? try appTables() : []
    try writeBlocking(for: .draining) { transaction in
      try requireNothing(try pendingSummary(transaction))
      let summary = try unownedSummary(appTables, transaction)
      guard summary.appEntries == 0 else { throw StoreError.appEntriesPresent(summary) }
      try tables.setState(.erased, &transaction)
    }
  }

  /// How much there is in an unowned area.
  func unownedSummary() throws -> UnownedSummary {
    let appTables = try appTables()
    return try read { try unownedSummary(appTables, $0) }
  }

  private func unownedSummary<T: Transaction & ~Copyable>(
    _ appTables: [AppTable], _ transaction: borrowing T
  ) throws -> UnownedSummary {
    let totals = try tables.totals(transaction)
    var appEntries = 0
    for table in appTables { appEntries += try transaction.count(of: table) }
    return UnownedSummary(
      area: id, records: try shownRecordCount(transaction),
      mutations: Int(clamping: totals.count), appEntries: appEntries,
      payloadByteCount: Int(clamping: totals.payloadByteCount))
  }

  /// One of the app's own tables, whatever its codecs are.
  typealias AppTable = Table<BytesCodec, BytesCodec>

  /// The app's own tables, opened: before the transaction that counts them.
  func appTables() throws -> [AppTable] {
    try appTableNames().map { try appTable($0, key: BytesCodec.self, value: BytesCodec.self) }
  }

  /// The names of the app's own tables, without their prefix.
  func appTableNames() throws -> [String] {
    try storage { environment in
      try environment.tableNames().filter { $0.hasPrefix(AreaTables.appPrefix) }
        .map { String($0.dropFirst(AreaTables.appPrefix.count)) }
    }
  }
}

extension StoreError {
  static let movedArea = StoreError(
    .moved, "the unowned area was adopted: use the profile that the adoption returned")
  static func appEntriesPresent(_ summary: UnownedSummary) -> StoreError {
    StoreError(
      .pendingMutations,
      "the app's own tables hold \(summary.appEntries) unowned entries: adopt them, or erase with "
        + "discardingPending: true", unowned: summary)
  }
  static let adoptedByAnother = StoreError(
    .alreadyAdopted, "another account has adopted this unowned data, or is adopting it")
}
