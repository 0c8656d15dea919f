public import Foundation
import HubProtocol
import LMDB
import Synchronization

/// One profile of a store, as a list shows it. No payload and no record ID is in it.
public struct ProfileInfo: Sendable {
  /// What the area is.
  public enum State: String, Sendable, Codable, CaseIterable {
    /// It has an owner.
    case owned
    /// The current signed-out area.
    case unowned
    /// Declined, and kept.
    case setAside
    /// An adoption was begun and not carried out.
    case frozen
    /// Adopted by an account.
    case moved
    /// Erased; its files go when no process holds them. Nothing else of it is read.
    case erased
    /// It cannot be opened or read; ``ProfileInfo/problem`` says why.
    case unreadable
    /// The registry names it and its directory is not there.
    case missing
  }

  /// The area.
  public let area: AreaID
  /// What the area is.
  public package(set) var state: State
  /// Its owner, read back from it.
  public package(set) var owner: VerifiedAccount?
  /// Records that it keeps.
  public package(set) var records = 0
  /// What is waiting to be sent.
  public package(set) var pending = PendingSummary(
    count: 0, parked: 0, payloadByteCount: 0, oldest: nil)
  /// Everything up to it was applied and committed.
  public package(set) var cursor: Cursor?
  /// Bytes of its data file in use.
  public package(set) var usedByteCount = 0
  /// When it was made.
  public package(set) var createdAt: Date?
  /// How the last pass ended.
  public package(set) var lastPass: PassOutcome?
  /// The client that it is at the hub.
  public package(set) var client: UUID?
  /// Records whose version at the hub is known, tombstones included.
  public package(set) var knownRecords = 0
  /// Why it cannot be read, or `registryDisagrees`: what the registry says otherwise.
  public package(set) var failure: StoreError?

  /// ``failure`` as a sentence.
  public var problem: String? { failure?.description }

  /// Nothing is known but what it is.
  package init(area: AreaID, state: State) {
    self.area = area
    self.state = state
  }
}

extension ProfileInfo {
  /// Reads what an area says of itself, whatever its state. Only the registry knows `setAside`.
  init(reading area: Area) throws {
    let tables = area.tables
    self = try area.readState { transaction in
      let owner = try tables.owner(transaction)
      var info = ProfileInfo(area: area.id, state: owner == nil ? .unowned : .owned)
      info.createdAt = try tables.identity(transaction)?.createdAt
      switch try tables.state(transaction) {
      case .erased:
        info.state = .erased
        return info
      case .moved: info.state = .moved
      case .frozen: info.state = .frozen
      case .active: break
      }
      info.owner = try owner.map(VerifiedAccount.init(reading:))
      info.records = try area.shownRecordCount(transaction)
      info.pending = try area.pendingSummary(transaction)
      info.cursor = try tables.cursor(.cursor, transaction)
      info.lastPass = try tables.lastPass(transaction)
      info.client = try tables.client(transaction)?.id
      info.knownRecords = try transaction.count(of: tables.known)
      return info
    }
    usedByteCount = try area.environment.statistics().usedByteCount
  }

  /// Every profile of a store, in the order of their area IDs.
  /// - Parameter index: nil when the registry cannot be read: then the areas alone are asked.
  static func all(
    in path: String, index: RegistryIndex?, open: (AreaID) throws -> Area
  ) throws -> [ProfileInfo] {
    var ids = Set(try ProfileRegistry.areas(in: path))
    if let index { ids.formUnion(try index.snapshot().areas.keys) }
    return try ids.sorted { $0.description < $1.description }.compactMap { id in
      try look(at: id, in: path, index: index, open: open)
    }
  }

  /// What an area and the registry say of it; what cannot be read is `unreadable`.
  ///
  /// The order makes it right beside processes that change the store: the area is read before the
  /// registry, since an intent is written before an area is changed, and its directory is looked
  /// for last, since one that is gone never comes back.
  /// - Returns: nil when there is no such area, or not any more.
  static func look(
    at id: AreaID, in path: String, index: RegistryIndex?, open: (AreaID) throws -> Area
  ) throws -> ProfileInfo? {
    var info = ProfileInfo(area: id, state: .unreadable)
    do {
      info = try ProfileInfo(reading: try open(id))
    } catch {
      info.failure = StoreError.reading("the profile", error)
    }
    let note = try index?.note(of: id)
    let directory = ProfileRegistry.directory(of: id, in: path)
    guard FileManager.default.fileExists(atPath: directory) else {
      guard let note = try index?.note(of: id), note.row != nil, note.intent == nil else {
        return nil
      }
      info = ProfileInfo(area: id, state: .missing)
      info.failure = .missingArea
      return info
    }
    if let note { info.compare(with: note) }
    return info
  }

  private mutating func compare(with note: (row: AreaRow?, intent: Intent?)) {
    if state == .unowned, note.row?.state == .setAside { state = .setAside }
    guard note.intent == nil, state != .erased, state != .unreadable else { return }
    if note.row == nil {
      failure = .unknownToRegistry
    } else if note.row?.owner != owner?.bytes {
      failure = .otherOwnerInRegistry
    }
  }
}

extension ProfileRegistry {
  /// Every profile of the store, in the order of their area IDs; an unreadable one is listed as
  /// such. Needs no session; opens one environment after the other.
  public func profiles() async throws -> [ProfileInfo] {
    try await onQueue { [self] in
      let unsettled = unsettled.withLock { $0 }
      return try ProfileInfo.all(in: directory.path, index: index, open: open).map { info in
        var info = info
        info.failure = info.failure ?? unsettled[info.area]
        return info
      }
    }
  }
}

extension VerifiedAccount {
  /// An account as an area or an adoption has it.
  init(reading bytes: Data) throws(StoreError) {
    guard let account = VerifiedAccount(storedBytes: bytes, proof: .area) else {
      throw StoreError.damaged("account")
    }
    self = account
  }
}

extension StoreError {
  fileprivate static let missingArea = StoreError(
    .registryDisagrees,
    "the registry names this profile and its directory is not there: put it back from a copy")
  fileprivate static let unknownToRegistry = StoreError(
    .registryDisagrees,
    "the registry does not know this profile, so no app opens it; its data is whole")
  fileprivate static let otherOwnerInRegistry = StoreError(
    .registryDisagrees,
    "the registry says another owner than the profile, so no app opens it; its data is whole")

  /// A failed look at something, with what LMDB or the file system said as its cause.
  static func reading(_ what: String, _ error: any Error) -> StoreError {
    switch error {
    case let error as StoreError: return error
    case let error as LMDBError:
      return StoreError(.storage, "\(what) cannot be read", cause: error)
    case let error as CocoaError where error.code == .fileReadNoPermission:
      let cause = LMDBError(.noPermission, operation: "list", path: error.filePath)
      return StoreError(.storage, "\(what) cannot be read", cause: cause)
    default:
      return StoreError(.storage, "\(what) cannot be read: \(error.localizedDescription)")
    }
  }
}
