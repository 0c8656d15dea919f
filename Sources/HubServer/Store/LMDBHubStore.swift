import Foundation
import HubProtocol
import HubRules
import LMDB

/// The embedded store: one LMDB environment in the hub's data directory.
///
/// Reads run beside the writer. Writes share commits, and each is durable before its call returns.
final class LMDBHubStore: HubStore {
  /// The layout of the tables, raised when an older hub could not read what a newer one wrote.
  static let format: UInt8 = 1

  let hubID: UUID
  let environment: Environment
  let tables: Tables
  let notes: ErasureNotes
  private let signals: AccountSignals
  private let directory: DataDirectory
  private let ledger: RunLedger

  /// Every table of the store; `StoreKeys.swift` and `StoreValues.swift` draw the bytes.
  struct Tables: Sendable {
    /// `format`, `hub`, `run` and `nextNumber`.
    let meta: Table<TextCodec, BytesCodec>
    /// Account ID to row.
    let accounts: Table<BytesCodec, AccountRowCodec>
    /// Record ID to newest version.
    let records: Table<RecordKeyCodec, RecordHeadCodec>
    /// The same, for IDs that lie in memory that is lent.
    let recordsInPlace: Table<LentRecordKeyCodec, RecordHeadCodec>
    /// Version to the change that is the newest of its record.
    let changes: Table<VersionKeyCodec, StoredChangeCodec>
    /// Mutation to result.
    let results: Table<MutationKeyCodec, StoredResultCodec>
    /// Version to the mutation that it was given to, as long as there is a result of it.
    let order: Table<VersionKeyCodec, AppliedMutationCodec>
    /// The directory of clients; not part of an account.
    let clients: Table<UUIDCodec, ClientRowCodec>
    /// The IDs of the erasure notes that this file has seen.
    let notes: Table<UUIDCodec, BytesCodec>

    init(_ environment: Environment) throws {
      meta = try environment.table("meta", key: TextCodec.self, value: BytesCodec.self)
      accounts = try environment.table(
        "accounts", key: BytesCodec.self, value: AccountRowCodec.self)
      records = try environment.table(
        "records", key: RecordKeyCodec.self, value: RecordHeadCodec.self)
      recordsInPlace = try environment.table(
        "records", key: LentRecordKeyCodec.self, value: RecordHeadCodec.self)
      changes = try environment.table(
        "changes", key: VersionKeyCodec.self, value: StoredChangeCodec.self)
      results = try environment.table(
        "results", key: MutationKeyCodec.self, value: StoredResultCodec.self)
      order = try environment.table(
        "order", key: VersionKeyCodec.self, value: AppliedMutationCodec.self)
      clients = try environment.table("clients", key: UUIDCodec.self, value: ClientRowCodec.self)
      notes = try environment.table("notes", key: UUIDCodec.self, value: BytesCodec.self)
    }
  }

  private init(
    hubID: UUID, environment: Environment, tables: Tables, directory: DataDirectory,
    ledger: RunLedger, signals: AccountSignals
  ) {
    self.signals = signals
    self.hubID = hubID
    self.environment = environment
    self.tables = tables
    self.directory = directory
    self.ledger = ledger
    notes = ErasureNotes(file: directory.erasuresFile)
  }

  /// Opens or makes the store, and settles whether the data file is the one the last run left.
  ///
  /// - Parameter hubID: a fixed ID, or nil for the stored one, or a new one at the first start.
  /// - Throws: ``HubServerError`` `directoryInUse`, `directoryUnusable` and `storeUnusable`.
  static func open(
    _ directory: DataDirectory, hubID wanted: UUID?, byteCountMax: Int, signals: AccountSignals
  ) async throws(HubServerError) -> LMDBHubStore {
    do {
      try removeUnbegun(directory)
      var configuration = Environment.Configuration()
      configuration.mapSizeByteCountMax = byteCountMax
      configuration.mapSizeByteCount = min(configuration.mapSizeByteCount, byteCountMax)
      let environment = try Environment.open(
        at: directory.store.path, configuration: configuration)
      let found = try environment.statistics().lastTransaction
      let store = try await started(
        environment, Tables(environment), directory, foundTransaction: found, hubID: wanted,
        signals: signals)
      return store
    } catch let error as HubServerError {
      throw error
    } catch {
      throw HubServerError(
        .storeUnusable, "the store in \(directory.store.path) cannot be opened", cause: error)
    }
  }

  /// Whoever is killed while LMDB makes the data file leaves an empty one, which LMDB then refuses.
  /// Without a note of a run nothing was ever stored in it, so that it is made anew.
  private static func removeUnbegun(_ directory: DataDirectory) throws(HubServerError) {
    let file = directory.store.appending(path: "data.mdb", directoryHint: .notDirectory)
    var status = stat()
    // SAFETY: the call fills the structure that it is given, for as long as it lasts.
    guard access(directory.runFile.path, F_OK) != 0, stat(file.path, &status) == 0,
      status.st_size == 0
    else { return }
    guard unlink(file.path) == 0 else {
      throw HubServerError(
        .directoryUnusable,
        "\(file.path) is empty and cannot be removed: \(String(cString: strerror(errno)));"
          + " check its rights")
    }
  }

  private static func started(
    _ environment: Environment, _ tables: Tables, _ directory: DataDirectory,
    foundTransaction: UInt64, hubID wanted: UUID?, signals: AccountSignals
  ) async throws -> LMDBHubStore {
    let ledger = RunLedger(file: directory.runFile)
    let noted = try ledger.read()
    let stored = try environment.read { transaction in try Identity(transaction, tables) }
    let hub = try agreedHub(wanted: wanted, stored: stored?.hub, noted: noted?.hub, directory)
    let origin = DataFileOrigin.of(
      run: stored?.run, transaction: foundTransaction, noted: noted?.windows)
    let run = UUID()
    try ledger.prepare(
      hub: hub, run: run, transaction: environment.statistics().lastTransaction,
      noted: noted?.windows ?? [])
    let store = LMDBHubStore(
      hubID: hub, environment: environment, tables: tables, directory: directory, ledger: ledger,
      signals: signals)
    let erasures = try store.notes.read()
    try await environment.write { transaction in
      try transaction.put([format], for: "format", in: tables.meta)
      try transaction.put(hub.bytes, for: "hub", in: tables.meta)
      try transaction.put(run.bytes, for: "run", in: tables.meta)
      if origin == .restored { try store.beginEpochs(&transaction) }
      try store.applyMissing(erasures, &transaction)
    }
    try ledger.begin(transaction: environment.statistics().lastTransaction)
    return store
  }

  /// What the data file says of itself; nil in a new one.
  private struct Identity {
    var hub: UUID
    var run: UUID

    init?(_ transaction: borrowing ReadTransaction, _ tables: Tables) throws {
      guard let format = try transaction.value(of: "format", in: tables.meta) else { return nil }
      guard format == [LMDBHubStore.format] else {
        throw HubServerError(
          .storeUnusable, "the store has another format; serve it with the hub that wrote it")
      }
      guard let hub = try transaction.bytes(of: "hub", in: tables.meta), hub.byteCount == 16,
        let run = try transaction.bytes(of: "run", in: tables.meta), run.byteCount == 16
      else { throw HubServerError(.storeUnusable, "the store does not say whose it is") }
      self.hub = hub.loadUUID()
      self.run = run.loadUUID()
    }
  }

  private static func agreedHub(
    wanted: UUID?, stored: UUID?, noted: UUID?, _ directory: DataDirectory
  ) throws(HubServerError) -> UUID {
    let known = [wanted, stored, noted].compactMap { $0 }
    guard let hub = known.first else { return UUID() }
    guard known.allSatisfy({ $0 == hub }) else {
      throw HubServerError(
        .storeUnusable,
        "\(directory.url.path) belongs to another hub ID than its data file or hubID says;"
          + " put the right files together")
    }
    return hub
  }

  /// Runs a write whose transaction number is leased before it can commit.
  func write<R: Sendable>(
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    try await environment.write { [ledger] transaction in
      try ledger.lease(transaction.identifier())
      return try body(&transaction)
    }
  }

  /// Runs a write that may change what those are answered who wait for the account, and wakes them.
  ///
  /// After a write that failed, too: it may have been stored.
  func write<R: Sendable>(
    waking account: AccountID, if isChange: (R) -> Bool = { _ in true },
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    let result: R
    do { result = try await write(body) } catch {
      signals.wake(account)
      throw error
    }
    if isChange(result) { signals.wake(account) }
    return result
  }

  /// Full and busy pass by.
  func isPassing(_ error: any Error) -> Bool {
    let passing: [LMDBError.Code] = [
      .diskFull, .mapFull, .readersFull, .outOfResources, .busy, .closed,
    ]
    // What lies beside the data file is on the same disk, and as full.
    return (error as? LMDBError).map { passing.contains($0.code) }
      ?? ((error as? HubServerError)?.code == .directoryUnusable)
  }

  func probe() async throws {
    _ = try environment.read { transaction in try transaction.count(of: tables.meta) }
  }

  func close() async throws {
    let last = try environment.statistics().lastTransaction
    try environment.close()
    defer { directory.unlock() }
    try ledger.end(transaction: last)
  }
}

// MARK: - Accounts and clients

extension LMDBHubStore {
  func admit(_ account: AccountID) async throws -> AccountStanding {
    let known: AccountStanding? = try environment.read { transaction in
      guard let row = try transaction.value(of: account.bytes, in: tables.accounts) else {
        return nil
      }
      return AccountStanding(state: row.state, isEmpty: try isEmpty(row, transaction))
    }
    if let known { return known }
    return try await write { [self] transaction in
      let row = try row(of: account, &transaction)
      return AccountStanding(state: row.state, isEmpty: try isEmpty(row, transaction))
    }
  }

  /// The account's row; made, under the next number, if there is none.
  func row(
    of account: AccountID, _ transaction: inout WriteTransaction
  ) throws -> AccountRow {
    if let row = try transaction.value(of: account.bytes, in: tables.accounts) { return row }
    var number: UInt64 = 1
    if let next = try transaction.bytes(of: "nextNumber", in: tables.meta) {
      guard next.byteCount == 8 else { throw badForm("a next number of \(next.byteCount) bytes") }
      number = next.loadBigEndian()
    }
    try transaction.put((number + 1).bytes, for: "nextNumber", in: tables.meta)
    let row = AccountRow(number: number, state: AccountState(epoch: UUID()))
    try transaction.put(row, for: account.bytes, in: tables.accounts)
    return row
  }

  private func isEmpty(
    _ row: AccountRow, _ transaction: borrowing some Transaction & ~Copyable
  ) throws -> Bool {
    if row.state.highWater == 0 { return true }
    return try transaction.firstKey(in: tables.changes, .changes(of: row.number)) == nil
  }

  func owner(ofClient client: UUID) async throws -> AccountID? {
    try environment.read { transaction in
      try transaction.value(of: client, in: tables.clients)?.account
    }
  }

  func register(
    client: UUID, name: String, for account: AccountID
  ) async throws -> ClientRegistrationOutcome {
    try await write { [tables] transaction in
      let row = ClientRow(account: account, name: name)
      guard let known = try transaction.value(of: client, in: tables.clients) else {
        try transaction.put(row, for: client, in: tables.clients)
        return .created
      }
      guard known.account == account else { return .boundElsewhere }
      if Array(known.name.utf8) != Array(name.utf8) {
        try transaction.put(row, for: client, in: tables.clients)
      }
      return .updated
    }
  }
}

extension KeyRange<VersionKeyCodec.Key> {
  /// Every version of an account.
  static func changes(of number: UInt64) -> Self {
    .through(Key(number: number, version: 0), Key(number: number, version: .max))
  }

  /// An account's versions in (`after`, `through`].
  static func changes(of number: UInt64, after: UInt64, through last: UInt64) -> Self {
    .through(Key(number: number, version: after + 1), Key(number: number, version: last))
  }
}

extension UUID {
  /// The 16 bytes.
  fileprivate var bytes: [UInt8] { withUnsafeBytes(of: uuid) { Array($0) } }
}

extension UInt64 {
  /// 8 bytes, big-endian.
  fileprivate var bytes: [UInt8] { Swift.withUnsafeBytes(of: bigEndian) { Array($0) } }
}
