package import Foundation
import HubProtocol
package import LMDB
package import Synchronization

/// One LMDB environment with the data of one account, or of nobody yet.
///
/// One object per environment and process. What a profile may do is decided here, inside the
/// transaction that does it.
package final class Area: Sendable {
  package let id: AreaID
  package let directory: String
  /// Its environment, which a suspension closes and opens again.
  let store: StoreEnvironment
  let tables: AreaTables
  /// The registry's environment that it was opened by; nil: it is only looked at.
  let registry: StoreEnvironment?
  package let passes: PassQueue
  /// For crash tests; see ``CommitStep``.
  package let onCommit = Mutex<(@Sendable (CommitStep) throws -> Void)?>(nil)
  package let signals = AreaSignals()
  let hold: Mutex<Hold>

  /// What it has of its directory beside the environment.
  struct Hold: Sendable {
    /// The data file as it was found at open.
    var file: FileIdentity
    /// Held shared while this process has the area open, so that nobody removes its files.
    var lock: FileLock?
  }

  init(
    id: AreaID, directory: String, environment: Environment, tables: AreaTables,
    hold: consuming Hold, registry: StoreEnvironment?
  ) {
    self.id = id
    self.directory = directory
    store = StoreEnvironment(environment)
    self.tables = tables
    self.registry = registry
    self.hold = Mutex(hold)
    passes = PassQueue(directory: directory + "/passes")
  }

  /// What is open now, or was last.
  package var environment: Environment { store.environment }
  /// The data file as it was found at open.
  var file: FileIdentity { hold.withLock(\.file) }

  /// Makes an area under a temporary name and moves it into place whole.
  /// - Parameters:
  ///   - made: called when it is whole and not in place yet.
  ///   - fill: writes the owner and whatever else belongs to its first transaction.
  static func create(
    _ id: AreaID, directory: String, limits: StoreLimits, createdAt: Date, made: () -> Void,
    fill: (AreaTables, inout WriteTransaction) throws -> Void
  ) throws {
    let making = directory + ".making"
    try Files.makeDirectory((directory as NSString).deletingLastPathComponent)
    if Files.exists(making) { try Files.remove(making) }
    try Files.makeDirectory(making)
    let environment = try openEnvironment(at: making, limits: limits, access: .createOrWrite)
    try storage {
      let tables = try AreaTables(environment)
      try environment.writeBlocking { transaction in
        try tables.setIdentity(AreaIdentity(area: id, createdAt: createdAt), &transaction)
        try tables.setFile(try Files.identity(of: making), &transaction)
        try tables.setClient(ClientIdentity(id: UUID(), isRegistered: false), &transaction)
        try fill(tables, &transaction)
      }
      try environment.close()
    }
    try Files.flush(making)
    made()
    try Files.rename(making, to: directory)
  }

  // MARK: Transactions

  /// Reads the area as it is now; an erased one throws.
  package func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try storage { environment in
      try environment.read { transaction in
        try requireNotErased(transaction)
        return try body(transaction)
      }
    }
  }

  /// Reads what the area says of itself, an erased one too.
  func readState<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try storage { try $0.read(body) }
  }

  /// Writes the area; concurrent writes share a commit. An erased one throws. A cancelled task's write
  /// is done nevertheless.
  ///
  /// A `draining` one goes through where the area is full: what settles, drops or erases must.
  package func write<R: Sendable>(
    for purpose: WritePurpose = .storing,
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    try await writeState(for: purpose) { [self] transaction in
      try requireNotErased(transaction)
      return try body(&transaction)
    }
  }

  /// The same, with what the area says of itself left to `body`.
  func writeState<R: Sendable>(
    for purpose: WritePurpose = .storing,
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    do {
      let result = try await store.use { environment in
        try await environment.writeIgnoringCancellation(for: purpose) { [self] transaction in
          let result = try body(&transaction)
          try onCommit.withLock { $0 }?(.commits)
          return result
        }
      }
      try onCommit.withLock { $0 }?(.committed)
      return result
    } catch {
      throw Self.translated(error)
    }
  }

  /// Writes the area, blocking: for the registry's own queue.
  package func writeBlocking<R>(
    for purpose: WritePurpose = .storing, _ body: (inout WriteTransaction) throws -> R
  ) throws -> R {
    try storage { environment in
      try environment.writeBlocking(for: purpose) { transaction in
        try requireNotErased(transaction)
        return try body(&transaction)
      }
    }
  }

  private func requireNotErased<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws {
    if try tables.state(transaction) == .erased { throw StoreError.erasedArea }
  }

  /// Opens one of the app's own tables, made on first use.
  func appTable<K, V>(_ name: String, key: K.Type, value: V.Type) throws -> Table<K, V> {
    precondition(
      (1...200).contains(name.utf8.count),
      "ProfileStore: the name of an app's table has 1 to 200 bytes")
    return try storage { environment in
      try environment.table(AreaTables.appPrefix + name, key: key, value: value)
    }
  }

  /// Runs `body` with what is open, with errors in the store's words.
  func storage<R>(_ body: (Environment) throws -> R) throws -> R {
    do {
      return try store.use(body)
    } catch {
      throw Self.translated(error)
    }
  }

  static func storage<R>(_ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch {
      throw translated(error)
    }
  }

  static func translated(_ error: any Error) -> any Error {
    guard let error = error as? LMDBError else { return error }
    switch error.code {
    // Erasing closes the environment of this process once `erased` is on disk.
    case .closed: return StoreError.erasedArea
    case .badForm: return StoreError.damaged("data", cause: error)
    default: return StoreError(.storage, "the area could not be read or written", cause: error)
    }
  }

  /// The owner's bytes, or nil. It can be set once and never changes afterwards.
  package func owner() throws -> Data? {
    try read { try tables.owner($0) }
  }
}
