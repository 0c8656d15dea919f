import Foundation
import LMDB

/// Whose a mutation is: the send path refuses one whose stamp is not the owner. (Contract section 4.)
struct OutboxStamps {
  let owner: Data
  /// Entries of the signed-out person carry no stamp; binding has stamped them by their place.
  let unownedThrough: UInt64

  func require(_ entry: OutboxEntry) throws(StoreError) {
    let stamp = entry.stamp ?? (entry.order <= unownedThrough ? owner : nil)
    guard stamp == owner else { throw StoreError.foreignStamp }
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
