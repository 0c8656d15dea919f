package import HubProtocol

/// Who a token speaks for, as far as the hub has verified it.
package struct VerifiedToken: Hashable, Sendable {
  package let account: AccountID
  /// The token's end, integer seconds since 1970.
  package let expiresAt: Int64

  package init(account: AccountID, expiresAt: Int64) {
    self.account = account
    self.expiresAt = expiresAt
  }
}

/// Why a token was refused; the text names the rule, never the token.
package enum TokenRefusal: Error, Hashable, Sendable {
  /// Everything was right but `exp`: a fresh token of the same issuer will do.
  case expired
  case invalid(String)
}

/// Says which account a bearer token speaks for; everything that a hub believes of who asks is its.
package protocol TokenChecker: Sendable {
  /// The account of a token.
  /// - Parameters:
  ///   - token: as the request carried it, without the scheme.
  ///   - now: seconds since 1970.
  func verify(_ token: [UInt8], now: Double) throws(TokenRefusal) -> VerifiedToken
}
