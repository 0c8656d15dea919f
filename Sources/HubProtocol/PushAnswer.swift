public import Foundation

/// What the hub decided on one mutation.
public enum MutationStatus: String, Sendable, Hashable {
  /// It took effect now.
  case applied
  /// It took effect before, and nothing changed now.
  case duplicate
  /// The record is not as the mutation expects it.
  case conflict
  /// Refused for good.
  case rejected
  /// Not now: a later pass sends it again.
  case deferred
}

/// One verdict of a push's answer.
public struct MutationResult: Hashable, Sendable {
  /// The mutation that was judged.
  public var mutation: UUID
  /// What was decided.
  public var status: MutationStatus
  /// The record's version by this mutation, 0 to 2^53 - 1; there with `applied` and `duplicate`.
  public var version: UInt64?
  /// With `rejected`, `deferred` and, below the floor, `conflict`: a code of ``HubCode`` or one
  /// that this version does not know.
  public var code: String?
  /// A sentence for a person; the UUID that blocks it where `code` is `blocked_by`.
  public var detail: String?
  /// The newest record, tombstones too; nil where there is none, or the verdict does not say.
  public var current: WireRecord?

  /// Takes every member; nothing is checked.
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
  /// The hub's ID.
  public var hub: UUID
  /// The account's present epoch.
  public var epoch: UUID
  /// The account that was written to.
  public var account: AccountID
  /// The last sequence given, this push's included; 0 to 2^53 - 1.
  public var highWater: UInt64
  /// One for each mutation, in the order of the request's list.
  public var results: [MutationResult]

  /// Takes every member; nothing is checked.
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
