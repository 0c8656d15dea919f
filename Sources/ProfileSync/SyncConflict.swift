public import Foundation
public import HubProtocol
public import ProfileStore

/// A local edit that does not go with what the hub has, for the app to decide.
public struct SyncConflict: Sendable, Hashable {
  /// The mutation, as it lies in the outbox.
  public let mutation: UUID
  /// The record.
  public let record: RecordID
  /// `conflict`: the record moved on at the hub, or its history was reset there; `adopted`: the edit
  /// came from a signed-out person's data, where the account has one of its own.
  public let reason: Parked.Reason
  /// The local edit's payload; nil: it is a delete.
  public let local: Data?
  /// What the local edit was made from; nil: it did not say. `mustNotExist` also where its version
  /// was one of a history that the hub has lost.
  public let base: Mutation.Base?
  /// The record at the hub, with its payload; nil: the hub has no such record. A tombstone has
  /// ``HubVersion/isDeleted``.
  public let hub: HubVersion?
  /// When the edit was made, by this device's clock: for a person, never to decide by.
  public let enqueuedAt: Date

  init(_ entry: OutboxEntry, _ parked: Parked, hub: HubVersion?) {
    mutation = entry.mutation
    record = entry.record
    reason = parked.reason
    local = entry.payload
    base = entry.base
    self.hub = hub
    enqueuedAt = entry.enqueuedAt
  }

  /// Decodes the local edit as JSON; nil: it is a delete.
  /// - Throws: what the decoding throws.
  public func decodeLocal<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value? {
    try local.map { try JSONDecoder().decode(type, from: $0) }
  }

  /// Decodes the hub's record as JSON; nil: it has none, or a tombstone.
  /// - Throws: what the decoding throws.
  public func decodeHub<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value? {
    try hub?.payload.map { try JSONDecoder().decode(type, from: $0) }
  }
}

/// Decides conflicts within a pass: each is given once, outside of any transaction.
///
/// What it decides is on disk before the next one is asked about, and is sent again in the same pass,
/// up to three times where others write faster than it decides; what conflicts still then is asked
/// about in the next pass. So is whatever it left parked.
///
/// A type of its own, so that a closure behind `synchronize(account:)` is always `applyChanges`.
public struct ConflictResolver {
  let decide: (SyncConflict) async throws -> Resolution?

  /// - Parameter decide: keeps the hub's, keeps the local edit, or merges; nil leaves it parked, for a
  ///   person to decide later. It runs where the pass's caller runs and may enqueue, but not
  ///   synchronize the same area. What it throws ends the pass as it is; what was decided stays.
  public init(_ decide: @escaping (SyncConflict) async throws -> Resolution?) {
    self.decide = decide
  }
}
