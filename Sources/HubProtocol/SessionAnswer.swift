public import Foundation

/// One epoch that an account has left: up to `forkedAt` its history and today's are the same.
public struct LineageEntry: Hashable, Sendable {
  /// The epoch that was left; never used again.
  public var epoch: UUID
  /// The last sequence that both histories share, 0 to 2^53 - 1.
  public var forkedAt: UInt64

  /// Takes an epoch and where it ended.
  public init(epoch: UUID, forkedAt: UInt64) {
    self.epoch = epoch
    self.forkedAt = forkedAt
  }
}

/// What a hub accepts and sends at most, announced by `GET /v1/session`.
///
/// Each comes from the hub as it is. Who uses one takes at most what ``WireLimits`` says.
public struct HubLimits: Hashable, Sendable {
  /// Records in a page, 1 or more.
  public var pullRecords: Int
  /// Payload and ID bytes in a page, 1 or more; one larger record comes alone.
  public var pullBytes: Int
  /// Mutations in a push, 1 or more.
  public var pushMutations: Int
  /// Bytes of a push's body, decompressed, 1 or more.
  public var pushBytes: Int
  /// Bytes of one payload, 0 or more.
  public var payloadBytes: Int
  /// The longest long poll, in seconds, 0 or more.
  public var waitSeconds: Int

  /// Takes the limits; the defaults are those of a hub that is not told otherwise.
  public init(
    pullRecords: Int = 500, pullBytes: Int = 8 << 20, pushMutations: Int = 500,
    pushBytes: Int = 8 << 20, payloadBytes: Int = 1 << 20, waitSeconds: Int = 0
  ) {
    self.pullRecords = pullRecords
    self.pullBytes = pullBytes
    self.pushMutations = pushMutations
    self.pushBytes = pushBytes
    self.payloadBytes = payloadBytes
    self.waitSeconds = waitSeconds
  }
}

/// The answer to `GET /v1/session`: who the token belongs to, as the hub verified it.
public struct SessionAnswer: Hashable, Sendable {
  /// The UUID of the question; an answer with another one is not its answer.
  public var nonce: UUID
  /// The hub's ID, for ever the same.
  public var hub: UUID
  /// The account's present epoch.
  public var epoch: UUID
  /// The epochs that were left, oldest first, without the current one.
  public var lineage: [LineageEntry]
  /// The account that the token names.
  public var account: AccountID
  /// The last sequence given, 0 to 2^53 - 1; 0 before the first.
  public var highWater: UInt64
  /// The least cursor from which a pull misses nothing, at most `highWater`.
  public var minimumCursor: UInt64
  /// The least `firstSent` for which a repeated mutation is still known, at most `highWater`.
  public var idempotencyFloor: UInt64
  /// The account has no record and no tombstone.
  public var empty: Bool
  /// The token's end (`exp`), in whole seconds since 1970, 0 to 2^53 - 1.
  public var expiresAt: Int64
  /// What this hub accepts and sends at most.
  public var limits: HubLimits

  /// Takes every member; nothing is checked.
  public init(
    nonce: UUID, hub: UUID, epoch: UUID, lineage: [LineageEntry], account: AccountID,
    highWater: UInt64, minimumCursor: UInt64, idempotencyFloor: UInt64, empty: Bool,
    expiresAt: Int64, limits: HubLimits
  ) {
    self.nonce = nonce
    self.hub = hub
    self.epoch = epoch
    self.lineage = lineage
    self.account = account
    self.highWater = highWater
    self.minimumCursor = minimumCursor
    self.idempotencyFloor = idempotencyFloor
    self.empty = empty
    self.expiresAt = expiresAt
    self.limits = limits
  }
}
