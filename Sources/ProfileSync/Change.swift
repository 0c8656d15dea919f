public import Foundation
public import HubProtocol
public import ProfileStore

/// Whether this device has an edit of the record that the hub has not taken.
public enum LocalEdit: Sendable, Hashable {
  /// None.
  case none
  /// One waits to be sent.
  case pending
  /// One is parked.
  case parked
}

/// One change of the hub for the app to save: a copy that may be kept. See ``LentChange`` for one that
/// costs nothing.
public struct Change: Sendable, Hashable {
  /// The record.
  public let record: RecordID
  /// The hub's version. For an inferred deletion: the newest one that was known.
  public let version: UInt64
  /// The payload; nil: the record was deleted.
  public let payload: Data?
  /// The record was deleted.
  public let isDeleted: Bool
  /// The deletion follows from a whole scan that did not bring the record; no tombstone said it.
  public let isInferred: Bool
  /// Whether an edit of this device waits, when the batch was made: keep it, the app's edit is newer.
  public let localEdit: LocalEdit

  /// What an edit of this record is based on.
  public var base: Mutation.Base { isDeleted ? .mustNotExist : .version(version) }

  /// Decodes the payload as JSON.
  /// - Throws: `undecodable` for a deletion; what the decoding throws.
  public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    guard let payload else { throw StoreError.deletionHasNoPayload }
    return try JSONDecoder().decode(type, from: payload)
  }
}

extension StoreError {
  static let deletionHasNoPayload = StoreError(
    .undecodable, "a deletion has no payload: look at isDeleted first")
}
