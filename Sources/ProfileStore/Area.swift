package import Foundation
import HubProtocol
package import LMDB
import Synchronization

/// One LMDB environment with the data of one account, or of nobody yet.
///
/// One object per environment and process. What a profile may do is decided here, inside the
/// transaction that does it.
package final class Area: Sendable {
  package let id: AreaID
  package let directory: String
  package let environment: Environment
  let tables: AreaTables
  /// Held shared while this process has the area open, so that nobody removes its files.
  private let holder: Mutex<FileLock?>
  package let passes: PassQueue

  private init(
    id: AreaID, directory: String, environment: Environment, tables: AreaTables, holder: FileLock?
  ) {
    self.id = id
    self.directory = directory
    self.environment = environment
    self.tables = tables
    self.holder = Mutex(holder)
    passes = PassQueue(lockFile: directory + "/pass.lock")
  }

  private struct WeakArea: Sendable { weak let area: Area? }
  private static let open = Mutex<[ObjectIdentifier: WeakArea]>([:])

  /// Opens an area that exists.
  /// - Throws: `damaged` when it is not the area that its directory names, `newerFormat`, `storage`.
  static func open(
    _ id: AreaID, directory: String, limits: StoreLimits, access: Environment.Access = .write
  ) throws -> Area {
    let environment = try openEnvironment(at: directory, limits: limits, access: access)
    return try open.withLock { open in
      if let area = open[ObjectIdentifier(environment)]?.area { return area }
      let tables = try AreaTables(environment)
      guard let identity = try environment.read({ try tables.identity($0) }), identity.area == id
      else { throw StoreError.damaged("identity of an area") }
      let holder = access == .read ? nil : try FileLock.shared(directory + "/holders.lock")
      let area = Area(
        id: id, directory: directory, environment: environment, tables: tables, holder: holder)
      open = open.filter { $0.value.area != nil }
      open[ObjectIdentifier(environment)] = WeakArea(area: area)
      if access != .read { try area.noticeCopy() }
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
  /// - Parameter fill: writes the owner and whatever else belongs to its first transaction.
  static func create(
    _ id: AreaID, directory: String, limits: StoreLimits, createdAt: Date,
    fill: (AreaTables, inout WriteTransaction) throws -> Void
  ) throws {
    let making = directory + ".making"
    if FileManager.default.fileExists(atPath: making) {
      try Files.remove(making)
    }
    try Files.makeDirectory(making)
    let environment = try openEnvironment(at: making, limits: limits, access: .createOrWrite)
    let tables = try AreaTables(environment)
    try environment.writeBlocking { transaction in
      try tables.setIdentity(AreaIdentity(area: id, createdAt: createdAt), &transaction)
      try tables.setFile(try Files.identity(of: making), &transaction)
      try tables.setClient(ClientIdentity(id: UUID(), isRegistered: false), &transaction)
      try fill(tables, &transaction)
    }
    try environment.close()
    try Files.rename(making, to: directory)
  }

  /// A copy of the data file must not speak for the original: it becomes a client of its own.
  private func noticeCopy() throws {
    let now = try Files.identity(of: directory)
    let (stored, state) = try environment.read { (try tables.file($0), try tables.state($0)) }
    guard stored != now, state != .erased else { return }
    try environment.writeBlocking { transaction in
      let known = try tables.cursor(.highWater, transaction)?.sequence ?? 0
      try tables.setClient(ClientIdentity(id: UUID(), isRegistered: false), &transaction)
      try updateEntries(&transaction) { entry in
        guard entry.firstSent == nil else { return false }
        entry.firstSent = known
        return true
      }
      try tables.setFile(now, &transaction)
    }
  }

  /// Closes the area at a path in this process: its holders' next transaction throws `erased`.
  static func release(_ directory: String) throws {
    let area = open.withLock { open in
      open.values.compactMap(\.area).first { $0.directory == directory }
    }
    guard let area else { return }
    try area.environment.close()
    area.holder.withLock { $0 = nil }
  }

  // MARK: Transactions

  /// Reads the area as it is now; an erased one throws.
  package func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try storage {
      try environment.read { transaction in
        try requireNotErased(transaction)
        return try body(transaction)
      }
    }
  }

  /// Writes the area; concurrent writes share a commit. An erased one throws.
  package func write<R: Sendable>(
    _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) async throws -> R {
    do {
      return try await environment.write { [self] transaction in
        try requireNotErased(transaction)
        return try body(&transaction)
      }
    } catch {
      throw translated(error)
    }
  }

  /// Writes the area, blocking: for the registry's own queue.
  func writeBlocking<R>(_ body: (inout WriteTransaction) throws -> R) throws -> R {
    try storage {
      try environment.writeBlocking { transaction in
        try requireNotErased(transaction)
        return try body(&transaction)
      }
    }
  }

  private func requireNotErased<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws {
    if try tables.state(transaction) == .erased { throw StoreError.erasedArea }
  }

  private func storage<R>(_ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch {
      throw translated(error)
    }
  }

  private func translated(_ error: any Error) -> any Error {
    guard let error = error as? LMDBError else { return error }
    // Erasing closes the environment of this process once `erased` is on disk.
    if error.code == .closed { return StoreError.erasedArea }
    return StoreError(.storage, "the area could not be read or written", cause: error)
  }

  /// The owner's bytes, or nil. It can be set once and never changes afterwards.
  package func owner() throws -> Data? {
    try read { try tables.owner($0) }
  }
}
