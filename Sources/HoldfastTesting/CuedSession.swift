public import Foundation
public import ProfileStore
import Synchronization

/// A session that changes on cue: at the moment that a test names, and not a little before or after.
///
/// ```swift
/// let session = CuedSession()
/// registry.connect(to: session.watching(hub))
/// session.plan(.signIn(bob, token: token), at: .request(.mutations))
/// session.plan(.signOut, at: .read(3))
/// ```
///
/// What is planned happens once, within the reading, or before the request, that is the moment's: no
/// task has to win a race for it. State, token and generation change together and are read together
/// (contract section 1). Begins as *unknown*. It may be used from many tasks.
public final class CuedSession: AccountSession, SignallingSession {
  /// What becomes of the session.
  public struct Change: Sendable, Hashable {
    fileprivate enum Kind: Sendable, Hashable {
      case unknown
      case nobody
      case account(Data, token: String?)
      case token(String?)
    }

    fileprivate let kind: Kind

    /// Not restored yet: every enqueue and pass throws `sessionUnknown`.
    public static let becomeUnknown = Change(kind: .unknown)
    /// Nobody is signed in any more; a new generation.
    public static let signOut = Change(kind: .nobody)

    /// An account is signed in, with a new generation, also where it was before.
    public static func signIn(_ account: VerifiedAccount, token: String?) -> Change {
      Change(kind: .account(account.bytes, token: token))
    }

    /// The same from `VerifiedAccount.bytes` that an app has stored.
    public static func restore(account: Data, token: String?) -> Change {
      Change(kind: .account(account, token: token))
    }

    /// Another token of the same sign-in, whose generation stays; nil: none now. It does nothing while
    /// nobody is signed in.
    public static func replaceToken(_ token: String?) -> Change {
      Change(kind: .token(token))
    }
  }

  /// When a planned change happens, counted from when it was planned: 1 is the next.
  public enum Moment: Sendable, Hashable {
    /// Within the reading of ``CuedSession/state`` with this number, which sees it already.
    case read(Int)
    /// Before such a request goes to what ``CuedSession/watching(_:)`` watches; nil: one of any kind.
    case request(MemoryHub.Endpoint?, Int = 1)
    /// When the answer to such a request has come, before whoever asked has it.
    case answer(MemoryHub.Endpoint?, Int = 1)
    /// When ``CuedSession/reach(_:)`` is called with this name.
    case named(String, Int = 1)
  }

  fileprivate struct Cue {
    var moment: Moment
    var countdown: Int
    var change: Change
  }

  fileprivate struct Values {
    var state = SessionState.unknown
    var cues: [Cue] = []
    var readCount = 0
    var refreshCount = 0
    var refresh: (@Sendable (CuedSession) async throws -> Void)?
  }

  private let values = Mutex(Values())
  package let changes = Signal()

  /// Makes a session that nobody has restored yet.
  /// - Parameter refresh: as for ``onRefresh(_:)``.
  public init(refresh: (@Sendable (CuedSession) async throws -> Void)? = nil) {
    values.withLock { $0.refresh = refresh }
  }

  // MARK: What it says

  /// Who is signed in now, after what was planned for this reading.
  public var state: SessionState {
    let (state, hasChanged) = values.withLock { values in
      values.readCount += 1
      let hasChanged = values.reach { if case .read = $0 { true } else { false } }
      return (values.state, hasChanged)
    }
    if hasChanged { changes.raise() }
    return state
  }

  /// How often ``state`` was read.
  public var readCount: Int { values.withLock(\.readCount) }

  // MARK: Changing it

  /// Changes it now.
  public func change(_ change: Change) {
    values.withLock { $0.make(change) }
    changes.raise()
  }

  /// Signs an account in, with a new generation.
  public func signIn(_ account: VerifiedAccount, token: String?) {
    change(.signIn(account, token: token))
  }

  /// Says that nobody is signed in from now on.
  public func signOut() { change(.signOut) }

  /// Takes another token of the same sign-in; the generation stays.
  public func replaceToken(_ token: String?) { change(.replaceToken(token)) }

  /// Plans a change. Of several for one moment the one that was planned last counts in the end.
  public func plan(_ change: Change, at moment: Moment) {
    precondition(moment.number > 0, "HoldfastTesting: moments are counted from 1")
    values.withLock {
      $0.cues.append(Cue(moment: moment, countdown: moment.number, change: change))
    }
  }

  /// What is planned and has not happened: a test that expects none cannot pass because its moment
  /// never came.
  public var planned: [Moment] { values.withLock { $0.cues.map(\.moment) } }

  /// Nothing is planned any more.
  public func forgetPlans() { values.withLock { $0.cues = [] } }

  /// Says that a moment has come which a test has named, in an apply closure for example.
  public func reach(_ name: String) {
    reach { if case .named(name, _) = $0 { true } else { false } }
  }

  private func reach(_ isNow: (Moment) -> Bool) {
    if values.withLock({ $0.reach(isNow) }) { changes.raise() }
  }

  // MARK: Tokens

  /// What is done when the hub refuses the token: ``replaceToken(_:)``, to throw, or to wait first.
  /// Without it there is no new token, and the pass ends with `needsAuthentication`.
  public func onRefresh(_ refresh: (@Sendable (CuedSession) async throws -> Void)?) {
    values.withLock { $0.refresh = refresh }
  }

  /// How often a new token was asked for.
  public var refreshCount: Int { values.withLock(\.refreshCount) }

  /// Does what ``onRefresh(_:)`` was given.
  public func refreshToken() async throws {
    let refresh = values.withLock { values in
      values.refreshCount += 1
      return values.refresh
    }
    try await refresh?(self)
  }
}

extension CuedSession.Values {
  /// Counts a moment, and makes the changes that were planned for it.
  fileprivate mutating func reach(_ isNow: (CuedSession.Moment) -> Bool) -> Bool {
    guard !cues.isEmpty else { return false }
    var due: [CuedSession.Change] = []
    for index in cues.indices where isNow(cues[index].moment) {
      cues[index].countdown -= 1
      if cues[index].countdown == 0 { due.append(cues[index].change) }
    }
    cues.removeAll { $0.countdown == 0 }
    for change in due { make(change) }
    return !due.isEmpty
  }

  fileprivate mutating func make(_ change: CuedSession.Change) {
    switch change.kind {
    case .unknown: state = .unknown
    case .nobody: state = .nobody
    case .account(let account, let token):
      state = .account(
        SignedInAccount(account: account, token: token, generation: AppSession.nextGeneration()))
    case .token(let token):
      guard case .account(let signedIn) = state else { return }
      state = .account(
        SignedInAccount(
          account: signedIn.account, token: token, generation: signedIn.generation))
    }
  }
}

extension CuedSession.Moment {
  fileprivate var number: Int {
    switch self {
    case .read(let number), .request(_, let number), .answer(_, let number),
      .named(_, let number):
      number
    }
  }
}

// MARK: - Requests

extension CuedSession {
  func requestGoes(to endpoint: MemoryHub.Endpoint?) {
    reach { moment in
      guard case .request(let wanted, _) = moment else { return false }
      return wanted == nil || wanted == endpoint
    }
  }

  func answerCame(from endpoint: MemoryHub.Endpoint?) {
    reach { moment in
      guard case .answer(let wanted, _) = moment else { return false }
      return wanted == nil || wanted == endpoint
    }
  }
}
