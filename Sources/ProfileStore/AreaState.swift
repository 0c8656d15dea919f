public import Foundation
import LMDB

/// What an area says of itself, beside its owner.
package enum AreaState: Sendable, Hashable {
  /// Open for its owner, or for the signed-out person.
  case active
  /// Being adopted: enqueues throw `moved`, another account gets `alreadyAdopted`.
  case frozen(Adoption)
  /// Adopted: its content lives in another area.
  case moved(Adoption)
  /// Erased: every later transaction of any process reads this and throws.
  case erased

  /// One adoption of an unowned area.
  package struct Adoption: Sendable, Hashable {
    /// Bytes of the adopting account.
    package var account: Data
    /// The adoption's UUID, which the adopting area records.
    package var id: UUID

    package init(account: Data, id: UUID) {
      self.account = account
      self.id = id
    }
  }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    func write(_ tag: UInt8, _ adoption: Adoption?) {
      writer.write(tag)
      if let adoption {
        writer.write(adoption.account)
        writer.write(adoption.id)
      }
    }
    switch self {
    case .active: write(0, nil)
    case .frozen(let adoption): write(1, adoption)
    case .moved(let adoption): write(2, adoption)
    case .erased: write(3, nil)
    }
    return writer.bytes
  }

  init(_ bytes: RawSpan) throws(StoreError) {
    var reader = ByteReader(bytes, of: "area state")
    let tag = try reader.readUInt8()
    func adoption() throws(StoreError) -> Adoption {
      Adoption(account: Data(try reader.readBytes()), id: try reader.readUUID())
    }
    switch tag {
    case 0: self = .active
    case 1: self = .frozen(try adoption())
    case 2: self = .moved(try adoption())
    case 3: self = .erased
    default: throw reader.damaged
    }
    try reader.requireEnd()
  }
}

/// A place in one account's history: versions and cursors compare only within one epoch.
public struct Cursor: Sendable, Hashable {
  /// The epoch.
  public var epoch: UUID
  /// Everything up to it was applied and committed.
  public var sequence: UInt64

  package init(epoch: UUID, sequence: UInt64) {
    self.epoch = epoch
    self.sequence = sequence
  }
}

/// What an area knows of one record at the hub: durably applied, nothing else.
public struct RecordMetadata: Sendable, Hashable {
  /// The epoch in which ``version`` counts.
  public var epoch: UUID
  /// The newest version that was applied.
  public var version: UInt64
  /// It was a tombstone.
  public var isDeleted: Bool

  package init(epoch: UUID, version: UInt64, isDeleted: Bool) {
    self.epoch = epoch
    self.version = version
    self.isDeleted = isDeleted
  }
}
