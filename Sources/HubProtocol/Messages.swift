public import Foundation

// The bodies of `protocol.md`, one struct each. A sequence is 0 ... 2^53 - 1.

/// One epoch that an account has left: up to `forkedAt` its history and today's are the same.
public struct LineageEntry: Hashable, Sendable {
  public var epoch: UUID
  public var forkedAt: UInt64

  public init(epoch: UUID, forkedAt: UInt64) {
    self.epoch = epoch
    self.forkedAt = forkedAt
  }
}

/// What a hub accepts and sends at most, announced by `GET /v1/session`.
public struct HubLimits: Hashable, Sendable {
  /// Records in a page, 1 ... 500.
  public var pullRecords: Int
  /// Payload and ID bytes in a page; one larger record comes alone.
  public var pullBytes: Int
  /// Mutations in a push, 1 ... 500.
  public var pushMutations: Int
  /// Bytes of a push's body, decompressed.
  public var pushBytes: Int
  /// Bytes of one payload.
  public var payloadBytes: Int
  /// The longest long poll, in seconds.
  public var waitSeconds: Int

  public init(
    pullRecords: Int = 500, pullBytes: Int = 8 << 20, pushMutations: Int = 500,
    pushBytes: Int = 8 << 20, payloadBytes: Int = 1 << 20, waitSeconds: Int = 55
  ) {
    self.pullRecords = pullRecords
    self.pullBytes = pullBytes
    self.pushMutations = pushMutations
    self.pushBytes = pushBytes
    self.payloadBytes = payloadBytes
    self.waitSeconds = waitSeconds
  }
}

/// `GET /v1/session`: who the token belongs to, as the hub verified it.
public struct SessionAnswer: Hashable, Sendable {
  public var nonce: UUID
  public var hub: UUID
  public var epoch: UUID
  /// The epochs that were left, oldest first, without the current one.
  public var lineage: [LineageEntry]
  public var account: AccountID
  public var highWater: UInt64
  public var minimumCursor: UInt64
  public var idempotencyFloor: UInt64
  /// The account has no record and no tombstone.
  public var empty: Bool
  /// The token's end, integer seconds since 1970.
  public var expiresAt: Int64
  public var limits: HubLimits

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

/// The body of `PUT /v1/clients/{client}`.
public struct ClientRegistration: Hashable, Sendable {
  /// 0 to 256 bytes.
  public var name: String

  public init(name: String) { self.name = name }
}

/// The answer to `PUT /v1/clients/{client}`.
public struct ClientAnswer: Hashable, Sendable {
  public var hub: UUID
  public var epoch: UUID
  public var account: AccountID
  public var client: UUID
  public var name: String

  public init(hub: UUID, epoch: UUID, account: AccountID, client: UUID, name: String) {
    self.hub = hub
    self.epoch = epoch
    self.account = account
    self.client = client
    self.name = name
  }
}

/// A record as a page, `/v1/records` and a verdict carry it.
public struct WireRecord: Hashable, Sendable {
  public var id: RecordID
  public var version: UInt64
  /// A tombstone; its payload is `null`.
  public var deleted: Bool
  public var payload: Data?
  /// Which client made it; information only.
  public var client: UUID?
  /// Which mutation made it; information only.
  public var mutation: UUID?
  /// A verdict's `current` that left its payload out because the answer was full: read
  /// `/v1/records`. Never so in a page.
  public var isPayloadOmitted: Bool

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

/// The answer to `GET /v1/changes`.
public struct ChangesPage: Hashable, Sendable {
  public var hub: UUID
  public var epoch: UUID
  public var account: AccountID
  public var after: UInt64
  public var next: UInt64
  public var more: Bool
  public var highWater: UInt64
  public var records: [WireRecord]

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
  public var hub: UUID
  public var epoch: UUID
  public var account: AccountID
  public var record: WireRecord?

  public init(hub: UUID, epoch: UUID, account: AccountID, record: WireRecord?) {
    self.hub = hub
    self.epoch = epoch
    self.account = account
    self.record = record
  }
}

/// What a mutation is based on.
public enum WireBase: Hashable, Sendable {
  /// A version; 0 = there must be no live record.
  case version(UInt64)
  /// The version that an earlier mutation of the same record was given.
  case mutation(UUID)
}

/// `put` or `delete`.
public enum MutationKind: String, Sendable, Hashable {
  case put
  case delete
}

/// One mutation of a push.
public struct WireMutation: Hashable, Sendable {
  public var mutation: UUID
  public var order: UInt64
  public var kind: MutationKind
  public var id: RecordID
  public var base: WireBase?
  /// The high water that the client knew when it first sent this mutation.
  public var firstSent: UInt64
  /// There exactly if `kind` is `put`.
  public var payload: Data?

  public init(
    mutation: UUID, order: UInt64, kind: MutationKind, id: RecordID, base: WireBase?,
    firstSent: UInt64, payload: Data?
  ) {
    self.mutation = mutation
    self.order = order
    self.kind = kind
    self.id = id
    self.base = base
    self.firstSent = firstSent
    self.payload = payload
  }
}

/// The body of `POST /v1/mutations`.
public struct PushRequest: Hashable, Sendable {
  public var client: UUID
  public var epoch: UUID
  public var cursor: UInt64
  public var mutations: [WireMutation]

  public init(client: UUID, epoch: UUID, cursor: UInt64, mutations: [WireMutation]) {
    self.client = client
    self.epoch = epoch
    self.cursor = cursor
    self.mutations = mutations
  }
}

/// What the hub decided on one mutation.
public enum MutationStatus: String, Sendable, Hashable {
  case applied
  case duplicate
  case conflict
  case rejected
  case deferred
}

/// One verdict of a push's answer.
public struct MutationResult: Hashable, Sendable {
  public var mutation: UUID
  public var status: MutationStatus
  /// With `applied` and `duplicate`.
  public var version: UInt64?
  /// With `rejected`, `deferred` and, below the floor, `conflict`: a code of ``HubCode`` or one
  /// that this version does not know.
  public var code: String?
  public var detail: String?
  /// The newest record, tombstones too; nil where there is none.
  public var current: WireRecord?

  public init(
    mutation: UUID, status: MutationStatus, version: UInt64? = nil, code: String? = nil,
    detail: String? = nil, current: WireRecord? = nil
  ) {
    self.mutation = mutation
    self.status = status
    self.version = version
    self.code = code
    self.detail = detail
    self.current = current
  }
}

/// The answer to `POST /v1/mutations`, same order and length as the request.
public struct PushAnswer: Hashable, Sendable {
  public var hub: UUID
  public var epoch: UUID
  public var account: AccountID
  public var highWater: UInt64
  public var results: [MutationResult]

  public init(
    hub: UUID, epoch: UUID, account: AccountID, highWater: UInt64, results: [MutationResult]
  ) {
    self.hub = hub
    self.epoch = epoch
    self.account = account
    self.highWater = highWater
    self.results = results
  }
}

/// RFC 9457 problem details, always JSON.
public struct HubProblem: Hashable, Sendable {
  public var type: String
  public var title: String
  public var status: Int
  public var detail: String
  /// A code of ``HubCode``, or one that this version does not know.
  public var code: String
  public var epoch: UUID?
  public var lineage: [LineageEntry]?
  public var minimumCursor: UInt64?
  public var index: Int?

  public init(
    type: String = "about:blank", title: String, status: Int, detail: String, code: String,
    epoch: UUID? = nil, lineage: [LineageEntry]? = nil, minimumCursor: UInt64? = nil,
    index: Int? = nil
  ) {
    self.type = type
    self.title = title
    self.status = status
    self.detail = detail
    self.code = code
    self.epoch = epoch
    self.lineage = lineage
    self.minimumCursor = minimumCursor
    self.index = index
  }
}
