public import Foundation

/// One event of `GET /v1/events`: a hint that something may have changed, never the change itself.
/// (Protocol sections "Endpoints" and "Settled details", *Events*.)
public enum HubEvent: Hashable, Sendable {
  /// The first event of a stream: whose it is, and where the account stands.
  case hello(HubGreeting)
  /// Sequences up to this one were given; a pull brings what they were given to.
  case change(highWater: UInt64)
  /// The last event of a stream: why it ends. A ``HubFarewell`` in text form, or a code of a later
  /// version.
  case bye(code: String)

  /// The event's name on the wire.
  public var name: String {
    switch self {
    case .hello: "hello"
    case .change: "change"
    case .bye: "bye"
    }
  }
}

/// What a stream of events says first.
public struct HubGreeting: Hashable, Sendable {
  /// The hub's ID.
  public var hub: UUID
  /// The account's present epoch.
  public var epoch: UUID
  /// The account whose changes are hinted at.
  public var account: AccountID
  /// The last sequence given, 0 to 2^53 - 1, read after the stream had begun to listen.
  public var highWater: UInt64

  /// Takes every member; nothing is checked.
  public init(hub: UUID, epoch: UUID, account: AccountID, highWater: UInt64) {
    self.hub = hub
    self.epoch = epoch
    self.account = account
    self.highWater = highWater
  }
}

/// Why a hub ends a stream of events.
public enum HubFarewell: String, CaseIterable, Hashable, Sendable {
  /// The token has ended: ask again with a fresh one.
  case tokenExpired = "token_expired"
  /// The account was erased.
  case accountErased = "account_erased"
  /// An administrator has stopped the account.
  case accountDisabled = "account_disabled"
  /// The account's history was reset.
  case epochChanged = "epoch_changed"
  /// The hub stops: ask again later.
  case shuttingDown = "shutting_down"
}
