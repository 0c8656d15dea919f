public import Foundation
import HubProtocol
import LMDB

/// One profile of a store, as a list shows it. No payload and no record ID is in it.
public struct ProfileInfo: Sendable {
  /// What the area is.
  public enum State: String, Sendable, Codable {
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
    /// Erased; its files go when no process holds them.
    case erased
    /// It cannot be opened or read; ``ProfileInfo/problem`` says why.
    case unreadable
  }

  /// The area.
  public let area: AreaID
  /// What the area is.
  public let state: State
  /// Its owner, read back from it.
  public let owner: VerifiedAccount?
  /// Records that it keeps.
  public let records: Int
  /// What is waiting to be sent.
  public let pending: PendingSummary
  /// Everything up to it was applied and committed.
  public let cursor: Cursor?
  /// Bytes of its data file in use.
  public let usedByteCount: Int
  /// When it was made.
  public let createdAt: Date?
  /// How the last pass ended.
  public let lastPass: PassOutcome?
  /// The client that it is at the hub.
  public let client: UUID?
  /// Records whose version at the hub is known.
  public let knownRecords: Int
  /// Why it cannot be read.
  public let problem: String?
}

extension ProfileInfo {
  /// Reads what an area says of itself, whatever its state.
  init(reading area: Area, registryState: AreaRow.State?) throws {
    let tables = area.tables
    self = try area.environment.read { transaction in
      let owner = try tables.owner(transaction)
      let state: State
      switch try tables.state(transaction) {
      case .erased: state = .erased
      case .moved: state = .moved
      case .frozen: state = .frozen
      case .active:
        state = owner != nil ? .owned : registryState == .setAside ? .setAside : .unowned
      }
      return ProfileInfo(
        area: area.id, state: state,
        owner: owner.flatMap { VerifiedAccount(storedBytes: $0, proof: .area) },
        records: try transaction.count(of: tables.records),
        pending: try area.pendingSummary(transaction),
        cursor: try tables.cursor(.cursor, transaction), usedByteCount: 0,
        createdAt: try tables.identity(transaction)?.createdAt,
        lastPass: try tables.lastPass(transaction), client: try tables.client(transaction)?.id,
        knownRecords: try transaction.count(of: tables.metadata), problem: nil)
    }.with(usedByteCount: try area.environment.statistics().usedByteCount)
  }

  private func with(usedByteCount: Int) -> ProfileInfo {
    ProfileInfo(
      area: area, state: state, owner: owner, records: records, pending: pending, cursor: cursor,
      usedByteCount: usedByteCount, createdAt: createdAt, lastPass: lastPass, client: client,
      knownRecords: knownRecords, problem: problem)
  }

  init(unreadable area: AreaID, problem: String) {
    self.init(
      area: area, state: .unreadable, owner: nil, records: 0,
      pending: PendingSummary(count: 0, parked: 0, payloadByteCount: 0, oldest: nil), cursor: nil,
      usedByteCount: 0, createdAt: nil, lastPass: nil, client: nil, knownRecords: 0,
      problem: problem)
  }
}

extension ProfileRegistry {
  /// Every profile of the store, in the order of their area IDs; an unreadable one is listed as
  /// such. Needs no session; opens one environment after the other.
  public func profiles() async throws -> [ProfileInfo] {
    try await onQueue { [self] in
      let rows = try index.snapshot().areas
      return try areasOnDisk().sorted { $0.description < $1.description }.map { id in
        do {
          return try ProfileInfo(reading: try open(id), registryState: rows[id]?.state)
        } catch {
          return ProfileInfo(unreadable: id, problem: "\(error)")
        }
      }
    }
  }
}
