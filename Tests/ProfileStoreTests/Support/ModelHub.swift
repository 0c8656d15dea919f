import Foundation
import HubProtocol
import ProfileStore

/// A hub in memory, as far as an area can tell: one account, versions, verdicts, purges, restores.
struct ModelHub {
  struct Version: Hashable {
    var version: UInt64
    /// nil: deleted.
    var payload: String?
  }

  private struct Snapshot {
    var sequence: UInt64 = 0
    var records: [RecordID: Version] = [:]
    var applied: [UUID: UInt64] = [:]
  }

  private(set) var epoch = UUID()
  private(set) var lineage: [LineageEntry] = []
  private(set) var minimumCursor: UInt64 = 0
  private var now = Snapshot()
  private var backup = Snapshot()

  var sequence: UInt64 { now.sequence }
  var records: [RecordID: Version] { now.records }
  /// What every device that has it all shows.
  var live: [RecordID: String] { now.records.compactMapValues(\.payload) }

  @discardableResult
  mutating func write(_ record: RecordID, _ payload: String?) -> UInt64 {
    now.sequence += 1
    now.records[record] = Version(version: now.sequence, payload: payload)
    return now.sequence
  }

  /// Forgets all tombstones: whoever is behind has to scan from zero.
  mutating func purge() {
    now.records = now.records.filter { $0.value.payload != nil }
    minimumCursor = now.sequence
  }

  mutating func backUp() { backup = now }

  /// Goes back to the backup, under a new epoch.
  mutating func restore() {
    now = backup
    let fork = now.sequence
    lineage = lineage.map { LineageEntry(epoch: $0.epoch, forkedAt: min($0.forkedAt, fork)) }
    lineage.append(LineageEntry(epoch: epoch, forkedAt: fork))
    epoch = UUID()
    minimumCursor = min(minimumCursor, fork)
  }

  func standing(of account: VerifiedAccount) -> SessionAnswer {
    SessionAnswer(
      nonce: UUID(), hub: account.hub, epoch: epoch, lineage: lineage, account: account.id,
      highWater: sequence, minimumCursor: minimumCursor, idempotencyFloor: 0, empty: false,
      expiresAt: 0, limits: HubLimits())
  }

  /// The changes behind a place, by version.
  func changes(after: UInt64, until: UInt64, limit: Int) -> [IncomingChange] {
    now.records.filter { $0.value.version > after && $0.value.version <= until }
      .sorted { $0.value.version < $1.value.version }.prefix(limit).map(Self.change)
  }

  func change(of record: RecordID) -> IncomingChange? {
    now.records[record].map { Self.change(record, $0) }
  }

  private static func change(_ record: RecordID, _ version: Version) -> IncomingChange {
    IncomingChange(
      record: record, version: version.version, payload: version.payload.map { Data($0.utf8) },
      isDeleted: version.payload == nil)
  }

  /// - Returns: nil: put off, since an earlier one of its record was not applied.
  mutating func judge(_ entry: OutboxEntry, rejects: Bool, omitsPayload: Bool) -> Settlement? {
    if let version = now.applied[entry.mutation] { return .acknowledged(version: version) }
    if rejects { return .parked(Parked(reason: .rejected, code: "test")) }
    let current = now.records[entry.record]
    switch entry.base {
    case nil: break
    case .mustNotExist where current?.payload == nil: break
    case .version(let version) where current?.version == version: break
    case .mutation(let before):
      guard let version = now.applied[before] else { return nil }
      if current?.version != version { fallthrough }
    case .mustNotExist, .version:
      return .parked(
        Parked(
          reason: .conflict,
          current: current.map {
            let isOmitted = omitsPayload && $0.payload != nil
            return HubVersion(
              version: $0.version, isDeleted: $0.payload == nil,
              payload: isOmitted ? nil : $0.payload.map { Data($0.utf8) },
              isPayloadOmitted: isOmitted)
          }))
    }
    let version = write(entry.record, entry.payload.map { String(decoding: $0, as: UTF8.self) })
    now.applied[entry.mutation] = version
    return .acknowledged(version: version)
  }
}
