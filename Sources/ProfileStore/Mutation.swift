public import Foundation
public import HubProtocol

/// A local change that waits to be sent: put or delete of one record.
public struct Mutation: Sendable, Hashable {
  /// What the change is based on.
  public enum Base: Sendable, Hashable {
    /// The record's version that the person saw.
    case version(UInt64)
    /// There must be no such record: `base: 0` on the wire.
    case mustNotExist
    /// The version that an earlier mutation of the same record will be given.
    case mutation(UUID)
  }

  /// The mutation's UUID: sending it again changes nothing at the hub.
  public var id: UUID
  /// Whether the app gave the UUID and will strike it off (contract section 4).
  public var isCallerGiven: Bool
  /// Put or delete.
  public var kind: MutationKind
  /// The record, 1 to 400 bytes of UTF-8.
  public var record: RecordID
  /// The payload of a put, 0 bytes up to the hub's limit (1 MiB by default, 16 MiB at most).
  public var payload: Data?
  /// What it is based on; nil: the last writer wins.
  public var base: Base?
  /// A parked mutation of the same record that this one takes the place of.
  public var replacing: UUID?

  /// A put of a whole payload.
  /// - Parameters:
  ///   - mutation: a UUID that the app has saved with its own row; by default a new one.
  ///   - base: what the person saw; nil: the last writer wins.
  ///   - replacing: a parked mutation of the same record; it and every earlier one are removed.
  public static func put(
    _ record: RecordID, _ payload: Data, base: Base? = nil, mutation: UUID? = nil,
    replacing: UUID? = nil
  ) -> Mutation {
    Mutation(
      id: mutation ?? TimeOrderedUUID.next(), isCallerGiven: mutation != nil, kind: .put,
      record: record,
      payload: payload, base: base, replacing: replacing)
  }

  /// A put of a value as JSON.
  /// - Throws: what its encoding throws.
  public static func put(
    _ record: RecordID, encoding value: some Encodable, base: Base? = nil, mutation: UUID? = nil,
    replacing: UUID? = nil
  ) throws -> Mutation {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return put(
      record, try encoder.encode(value), base: base, mutation: mutation, replacing: replacing)
  }

  /// A delete. Parameters as for ``put(_:_:base:mutation:replacing:)``.
  public static func delete(
    _ record: RecordID, base: Base? = nil, mutation: UUID? = nil, replacing: UUID? = nil
  ) -> Mutation {
    Mutation(
      id: mutation ?? TimeOrderedUUID.next(), isCallerGiven: mutation != nil, kind: .delete,
      record: record,
      payload: nil, base: base, replacing: replacing)
  }
}

/// What became of an enqueued mutation.
public struct EnqueueReceipt: Sendable, Hashable {
  /// What the outbox did.
  public enum Outcome: Sendable, Hashable {
    /// It is on disk and will be sent.
    case stored
    /// The same UUID with the same content was waiting already.
    case alreadyWaiting
    /// The same caller-given UUID was settled earlier; strike it off.
    case alreadySettled
    /// A delete that replaced a parked put of a record that the hub never had: both are gone.
    case cancelledOut
  }

  /// The mutation's UUID.
  public let mutation: UUID
  /// What the outbox did.
  public let outcome: Outcome
}
