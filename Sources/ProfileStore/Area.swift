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
  package let environment: Environment
  let tables: AreaTables
  /// The data file as it was found at open.
  private let file: FileIdentity
  /// Held shared while this process has the area open, so that nobody removes its files.
  private let holder: Mutex<FileLock?>
  package let passes: PassQueue
  /// For crash tests; see ``CommitStep``.
  package let onCommit = Mutex<(@Sendable (CommitStep) throws -> Void)?>(nil)

  private init(
    id: AreaID, directory: String, environment: Environment, tables: AreaTables,
    file: FileIdentity, holder: FileLock?
  ) {
    self.id = id
    self.directory = directory
    self.environment = environment
    self.tables = tables
    self.file = file
    self.holder = Mutex(holder)
    passes = PassQueue(directory: directory + "/passes")
  }

  private struct WeakArea: Sendable { weak let area: Area? }
  private static let open = Mutex<[ObjectIdentifier: WeakArea]>([:])

  /// Opens an area that exists.
  /// - Throws: `damaged` when it is not the area that its directory names, `newerFormat`, `storage`.
  package static func open(
    _ id: AreaID, directory: String, limits: StoreLimits, access: Environment.Access = .write
  ) throws -> Area {
    let environment = try openEnvironment(at: directory, limits: limits, access: access)
    // The first opener in a process decides what the environment may do.
    guard access == .read || environment.configuration.access != .read else {
      throw StoreError.openForInspection
    }
    return try open.withLock { open in
      if let area = open[ObjectIdentifier(environment)]?.area { return area }
      let tables = try storage {
        try AreaTables.requireReadable(environment, as: id)
        return try AreaTables(environment)
      }
      let holder = access == .read ? nil : try FileLock.shared(directory + "/holders.lock")
      let area = Area(
        id: id, directory: directory, environment: environment, tables: tables,
        file: try Files.identity(of: directory), holder: holder)
      open = open.filter { $0.value.area != nil }
      open[ObjectIdentifier(environment)] = WeakArea(area: area)
      if access != .read { try storage { try area.noticeCopy() } }
      return area
    }
  }

  private static func openEnvironment(
    at path: String, limits: StoreLimits, access: Environment.Access
  ) throws -> Environment {
    var configuration = Environment.Configuration()
    configuration.access = access
    configuration.mapSizeByteCountMax = limits.areaByteCountMax
    configuration.tableCountMax = 128
    do {
      return try Environment.open(at: path, configuration: configuration)
    } catch {
      throw StoreError(.storage, "the area cannot be opened", cause: error)
    }
  }

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

  /// A copy of the data file must not speak for the original: it becomes a client of its own.
  private func noticeCopy() throws {
    func isCopy<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> Bool {
      try tables.file(transaction) != file && tables.state(transaction) != .erased
    }
    guard try environment.read({ try isCopy($0) }) else { return }
    try environment.writeBlocking { transaction in
      // Another process may have noticed it first.
      guard try isCopy(transaction) else { return }
      let known = try tables.cursor(.highWater, transaction)?.sequence ?? 0
      try tables.setClient(ClientIdentity(id: UUID(), isRegistered: false), &transaction)
      try updateEntries(&transaction) { entry in
        guard entry.firstSent == nil else { return false }
        entry.firstSent = known
        return true
      }
      try tables.setFile(file, &transaction)
    }
  }

  /// Closes the area in a directory in this process: its holders' next transaction throws `erased`.
  /// - Returns: false when a reader of this process is inside and does not end.
  static func release(_ directory: String) throws -> Bool {
    // By device and inode, since a store can be reached by several paths.
    let file = try Files.identity(of: directory)
    let area = open.withLock { open in
      open.values.compactMap(\.area).first { $0.file == file && !$0.environment.isClosed }
    }
    guard let area else { return true }
    do {
      try area.environment.close()
    } catch {
      guard error.code == .busy else { throw translated(error) }
      return false
    }
    area.holder.withLock { $0 = nil }
    return true
  }

  // MARK: Transactions

  /// Reads the area as it is now; an erased one throws.
  package func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try Self.storage {
      try environment.read { transaction in
        try requireNotErased(transaction)
        return try body(transaction)
      }
    }
  }

  /// Reads what the area says of itself, an erased one too.
  func readState<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try Self.storage { try environment.read(body) }
  }

  /// Writes the area; concurrent writes share a commit. An erased one throws. A cancelled task's write
  /// is done nevertheless.
  ///
  /// A `draining` one goes through where the area is full: what settles, drops or erases must.
  package func write<R: Sendable>(
    for purpose: WritePurpose = .storing,
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    do {
      let result = try await environment.writeIgnoringCancellation(for: purpose) {
        [self] transaction in
        try requireNotErased(transaction)
        let result = try body(&transaction)
        try onCommit.withLock { $0 }?(.commits)
        return result
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
    try Self.storage {
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
    return try Self.storage {
      try environment.table(AreaTables.appPrefix + name, key: key, value: value)
    }
  }

  static func storage<R>(_ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch {
      throw translated(error)
    }
  }

  private static func translated(_ error: any Error) -> any Error {
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
