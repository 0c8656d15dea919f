public import Foundation
import Synchronization

/// Who is signed in at this moment, read as one value.
public enum SessionState: Sendable, Equatable {
  /// Not restored yet: every enqueue and pass throws `sessionUnknown`.
  case unknown
  /// Nobody is signed in.
  case nobody
  /// Somebody is signed in, also offline and with an expired token.
  case account(SignedInAccount)
}

/// A signed-in account with its token and generation, read together.
public struct SignedInAccount: Sendable, Equatable {
  /// ``VerifiedAccount/bytes`` of the account.
  public let account: Data
  /// The bearer token, or nil when there is none now.
  public let token: String?
  /// Changes at each sign-in and sign-out and at nothing else; a new token keeps it. No two sign-ins
  /// of a process have the same, whatever sessions they are of: one that comes again is not looked
  /// at, so unowned data that is there would not be asked about.
  public let generation: UInt64

  /// Puts the three together.
  public init(account: Data, token: String?, generation: UInt64) {
    self.account = account
    self.token = token
    self.generation = generation
  }
}

/// One source of credentials: says who is signed in.
///
/// Given to the registry, to `profile(for:session:)` or to a pass; the nearest one counts. An app
/// can use ``AppSession``, or conform a type of its own. (Contract section 1.)
public protocol AccountSession: Sendable {
  /// Who is signed in now. Called within transactions: it must answer at once, from memory.
  var state: SessionState { get }

  /// Asked once when the hub refuses the token: obtain a new one and return when ``state`` has it.
  ///
  /// The account and the generation must stay as they are.
  /// - Throws: whatever kept it from getting one; the pass then ends with `needsAuthentication`.
  func refreshToken() async throws
}

extension AccountSession {
  /// Has nothing to refresh: the pass ends with `needsAuthentication` and keeps everything.
  public func refreshToken() async throws {}
}

/// A session that tells of its changes: whoever waits for one need not look from time to time.
package protocol SignallingSession: AccountSession {
  /// Raised after each change of ``AccountSession/state``.
  var changes: Signal { get }
}

/// A session that an app drives: `restore`, `signIn`, `replaceToken`, `signOut`.
///
/// Begins as *unknown* until one of them was called.
public final class AppSession: AccountSession, SignallingSession {
  private struct Values {
    var state = SessionState.unknown
    var generation: UInt64 = 0
  }

  private static let lastGeneration = Atomic<UInt64>(0)

  /// Counts over all sessions of the process, so that two of them never give one number.
  package static func nextGeneration() -> UInt64 {
    lastGeneration.wrappingAdd(1, ordering: .relaxed).newValue
  }

  private let values = Mutex(Values())
  /// Raised after each change of ``state``, for whoever waits for one.
  package let changes = Signal()
  private let refresh: (@Sendable (AppSession) async throws -> Void)?

  /// Makes a session that nobody has restored yet.
  /// - Parameter refresh: gets a new token when the hub refuses the current one and calls
  ///   ``replaceToken(_:)``; none by default.
  public init(refresh: (@Sendable (AppSession) async throws -> Void)? = nil) {
    self.refresh = refresh
  }

  /// Who is signed in now.
  public var state: SessionState { values.withLock(\.state) }

  /// Says that nobody is signed in from now on.
  public func signOut() {
    values.withLock { values in
      values.generation = Self.nextGeneration()
      values.state = .nobody
    }
    changes.raise()
  }

  /// Signs a verified account in, once the app has bound, adopted or declined.
  public func signIn(_ account: VerifiedAccount, token: String) {
    restore(account: account.bytes, token: token)
  }

  /// Restores who was signed in when the app ended, from ``VerifiedAccount/bytes`` it had stored.
  ///
  /// The bytes open that account's own area and nothing else; a token may come later.
  /// - Parameters:
  ///   - account: what the app had stored; nil: nobody was signed in.
  ///   - token: the bearer token, or nil when there is none now.
  public func restore(account: Data?, token: String?) {
    values.withLock { values in
      values.generation = Self.nextGeneration()
      values.state =
        account.map {
          .account(SignedInAccount(account: $0, token: token, generation: values.generation))
        } ?? .nobody
    }
    changes.raise()
  }

  /// Takes a new token of the same sign-in; the generation stays. Without a sign-in it does nothing.
  public func replaceToken(_ token: String?) {
    values.withLock { values in
      guard case .account(let signedIn) = values.state else { return }
      values.state = .account(
        SignedInAccount(
          account: signedIn.account, token: token, generation: signedIn.generation))
    }
    changes.raise()
  }

  /// Runs the closure given to ``init(refresh:)``.
  public func refreshToken() async throws {
    try await refresh?(self)
  }
}

/// The passes whose apply closures the current task runs inside of.
package enum PassContext {
  /// Innermost last; also those that are over, when a task outlives the closure that began it.
  @TaskLocal package static var passes: [Pass] = []

  /// The passes whose closures have not returned yet, innermost last.
  package static var running: [Pass] { passes.filter(\.isRunning) }

  /// A pass while its closure runs: its session counts there.
  package final class Pass: Sendable {
    package let area: AreaID
    package let session: any AccountSession
    private let running = Mutex(true)

    package init(area: AreaID, session: any AccountSession) {
      self.area = area
      self.session = session
    }

    package var isRunning: Bool { running.withLock { $0 } }

    /// The closure has returned: tasks that it began and that still run are inside no more.
    package func end() { running.withLock { $0 = false } }
  }
}
