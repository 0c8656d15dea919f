import HubProtocol
import ProfileStore

/// Why a pass stopped. Everything that it had committed stays; nothing is lost, and the next pass
/// goes on from there.
///
/// It carries no payload, record ID, account ID or token.
public struct SyncError: Error, Sendable, CustomStringConvertible {
  /// Why it stopped. Open: a later version may add codes, so a `switch` needs a `default`.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name as it is written in Swift.
    public let description: String
    private init(_ name: String) { description = name }

    /// The registry has no way to a hub: call `connect(to:)`.
    public static let notConnected = Code("notConnected")
    /// Called inside an apply closure of the same area: call it after the closure returned.
    public static let insideApplyClosure = Code("insideApplyClosure")
    /// Another pass of the area was still running when the waiting time was up.
    public static let busy = Code("busy")
    /// The session changed while the pass ran: nothing of the batch in hand was committed.
    public static let sessionChanged = Code("sessionChanged")
    /// The hub refuses the token, also a refreshed one: sign in again. Outbox and cursor are kept.
    public static let needsAuthentication = Code("needsAuthentication")
    /// Security event: the hub, or something in its place, named another account or hub.
    public static let accountMismatch = Code("accountMismatch")
    /// The account's history was reset at the hub: call with `replayFromStart: true`.
    public static let epochChanged = Code("epochChanged")
    /// The hub is back in an epoch that this area has left: the hub's operator has to look.
    public static let epochAlreadyLeft = Code("epochAlreadyLeft")
    /// The hub calls the cursor expired again after a whole scan: the hub's operator has to look.
    public static let cursorExpired = Code("cursorExpired")
    /// The app's store is older than what it accepted (restored from a backup?): replay.
    public static let appStoreBehind = Code("appStoreBehind")
    /// The replay that a continuation belongs to is over: begin a new one.
    public static let continuationExpired = Code("continuationExpired")
    /// The app keeps its records itself: give `applyChanges`.
    public static let closureRequired = Code("closureRequired")
    /// No answer came: try again later.
    public static let hubUnreachable = Code("hubUnreachable")
    /// No trusted encrypted connection could be made: a wrong address, a certificate that is not
    /// trusted, or someone in between. Tell the person.
    public static let hubNotTrusted = Code("hubNotTrusted")
    /// The hub's address cannot be used: correct it.
    public static let badHubAddress = Code("badHubAddress")
    /// The hub asks for patience, or failed: try again after ``SyncError/retryAfter``.
    public static let hubUnavailable = Code("hubUnavailable")
    /// An answer that cannot be used: not the hub's, garbage, or against the protocol.
    public static let badAnswer = Code("badAnswer")
    /// The hub refused the request for good; ``SyncError/hubCode`` says why.
    public static let refused = Code("refused")
    /// The hub has disabled the account.
    public static let accountDisabled = Code("accountDisabled")
    /// The account is erased at the hub; this device's data is kept until the app erases it.
    public static let accountErased = Code("accountErased")
    /// The area's client ID belongs to another account at the hub.
    public static let clientBoundElsewhere = Code("clientBoundElsewhere")
  }

  /// Whether, and when, trying again may help.
  public enum RetryClass: Sendable, Hashable {
    /// At once.
    case now
    /// After a pause; see ``SyncError/retryAfter``.
    case later
    /// When the app has done what the code says.
    case needsTheApp
    /// Not by itself.
    case never
  }

  /// Why it stopped.
  public let code: Code
  /// One sentence with the remedy.
  public let message: String
  /// What the hub asked to wait, at most 5 minutes; nil when it did not say.
  public let retryAfter: Duration?
  /// The hub's own code, where it gave one.
  public let hubCode: String?
  /// What the transport said.
  public let cause: TransportError?

  package init(
    _ code: Code, _ message: String, retryAfter: Duration? = nil, hubCode: String? = nil,
    cause: TransportError? = nil
  ) {
    self.code = code
    self.message = message
    self.retryAfter = retryAfter
    self.hubCode = hubCode
    self.cause = cause
  }

  /// Whether, and when, trying again may help.
  public var retryClass: RetryClass {
    switch code {
    case .busy: .now
    case .hubUnreachable, .hubUnavailable, .badAnswer: .later
    case .epochAlreadyLeft, .cursorExpired, .accountMismatch, .accountDisabled, .accountErased,
      .clientBoundElsewhere, .refused:
      .never
    default: .needsTheApp
    }
  }

  /// The message, and what the transport said.
  public var description: String {
    cause.map { "\(message): \($0)" } ?? message
  }
}
