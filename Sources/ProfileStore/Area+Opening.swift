import Foundation
package import LMDB
import Synchronization

// One object per environment and process, however many ask for it.
extension Area {
  private struct WeakArea: Sendable { weak let area: Area? }

  private struct Known {
    var areas: [Environment.FileIdentity: WeakArea] = [:]
    /// At how many entries those that are gone are taken out.
    var countMax = 128

    func area(_ file: Environment.FileIdentity) -> Area? {
      guard let area = areas[file]?.area else { return nil }
      // A suspended one is that of its file, too; one that was closed for good is not.
      return area.environment.isClosed && !area.store.isSuspended ? nil : area
    }

    mutating func remember(_ area: Area, as file: Environment.FileIdentity) {
      if areas.count >= countMax {
        areas = areas.filter { $0.value.area != nil }
        countMax = max(128, 2 * areas.count)
      }
      areas[file] = WeakArea(area: area)
    }
  }

  /// The areas of this process, by their data files. The mutex is held for a look only.
  private static let known = Mutex(Known())

  /// Opens an area that exists.
  /// - Parameter registry: the environment of the registry that opens it; nil: it is looked at.
  /// - Throws: `damaged` when it is not the area that its directory names, `newerFormat`, `storage`.
  package static func open(
    _ id: AreaID, directory: String, limits: StoreLimits, access: Environment.Access = .write,
    registry: StoreEnvironment? = nil
  ) throws -> Area {
    // Before the environment, so that nobody removes the files between the two.
    let lock = access == .read ? nil : try FileLock.shared(directory + "/holders.lock")
    let environment = try openEnvironment(at: directory, limits: limits, access: access)
    // The first opener in a process decides what the environment may do.
    guard access == .read || environment.configuration.access != .read else {
      throw StoreError.openForInspection
    }
    if let area = known.withLock({ $0.area(environment.dataFile) }) {
      return try area.requireIs(id)
    }
    let tables = try storage { try AreaTables(opening: environment, as: id) }
    let area = Area(
      id: id, directory: directory, environment: environment, tables: tables,
      hold: Hold(file: FileIdentity(environment.dataFile), lock: lock), registry: registry)
    if access != .read { try storage { try area.noticeCopy() } }
    // Somebody may have been faster with the same environment: nobody has used this object yet.
    return try known.withLock { known in
      if let other = known.area(environment.dataFile) { return other }
      known.remember(area, as: environment.dataFile)
      return area
    }.requireIs(id)
  }

  private func requireIs(_ id: AreaID) throws(StoreError) -> Area {
    guard self.id == id else { throw StoreError.damaged("identity of an area") }
    return self
  }

  static func openEnvironment(
    at path: String, limits: StoreLimits, access: Environment.Access
  ) throws -> Environment {
    var configuration = Environment.Configuration()
    configuration.access = access
    configuration.mapSizeByteCountMax = limits.areaByteCountMax
    configuration.tableCountMax = 128
    configuration.sealedByteCountMax = limits.checkedByteCountMax
    do {
      return try Environment.open(at: path, configuration: configuration)
    } catch {
      throw StoreError(.storage, "the area cannot be opened", cause: error)
    }
  }

  /// A copy of the data file must not speak for the original: it becomes a client of its own, and what
  /// may have been sent by the other says so. (Contract section 3.)
  private func noticeCopy() throws {
    let file = file
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

  /// Whether the file in its directory is the one that is open: not replaced or taken away by
  /// somebody who does not ask, whose readers and writers would never meet ours.
  func isInPlace() -> Bool { Environment.dataFile(in: directory) == environment.dataFile }

  /// Closes the area in a directory in this process: its holders' next transaction throws `erased`.
  /// - Returns: false when a reader of this process is inside and does not end.
  static func release(_ directory: String) throws -> Bool {
    // By device and inode, since a store can be reached by several paths.
    guard let file = Environment.dataFile(in: directory),
      let area = known.withLock({ $0.area(file) })
    else { return true }
    do {
      try area.environment.close()
    } catch {
      guard error.code == .busy else { throw translated(error) }
      return false
    }
    area.hold.withLock { $0.lock = nil }
    return true
  }

  // MARK: Suspending

  /// The areas of this process that a store has opened and somebody holds, in the order of their IDs:
  /// what is done to all of them is done in the same order each time.
  static func all(of registry: StoreEnvironment) -> [Area] {
    known.withLock { $0.areas.values.compactMap(\.area) }.filter { $0.registry === registry }
      .sorted { $0.id.description < $1.id.description }
  }

  /// Lets go of its files: environment and locks.
  /// - Throws: `stillInUse` when a reader of this process does not end.
  func suspend(patience: Duration) throws {
    if !environment.isClosed {
      do {
        try store.suspend(patience: patience)
      } catch {
        guard error.code == .busy else { throw Self.translated(error) }
        throw StoreError.stillInUse
      }
    }
    hold.withLock { $0.lock = nil }
  }

  /// Whether it was closed for a suspension and not opened again.
  package var isSuspended: Bool { store.isSuspended }

  /// Opens it again, with everything that is looked at when an area is opened. One that is not there
  /// any more was erased.
  func resume() throws {
    guard store.isSuspended else { return passes.resume() }
    guard Files.exists(directory + "/data.mdb") else {
      store.giveUp()
      return passes.resume()
    }
    let lock = try FileLock.shared(directory + "/holders.lock")
    try Self.storage { try store.resume() }
    do {
      try Self.storage {
        try AreaTables.requireReadable(environment, try environment.tableNames(), as: id)
        let file = environment.dataFile
        hold.withLock { $0 = Hold(file: FileIdentity(file), lock: lock) }
        try noticeCopy()
        Self.known.withLock { $0.remember(self, as: file) }
      }
    } catch {
      // It is not what it was: nobody is to use it.
      try store.suspend(patience: .seconds(30))
      throw error
    }
    passes.resume()
  }
}

extension AreaTables {
  /// Opens what an area has, in one transaction, and checks what it is.
  /// - Throws: `damaged` when it is not that area; `newerFormat`.
  init(opening environment: Environment, as id: AreaID) throws {
    let names = try environment.openTables { !$0.hasPrefix(Self.appPrefix) }
    try Self.requireReadable(environment, names, as: id)
    try self.init(environment)
  }
}

extension StoreError {
  static let stillInUse = StoreError(
    .stillInUse,
    "a read or an apply closure of this process has not ended: let it return, then suspend again")
}
