public import Foundation
import LMDB

/// Looks at a store without changing it, beside the apps that have it open: for `profilectl`.
///
/// Needs no session, since it belongs to whoever may read the files. It is for another process than
/// the app's: who opens an environment first in a process decides whether it can be written.
public final class StoreInspector: Sendable {
  /// Why the registry cannot be read; nil: it can be. Its areas are looked at all the same.
  public let registryFailure: StoreError?
  private let path: String
  private let index: RegistryIndex?

  /// Opens a store for reading.
  /// - Throws: `notAStore` when the place is no store; `newerFormat`; `storage` when the files may
  ///   not be read.
  public convenience init(directory: URL) throws(StoreError) {
    try self.init(directory: directory, registryFailure: nil)
  }

  /// Opens a store for reading.
  /// - Parameter failure: why the registry is not even to be tried.
  package init(directory: URL, registryFailure failure: StoreError?) throws(StoreError) {
    path = directory.absoluteURL.path
    guard try Self.isThere(path, S_IFDIR) else {
      throw StoreError(
        .notAStore,
        try Self.isThere(path)
          ? "'\(path)' is a file: give the store's directory" : "there is no store at '\(path)'")
    }
    if let failure {
      (index, registryFailure) = (nil, failure)
      return
    }
    let hasRegistry = try Self.isThere(path + "/registry/data.mdb")
    do {
      let areas = try ProfileRegistry.areas(in: path)
      guard hasRegistry || !areas.isEmpty else {
        throw StoreError(
          .notAStore, "'\(path)' is no store: it has neither a registry nor a profile")
      }
      (index, registryFailure) = try Self.openRegistry(path + "/registry", mayFail: !areas.isEmpty)
    } catch {
      throw StoreError.reading("the store", error)
    }
  }

  private static func openRegistry(
    _ path: String, mayFail: Bool
  ) throws -> (RegistryIndex?, StoreError?) {
    do {
      let index = try RegistryIndex(at: path, access: .read)
      if try index.isFilled() { return (index, nil) }
      return (nil, StoreError(.registryDisagrees, "the registry is empty; \(rebuilding)"))
    } catch let error as StoreError where error.code == .newerFormat {
      throw error
    } catch {
      let failure = StoreError.reading("the registry", error)
      guard mayFail, failure.cause?.code != .noPermission else { throw failure }
      guard failure.cause?.code != .missing else {
        return (nil, StoreError(.registryDisagrees, "the registry is missing; \(rebuilding)"))
      }
      return (nil, failure)
    }
  }

  private static let rebuilding =
    "the app that next opens the store makes it again from what the profiles say"

  /// Whether something of that kind is there; a place that may not be looked at is an error.
  private static func isThere(_ path: String, _ kind: mode_t? = nil) throws(StoreError) -> Bool {
    var numbers = stat()
    if stat(path, &numbers) == 0 { return kind.map { numbers.st_mode & S_IFMT == $0 } ?? true }
    switch errno {
    case ENOENT, ENOTDIR: return false
    case let number:
      let code: LMDBError.Code = number == EACCES ? .noPermission : .ioFailed
      throw StoreError(
        .storage, "the store cannot be read",
        cause: LMDBError(code, rawCode: number, operation: "stat", path: path))
    }
  }

  /// Every profile of the store, in the order of their area IDs. One that cannot be read, or is not
  /// there, is listed with its ``ProfileInfo/problem``.
  /// - Throws: `storage` when the directories cannot be listed.
  /// - Cost: an environment is opened for each.
  public func profiles() throws(StoreError) -> [ProfileInfo] {
    do {
      return try ProfileInfo.all(in: path, index: index, open: open)
    } catch {
      throw StoreError.reading("the store", error)
    }
  }

  /// One profile.
  /// - Throws: `unknownArea`; `storage` when the registry cannot be asked. A profile that cannot be
  ///   read is returned as such.
  public func profile(_ area: AreaID) throws(StoreError) -> ProfileInfo {
    do {
      guard let info = try ProfileInfo.look(at: area, in: path, index: index, open: open) else {
        throw StoreError.unknownArea
      }
      return info
    } catch {
      throw StoreError.reading("the store", error)
    }
  }

  /// The IDs of all profiles, sorted, without opening them.
  /// - Throws: `storage` when the directories cannot be listed.
  package func areas() throws(StoreError) -> [AreaID] {
    do {
      var ids = Set(try ProfileRegistry.areas(in: path))
      if let index { ids.formUnion(try index.snapshot().areas.keys) }
      return ids.sorted { $0.description < $1.description }
    } catch {
      throw StoreError.reading("the store", error)
    }
  }

  /// Everything that is known of one profile, from ``profile(_:)``.
  /// - Throws: `storage` when the registry cannot be asked.
  /// - Cost: all metadata is read; with parked mutations the outbox, too.
  package func details(of profile: ProfileInfo) throws(StoreError) -> ProfileDetails {
    var details = ProfileDetails(
      profile: profile, directory: ProfileRegistry.directory(of: profile.area, in: path))
    do {
      try details.read(index: index, open: open)
    } catch {
      throw StoreError.reading("the profile", error)
    }
    return details
  }

  /// The waiting mutations of an area, in order.
  /// - Throws: `unknownArea`; `erased`; `damaged`, `storage`.
  public func outbox(_ area: AreaID, limit: Int = .max) throws(StoreError) -> [OutboxEntry] {
    try outbox(area, limit: limit) { $0 }
  }

  /// The waiting mutations of an area, in order, each as what `row` makes of it: who needs no
  /// payloads does not keep them.
  /// - Throws: as ``outbox(_:limit:)``.
  package func outbox<Row>(
    _ area: AreaID, limit: Int = .max, row: (OutboxEntry) -> Row
  ) throws(StoreError) -> [Row] {
    guard try areas().contains(area) else { throw StoreError.unknownArea }
    do {
      let open = try open(area)
      return try open.read { transaction in
        var rows: [Row] = []
        let trouble = try open.pushTrouble(transaction)
        try transaction.scan(open.tables.outbox) { key, bytes in
          guard rows.count < limit else { return .stop }
          var entry = try OutboxEntry(order: UInt64Codec.decode(key), bytes: bytes)
          entry.firstSent = try open.firstSent(entry.order, transaction)
          entry.held = trouble.held(entry.mutation)
          rows.append(row(entry))
          return .next
        }
        return rows
      }
    } catch {
      throw StoreError.reading("the outbox", error)
    }
  }

  private func open(_ area: AreaID) throws -> Area {
    try Area.open(
      area, directory: ProfileRegistry.directory(of: area, in: path), limits: StoreLimits(),
      access: .read)
  }
}
