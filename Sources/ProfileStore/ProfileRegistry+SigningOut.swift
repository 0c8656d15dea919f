import Foundation
import LMDB

/// What signing an account out leaves behind on this device: for the question that an app asks.
public struct SignOutSummary: Sendable, Hashable {
  /// What has not reached the hub, or whose answer was lost; parked ones count.
  public let pending: PendingSummary
  /// How many of those were never sent at all; the rest was sent without an answer yet, or is parked.
  public let neverSent: Int
  /// Records that the hub lost with an epoch, and that are here only.
  public let lostAtHub: Int

  /// Whether the hub has everything: what is here could be erased and nothing would be lost.
  ///
  /// Signing out itself loses nothing either way: what waits stays, and goes up after the same account
  /// signed in again.
  public var isSafe: Bool { pending.isEmpty && lostAtHub == 0 }
}

extension ProfileRegistry {
  /// What an account's profile holds that the hub does not: to be asked before a person signs out.
  ///
  /// Works offline and needs no session; nothing is sent or changed.
  /// - Throws: `unknownAccount` when this store has no profile of that account, so that nothing of it
  ///   is here; `erased`; `suspended`; `storage`.
  /// - Cost: reads the outbox.
  public func signOutSummary(of account: VerifiedAccount) async throws -> SignOutSummary {
    try await opening {
      guard let area = try openOwned(account) else { throw StoreError.unknownAccount }
      return try area.read { transaction in
        var neverSent = 0
        try transaction.scan(area.tables.outbox) { key, bytes in
          let order = try UInt64Codec.decode(key)
          let isParked = try OutboxEntry(order: order, bytes: bytes).parked != nil
          if try !isParked && area.firstSent(order, transaction) == nil { neverSent += 1 }
          return .next
        }
        return SignOutSummary(
          pending: try area.pendingSummary(transaction), neverSent: neverSent,
          lostAtHub: try transaction.count(of: area.tables.lost))
      }
    }
  }
}
