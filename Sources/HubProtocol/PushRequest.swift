public import Foundation

/// What a mutation is based on.
public enum WireBase: Hashable, Sendable {
  /// A version, 0 to 2^53 - 1; 0 = there must be no live record.
  case version(UInt64)
  /// The version that an earlier mutation of the same record was given.
  case mutation(UUID)
}

/// `put` or `delete`.
public enum MutationKind: String, Sendable, Hashable {
  /// The record has this payload from now on.
  case put
  /// The record is a tombstone from now on.
  case delete
}

/// One mutation of a push.
public struct WireMutation: Hashable, Sendable {
  /// Its UUID, unique in its account; sending it again changes nothing.
  public var mutation: UUID
  /// Its place in the outbox, 0 to 2^53 - 1; compared within one request only.
  public var order: UInt64
  /// What it does to the record.
  public var kind: MutationKind
  /// The record that it changes.
  public var id: RecordID
  /// What it expects of the record; nil: the last writer wins.
  public var base: WireBase?
  /// The high water that the client knew when it first sent this mutation, 0 to 2^53 - 1.
  public var firstSent: UInt64
  /// 0 bytes or more, there exactly if `kind` is `put`. No bytes and no payload are not the same.
  public var payload: Data?

  /// Takes every member; nothing is checked.
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
  /// The UUID of the area that sends.
  public var client: UUID
  /// The epoch that the client is in.
  public var epoch: UUID
  /// The client's cursor, 0 to 2^53 - 1.
  public var cursor: UInt64
  /// Any number, none too; how many a hub takes is in ``HubLimits/pushMutations``.
  public var mutations: [WireMutation]

  /// Takes every member; nothing is checked.
  public init(client: UUID, epoch: UUID, cursor: UInt64, mutations: [WireMutation]) {
    self.client = client
    self.epoch = epoch
    self.cursor = cursor
    self.mutations = mutations
  }
}
