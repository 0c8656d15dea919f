package import Foundation
package import HubProtocol

/// Where a hub keeps accounts, records and results.
///
/// Each call is one transaction of its own, and decides by the rules of this module on the state that
/// the transaction sees: what a request found before does not count. An implementation keeps every
/// account apart by the bytes of its ID. Calls may run concurrently.
///
/// After each commit that changed what a waiting client would be answered (records, status, epoch,
/// minimum cursor) it wakes those who wait for the account, through ``AccountSignals``.
package protocol HubStore: Sendable {
  /// The hub's ID, the same for ever.
  var hubID: UUID { get }

  /// How the account stands; one that was never seen is made, with a new epoch.
  func admit(_ account: AccountID) async throws -> AccountStanding

  /// The account that a client belongs to, or nil if nobody registered it.
  func owner(ofClient client: UUID) async throws -> AccountID?

  /// Writes a client into the directory, or its new name; the directory is not part of the account.
  func register(
    client: UUID, name: String, for account: AccountID
  ) async throws -> ClientRegistrationOutcome

  /// A page of changes.
  /// - Parameter now: seconds since 1970, for a fork by a cursor above the high water.
  func page(_ query: PageQuery, of account: AccountID, now: Int64) async throws -> PageOutcome

  /// One record, tombstones too.
  func record(_ id: RecordID, of account: AccountID) async throws -> RecordOutcome

  /// Judges and applies a push: effects, mutation IDs and results in one transaction.
  func push(_ plan: PushPlan, for account: AccountID) async throws -> PushOutcome

  /// An administrator's change.
  /// - Returns: the state after it; nil when the account was never seen.
  func administer(
    _ action: AdministrativeAction, on account: AccountID
  ) async throws -> AccountState?

  /// Whether an error passes by itself, such as a full disk: the same request may do later.
  func isPassing(_ error: any Error) -> Bool

  /// Whether the store can serve.
  func probe() async throws

  /// Ends it; later calls throw.
  func close() async throws
}

/// An account's state, and whether it has anything.
package struct AccountStanding: Hashable, Sendable {
  package var state: AccountState
  /// It has no record and no tombstone.
  package var isEmpty: Bool

  package init(state: AccountState, isEmpty: Bool) {
    self.state = state
    self.isEmpty = isEmpty
  }
}

/// Which changes a pull wants.
package struct PageQuery: Hashable, Sendable {
  package var epoch: UUID
  package var after: UInt64
  package var until: UInt64?
  /// Records at most.
  package var limit: Int
  /// Payload and ID bytes at most; one larger record comes alone.
  package var byteCountMax: Int
  /// Whether the records are wanted in CBOR, ready to be sent, and not as values.
  package var isEncoded: Bool

  package init(
    epoch: UUID, after: UInt64, until: UInt64?, limit: Int, byteCountMax: Int,
    isEncoded: Bool = false
  ) {
    self.isEncoded = isEncoded
    self.epoch = epoch
    self.after = after
    self.until = until
    self.limit = limit
    self.byteCountMax = byteCountMax
  }

  package var claim: CursorClaim {
    CursorClaim(epoch: epoch, cursor: after, newestWanted: until)
  }
}

/// What registering a client came to.
package enum ClientRegistrationOutcome: Hashable, Sendable {
  case created
  case updated
  case boundElsewhere
}

/// A page, or why there is none.
package enum PageOutcome: Sendable {
  case page(AccountState, records: PageRecords, more: Bool, next: UInt64)
  case refused(AccountState, AccountRefusal)
}

/// The records of a page in the form that was asked for.
package enum PageRecords: Sendable {
  case values([WireRecord])
  case encoded(EncodedRecords)

  package var isEmpty: Bool {
    switch self {
    case .values(let records): records.isEmpty
    case .encoded(let records): records.count == 0
    }
  }
}

/// A record or its absence, or why neither is said.
package enum RecordOutcome: Sendable {
  case found(AccountState, WireRecord?)
  case refused(AccountState, AccountRefusal)
}

/// The verdicts on a push, or why it was not judged.
package enum PushOutcome: Sendable {
  case judged(AccountState, PushVerdicts)
  case refused(AccountState, AccountRefusal)
}

/// What an administrator may do to an account.
package enum AdministrativeAction: Hashable, Sendable {
  case disable
  case enable
  /// Removes all data; the account is answered `account_erased` until it is made again.
  case erase
  /// Makes an erased account again.
  case recreate
  /// A new epoch; nil forks at the high water.
  case beginEpoch(forkedAt: UInt64?)
  /// Removes tombstones below a sequence; nil means the high water.
  case purgeTombstones(below: UInt64?)
  /// Removes results below a sequence; nil means the high water.
  case purgeResults(below: UInt64?)
}
