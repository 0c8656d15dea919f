import Foundation
import HubProtocol
import LMDB

// Owners are written once, here, and never changed afterwards. (Contract section 3.)
extension Area {
  /// Gives an unowned area its owner for ever, in the caller's transaction.
  func bind(
    to account: VerifiedAccount, _ transaction: inout WriteTransaction
  ) throws {
    if let owner = try tables.owner(transaction) {
      guard owner == account.bytes else { throw StoreError.foreignArea }
      return
    }
    try requireActive(transaction)
    try tables.setOwner(account.bytes, &transaction)
    try tables.setNumber(
      .unownedThrough, try tables.number(.lastOrder, transaction), &transaction)
    try takeClient(from: account, &transaction)
  }

  /// The client ID that the hub accepted for the account, or a new one that a pass registers.
  func takeClient(
    from account: VerifiedAccount, _ transaction: inout WriteTransaction
  ) throws {
    guard let client = account.clientTicket?.take() else { return }
    try tables.setClient(ClientIdentity(id: client, isRegistered: true), &transaction)
  }

  func requireActive<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws {
    switch try tables.state(transaction) {
    case .active: return
    case .frozen, .moved:
      throw StoreError(
        .moved, "the unowned area is adopted: use the profile that the adoption returned")
    case .erased: throw StoreError.erasedArea
    }
  }

  /// Freezes an unowned area for one account: from then on its enqueues throw `moved`.
  /// - Returns: the adoption that holds, an earlier one of the same account included.
  func freeze(
    for account: VerifiedAccount, adoption id: UUID
  ) throws -> AreaState.Adoption {
    try writeBlocking { transaction in
      guard try tables.owner(transaction) == nil else { throw StoreError.foreignArea }
      switch try tables.state(transaction) {
      case .active:
        let adoption = AreaState.Adoption(account: account.bytes, id: id)
        try tables.setState(.frozen(adoption), &transaction)
        return adoption
      case .frozen(let adoption), .moved(let adoption):
        guard adoption.account == account.bytes else {
          throw StoreError(
            .alreadyAdopted,
            "another account has adopted this unowned data, or is adopting it")
        }
        return adoption
      case .erased: throw StoreError.erasedArea
      }
    }
  }

  /// Undoes a freeze whose content was never taken over.
  func thaw() throws {
    try writeBlocking { transaction in
      guard case .frozen = try tables.state(transaction) else { return }
      try tables.setState(.active, &transaction)
    }
  }

  /// The last step of an adoption, repeatable.
  func markMoved(_ adoption: AreaState.Adoption) throws {
    try writeBlocking { try tables.setState(.moved(adoption), &$0) }
  }

  func hasAdopted(_ adoption: UUID) throws -> Bool {
    try read { try $0.contains(adoption, in: tables.adoptions) }
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
      try source.read { content in
        try content.scan(source.tables.outbox) { key, bytes in
          var entry = try OutboxEntry(order: key.loadBigEndian(), bytes: bytes)
          guard try transaction.value(of: entry.mutation, in: tables.mutations) == nil else {
            return .next
          }
          let isFirst = previous[entry.record] == nil
          // Adopting never overwrites what the account already has at the hub.
          entry.base = previous[entry.record].map { .mutation($0) } ?? .mustNotExist
          if isFirst, hadEdits.contains(entry.record) { entry.parked = Parked(reason: .adopted) }
          previous[entry.record] = entry.mutation
          entry.stamp = adoption.account
          entry.order = try tables.number(.lastOrder, transaction) + 1
          try tables.setNumber(.lastOrder, entry.order, &transaction)
          try add(entry, &transaction)
          receipt.mutations += 1
          if policy.keepsRecords, !hadEdits.contains(entry.record) {
            let current = try transaction.value(of: entry.record, in: tables.records)
            if current == nil || current?.isLocal == true {
              try showLocally(entry, &transaction)
              if isFirst { receipt.records += 1 }
            }
          }
          return .next
        }
      }
      try transaction.put(receipt, for: adoption.id, in: tables.adoptions)
      try saving(&transaction)
    }
  }

  private func editedRecords<T: Transaction & ~Copyable>(
    _ transaction: borrowing T
  ) throws -> Set<RecordID> {
    var records: Set<RecordID> = []
    try transaction.scan(tables.outboxByRecord) { key, _ in
      records.insert(try RecordOrderCodec.decode(key).record)
      return .next
    }
    return records
  }

  /// Writes `erased`, which every later transaction of any process reads and throws on.
  func markErased() throws {
    try environment.writeBlocking { try tables.setState(.erased, &$0) }
  }

  /// How much there is in an unowned area.
  func unownedSummary() throws -> UnownedSummary {
    let appTables = try environment.tableNames().filter { $0.hasPrefix(AreaTables.appPrefix) }
      .map { try environment.table($0, key: BytesCodec.self, value: BytesCodec.self) }
    return try read { transaction in
      let totals = try tables.totals(transaction)
      var appEntries = 0
      for table in appTables { appEntries += try transaction.count(of: table) }
      return UnownedSummary(
        area: id, records: try transaction.count(of: tables.records),
        mutations: Int(clamping: totals.count), appEntries: appEntries,
        payloadByteCount: Int(clamping: totals.payloadByteCount))
    }
  }
}
