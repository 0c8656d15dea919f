import Foundation
import LMDB
import Synchronization

/// Which sign-ins the registry has noticed, so that each is looked at once.
struct SignIns: Sendable {
  /// Account → generation of the last sign-in for which the unowned data was looked at.
  private var noticed: [Data: UInt64] = [:]
  /// Sign-ins of which only reads are known so far.
  private(set) var seen: [Data: UInt64] = [:]

  func isNoticed(_ account: Data, _ generation: UInt64) -> Bool {
    noticed[account] == generation
  }

  mutating func see(_ account: Data, _ generation: UInt64) {
    if !isNoticed(account, generation) { seen[account] = generation }
  }

  mutating func notice(_ account: Data, _ generation: UInt64) {
    noticed[account] = generation
    // Whatever came in before it is covered, too.
    seen[account] = nil
  }
}

// A sign-in that decides nothing about the unowned data is noted, so that two guests' data never mix
// unasked. (Contract section 3.)
extension ProfileRegistry {
  /// Requires that the session says this account.
  @discardableResult
  package static func require(
    _ account: VerifiedAccount, in session: any AccountSession
  ) throws(StoreError) -> SignedInAccount {
    try require(account.bytes, session.state)
  }

  /// Requires that a session has said this account.
  @discardableResult
  static func require(
    _ account: Data, _ state: SessionState
  ) throws(StoreError) -> SignedInAccount {
    switch state {
    case .unknown: throw .sessionUnknown
    case .nobody:
      throw StoreError(.notSignedIn, "nobody is signed in: sign the account in first")
    case .account(let signedIn):
      guard signedIn.account == account else {
        throw StoreError(
          .anotherAccountSignedIn,
          "the session says another account than the call: use that account's profile")
      }
      return signedIn
    }
  }

  /// Notes durably that an account came in, by opening its profile, an enqueue or a pass, and has
  /// not decided about the unowned data that is there.
  /// - Parameter nearest: the session that counts for the call; nil: the registry's.
  package nonisolated(nonsending) func noticeSignIn(
    of account: VerifiedAccount, in nearest: (any AccountSession)? = nil
  ) async throws {
    var generation: UInt64?
    if case .account(let signedIn) = (nearest ?? session).state,
      signedIn.account == account.bytes
    {
      generation = signedIn.generation
    }
    try await noticeSignIn(of: account.bytes, generation: generation)
  }

  /// Sign-ins that have only read so far are noted before a signed-out person goes on.
  nonisolated(nonsending) func noticeSeenSignIns() async throws {
    for (account, generation) in signIns.withLock(\.seen) {
      try await noticeSignIn(of: account, generation: generation)
    }
  }

  nonisolated(nonsending) func noticeSignIn(of account: Data, generation: UInt64?)
    async throws
  {
    if let generation, signIns.withLock({ $0.isNoticed(account, generation) }) { return }
    if try index.unowned() != nil, try index.undecided() == nil {
      try await locked { [self] in
        guard try index.undecided() == nil, let id = try index.unowned() else { return }
        if asks(account, about: id, kept: try index.kept()) {
          try index.write { $0.setUndecided(account) }
        }
      }
    }
    if let generation { signIns.withLock { $0.notice(account, generation) } }
  }

  /// Whether an account that comes in leaves something undecided in the unowned area.
  private func asks(_ account: Data, about id: AreaID, kept: Data?) -> Bool {
    do {
      let area = try open(id)
      // Decided once for what is there: asked again only when there is more, or somebody else comes.
      return try !area.unownedSummary().isEmpty && kept != Self.decision(of: account, for: area)
    } catch {
      // There may be something. It is listed with its problem and blocks nobody who has an account.
      return true
    }
  }

  /// Who decided to keep the unowned data, and how much of it there was.
  static func decision(of account: Data, for area: Area) throws -> Data {
    var writer = ByteWriter()
    writer.write(area.id.uuid)
    writer.write(try area.lastOrder())
    writer.write(UInt64(try area.unownedSummary().appEntries))
    writer.write(account)
    return Data(writer.bytes)
  }
}
