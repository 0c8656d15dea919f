public import Foundation
import HubProtocol
import LMDB

/// Looks at a store without changing it, beside the apps that have it open: for `profilectl`.
///
/// Needs no session, since it belongs to whoever may read the files.
public final class StoreInspector: Sendable {
  private let path: String
  private let index: RegistryIndex

  /// Opens a store for reading.
  /// - Throws: `notAStore` when the place is no store; `newerFormat`; `storage`.
  public init(directory: URL) throws {
    path = directory.path
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      throw StoreError(.notAStore, "there is no store at \(path)")
    }
    guard isDirectory.boolValue else {
      throw StoreError(.notAStore, "\(path) is a file: give the store's directory")
    }
    guard FileManager.default.fileExists(atPath: path + "/registry/data.mdb") else {
      throw StoreError(.notAStore, "\(path) is no store: it has no registry")
    }
    index = try RegistryIndex(at: path + "/registry", access: .read)
    guard let format = try index.snapshot().format, format <= AreaIdentity.format else {
      throw StoreError(
        .newerFormat,
        "the store has a newer format than this version reads (\(AreaIdentity.format)): update the "
          + "tool")
    }
  }

  /// Every profile of the store, in the order of their area IDs.
  public func profiles() throws -> [ProfileInfo] {
    let rows = try index.snapshot().areas
    return try ProfileRegistry.areas(in: path).sorted { $0.description < $1.description }
      .map { id in
        do {
          return try ProfileInfo(reading: try open(id), registryState: rows[id]?.state)
        } catch {
          return ProfileInfo(unreadable: id, problem: "\(error)")
        }
      }
  }

  /// One profile.
  /// - Throws: `unknownArea`.
  public func profile(_ area: AreaID) throws -> ProfileInfo {
    guard try ProfileRegistry.areas(in: path).contains(area) else { throw StoreError.unknownArea }
    return try ProfileInfo(reading: try open(area), registryState: try index.row(area)?.state)
  }

  /// The waiting mutations of an area, in order.
  public func outbox(_ area: AreaID, limit: Int = .max) throws -> [OutboxEntry] {
    guard try ProfileRegistry.areas(in: path).contains(area) else { throw StoreError.unknownArea }
    let open = try open(area)
    var entries: [OutboxEntry] = []
    try open.environment.read { transaction in
      try transaction.scan(open.tables.outbox) { key, bytes in
        guard entries.count < limit else { return .stop }
        entries.append(try OutboxEntry(order: key.loadBigEndian(), bytes: bytes))
        return .next
      }
    }
    return entries
  }

  private func open(_ area: AreaID) throws -> Area {
    try Area.open(
      area, directory: "\(path)/areas/\(area.description.prefix(2))/\(area)",
      limits: StoreLimits(), access: .read)
  }
}
