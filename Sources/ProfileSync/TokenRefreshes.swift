import ProfileStore
import Synchronization

/// The refreshes of tokens that are under way in this process: one for each session and sign-in, whoever
/// asks.
///
/// One that has begun goes on to its end: the authority may have changed the refresh token already, and
/// an app that is stopped before it has read the answer is signed out. Who waits for it may be cancelled
/// or suspended, and whoever asks meanwhile waits for the same.
final class TokenRefreshes: Sendable {
  private struct Key: Hashable, Sendable {
    var session: ObjectIdentifier
    var generation: UInt64
  }

  /// One refresh.
  private final class Running: Sendable {
    private let result = Mutex<Result<Void, any Error>?>(nil)
    private let ended = Signal()

    func end(_ result: Result<Void, any Error>) {
      self.result.withLock { $0 = result }
      ended.raise()
    }

    func wait() async throws {
      while true {
        if let result = result.withLock({ $0 }) { return try result.get() }
        await ended.wait(past: 0)
        try Task.checkCancellation()
      }
    }
  }

  static let all = TokenRefreshes()
  private let running = Mutex<[Key: Running]>([:])

  /// Has a session refresh its token, or waits for a refresh that is under way. Where it has another
  /// one already than was refused, nothing is done.
  /// - Parameters:
  ///   - refused: who was signed in, with the token that the hub refuses.
  ///   - owner: stands for a session that is no object.
  /// - Throws: what the session throws; `CancellationError` as soon as the calling task is cancelled.
  func refresh(
    _ session: any AccountSession, refused: SignedInAccount, owner: AnyObject
  ) async throws {
    let object = type(of: session) is AnyClass ? session as AnyObject : owner
    let key = Key(session: ObjectIdentifier(object), generation: refused.generation)
    let refresh: Running? = running.withLock { running in
      if let refresh = running[key] { return refresh }
      // One that has just ended is not under way any more, and the session has what it brought.
      guard session.state == .account(refused) else { return nil }
      let refresh = Running()
      running[key] = refresh
      // In a task of its own, which nobody cancels.
      Task {
        let result: Result<Void, any Error>
        do { result = .success(try await session.refreshToken()) } catch {
          result = .failure(error)
        }
        self.running.withLock { $0[key] = nil }
        refresh.end(result)
      }
      return refresh
    }
    try await refresh?.wait()
  }
}
