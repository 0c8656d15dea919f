public import Foundation
public import HubProtocol
public import ProfileStore

/// A place in the batches that an area hands over: growing by one, saved by the app with its rows.
public struct BatchPosition: Sendable, Hashable, Codable, Comparable {
  /// Before the first batch: what an app gives whose store is new, or was lost.
  public static let start = BatchPosition(0)

  /// The number itself; 0 before the first batch.
  public let number: UInt64

  /// Takes a number that the app has saved.
  public init(_ number: UInt64) { self.number = number }

  /// Earlier or later within one area.
  public static func < (left: BatchPosition, right: BatchPosition) -> Bool {
    left.number < right.number
  }
}

/// Whether this device has an edit of the record that the hub has not taken.
public enum LocalEdit: Sendable, Hashable {
  /// None.
  case none
  /// One waits to be sent.
  case pending
  /// One is parked.
  case parked
}

/// One change of the hub for the app to save.
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
    guard let payload else {
      throw StoreError(.undecodable, "a deletion has no payload: look at isDeleted first")
    }
    return try JSONDecoder().decode(type, from: payload)
  }
}

/// Changes that the app saves in one transaction of its own store.
///
/// It is lent to the closure and cannot be kept. The changes are reached only with the owner that
/// the app's own store names, so that the check of the document's owner cannot be forgotten.
public struct ChangeBatch: ~Copyable {
  /// Save it with the rows; give it to the next pass.
  public let position: BatchPosition
  /// Part of a replay: records may come again in the version that the app has.
  public let isReplay: Bool
  private let owner: Data
  private let contents: [Change]
  private let area: Area

  init(
    position: BatchPosition, isReplay: Bool, owner: Data, contents: [Change], area: Area
  ) {
    self.position = position
    self.isReplay = isReplay
    self.owner = owner
    self.contents = contents
    self.area = area
  }

  /// How many changes there are; none when a replay only tells an app that it is complete again.
  public var count: Int { contents.count }

  /// The changes, each record at most once.
  /// - Parameter localOwner: ``VerifiedAccount/bytes`` of the owner as the app's own store has it,
  ///   read in the transaction that saves the batch.
  /// - Throws: `ownedByAnotherAccount` when that is not the area's owner: let it out of the closure;
  ///   nothing is lost, and the pass delivers the same batch again.
  public borrowing func changes(localOwner: Data) throws(StoreError) -> [Change] {
    guard localOwner == owner else {
      throw StoreError(
        .ownedByAnotherAccount,
        "the app's store belongs to another account than this batch: open that account's own store")
    }
    return contents
  }

  /// Whether an edit of the record waits, pending or parked, at this very moment: for asking within
  /// the app's own saving transaction. One that was discarded does not wait any more: the change that
  /// takes its place is in this batch.
  /// - Throws: `badRecordID`, `erased`, `storage`.
  public borrowing func isPending(_ record: RecordID) throws -> Bool {
    try Area.validate(record)
    let edit = try area.read { try area.localEdit(of: record, $0) }
    return edit.isPending || edit.isParked
  }
}
