import Foundation
import ProfileStore

/// What a pass did.
public struct SyncReport: Sendable {
  /// Mutations that were sent.
  public internal(set) var sent = 0
  /// Mutations that the hub has taken, those it had already included.
  public internal(set) var acknowledged = 0
  /// Mutations that were parked.
  public internal(set) var parked = 0
  /// Mutations that the hub wants later.
  public internal(set) var deferred = 0
  /// Mutations that are held, newly or again: the hub fails on them and takes others.
  public internal(set) var held = 0
  /// Conflicts that the pass's resolver has decided.
  public internal(set) var resolved = 0
  /// Pages that were pulled.
  public internal(set) var pages = 0
  /// Changes that were applied.
  public internal(set) var delivered = 0
  /// Changes that came and were older than what this area knew.
  public internal(set) var outdated = 0
  /// Records that the hub lost with an epoch; see `Profile.lostAtHub()`.
  public internal(set) var lostAtHub = 0
  /// How the next leg of a replay is asked for; nil when there is none.
  public internal(set) var continuation: ReplayContinuation?

  /// Others wrote faster than the pass read.
  var wasOutrun = false

  /// Whether everything was brought. If not, a replay has another leg, see ``continuation``, or
  /// others wrote faster than the pass read: the next pass goes on.
  public var isComplete: Bool { continuation == nil && !wasOutrun }
}

/// Where a replay goes on; given back by `synchronize(account:continuing:)`.
///
/// Valid until another replay of the area begins; it may be stored.
public struct ReplayContinuation: Sendable, Hashable, Codable {
  let scan: UUID
  /// The sequence up to which the replay has come.
  public let place: UInt64
  /// The sequence at which it ends.
  public let until: UInt64
  /// What an app whose store is behind has saved: it stays behind until the replay's end.
  let position: BatchPosition?
}

/// How long a pass waits for a running one of the same area.
public enum PassWait: Sendable, Hashable {
  /// Until its turn comes.
  case untilItsTurn
  /// So long, then it throws `busy`.
  case atMost(Duration)
  /// Not at all: it throws `busy` at once.
  case notAtAll

  var timeout: Duration? {
    switch self {
    case .untilItsTurn: nil
    case .atMost(let duration): duration
    case .notAtAll: .zero
    }
  }
}
