import Foundation
import LMDB

/// Whose a mutation is: the send path refuses one whose stamp is not the owner. (Contract section 4.)
struct OutboxStamps {
  let owner: Data
  /// Entries of the signed-out person carry no stamp; binding has stamped them by their place.
  let unownedThrough: UInt64

  func require(_ entry: OutboxEntry) throws(StoreError) {
    guard let stamp = entry.stamp else { return try require(nil, at: entry.order) }
    try require(stamp.span.bytes, at: entry.order)
  }

  /// - Parameters:
  ///   - stamp: the bytes of the account under which a mutation was enqueued; nil: signed out.
  ///   - order: its place.
  func require(_ stamp: RawSpan?, at order: UInt64) throws(StoreError) {
    guard let stamp else {
      guard order <= unownedThrough else { throw StoreError.foreignStamp }
      return
    }
    guard byteOrder(stamp, owner.span.bytes) == 0 else { throw StoreError.foreignStamp }
  }
}

extension Area {
  /// - Throws: `notBound`.
  func stamps<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws -> OutboxStamps {
    guard let owner = try tables.owner(transaction) else {
      throw StoreError(.notBound, "an unowned area sends nothing: bind it first")
    }
    return OutboxStamps(
      owner: owner, unownedThrough: try tables.number(.unownedThrough, transaction))
  }
}
