import HubProtocol
import HubRules
import Synchronization

/// What a token says whose signature was verified: for ever the same. Only the time goes on.
struct TokenClaims: Hashable, Sendable {
  let account: AccountID
  /// `nbf`, seconds since 1970.
  let notBefore: Double?
  /// `exp`, seconds since 1970.
  let end: Double

  /// What the token is worth now, with no leeway.
  func token(now: Double) throws(TokenRefusal) -> VerifiedToken {
    if let notBefore, now < notBefore { throw .invalid("the token is not valid yet") }
    guard now < end else { throw .expired }
    return VerifiedToken(account: account, expiresAt: Int64(end.rounded(.down)))
  }
}

/// Remembers tokens that were verified, byte for byte, so that a client that asks a hundred times
/// with one token has its signature checked once.
///
/// Nothing is remembered of a token that was refused for anything but its time.
final class TokenCache: Sendable {
  /// One that is full begins anew: it costs each client one more check.
  static let countMax = 4_096
  /// A longer token is checked each time, so that all together stay below 8 MiB.
  static let tokenByteCountMax = 2_048

  private let known = Mutex<[[UInt8]: TokenClaims]>([:])

  func claims(of token: [UInt8]) -> TokenClaims? { known.withLock { $0[token] } }

  func add(_ claims: TokenClaims, of token: [UInt8]) {
    guard token.count <= TokenCache.tokenByteCountMax else { return }
    known.withLock { known in
      if known.count >= TokenCache.countMax { known.removeAll(keepingCapacity: true) }
      known[token] = claims
    }
  }
}
