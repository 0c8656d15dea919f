public import Foundation

/// A record as a page, `/v1/records` and a verdict carry it.
public struct WireRecord: Hashable, Sendable {
  /// The record's ID within its account.
  public var id: RecordID
  /// The sequence of its newest change, 0 to 2^53 - 1; no two records of an account share one.
  public var version: UInt64
  /// A tombstone; its payload is `null`.
  public var deleted: Bool
  /// 0 bytes or more; nil if it is a tombstone or ``isPayloadOmitted``.
  public var payload: Data?
  /// Which client made it; information only.
  public var client: UUID?
  /// Which mutation made it; information only.
  public var mutation: UUID?
  /// A verdict's `current` that left its payload out because the answer was full: read
  /// `/v1/records`. Never so in a page.
  public var isPayloadOmitted: Bool

  /// Takes every member; nothing is checked.
  public init(
    id: RecordID, version: UInt64, deleted: Bool, payload: Data?, client: UUID? = nil,
    mutation: UUID? = nil, isPayloadOmitted: Bool = false
  ) {
    self.id = id
    self.version = version
    self.deleted = deleted
    self.payload = payload
    self.client = client
    self.mutation = mutation
    self.isPayloadOmitted = isPayloadOmitted
  }
}

/// The answer to `GET /v1/changes`: the records whose newest version lies in what was asked for.
public struct ChangesPage: Hashable, Sendable {
  /// The hub's ID.
  public var hub: UUID
  /// The account's present epoch.
  public var epoch: UUID
  /// The account that the records are of.
  public var account: AccountID
  /// The sequence that was asked after, 0 to 2^53 - 1.
  public var after: UInt64
  /// The sequence to ask after next, and to keep as the cursor once all this was applied.
  public var next: UInt64
  /// There is more in what was asked for.
  public var more: Bool
  /// The last sequence given, 0 to 2^53 - 1.
  public var highWater: UInt64
  /// In ascending order of their versions.
  public var records: [WireRecord]

  /// Takes every member; nothing is checked.
  public init(
    hub: UUID, epoch: UUID, account: AccountID, after: UInt64, next: UInt64, more: Bool,
    highWater: UInt64, records: [WireRecord]
  ) {
    self.hub = hub
    self.epoch = epoch
    self.account = account
    self.after = after
    self.next = next
    self.more = more
    self.highWater = highWater
    self.records = records
  }
}

/// The answer to `GET /v1/records?id=`.
public struct RecordAnswer: Hashable, Sendable {
  /// The hub's ID.
  public var hub: UUID
  /// The account's present epoch.
  public var epoch: UUID
  /// The account that was asked about.
  public var account: AccountID
  /// The newest record or tombstone of that ID; nil if the account has neither.
  public var record: WireRecord?

  /// Takes every member; nothing is checked.
  public init(hub: UUID, epoch: UUID, account: AccountID, record: WireRecord?) {
    self.hub = hub
    self.epoch = epoch
    self.account = account
    self.record = record
  }
}
