/// What a refused token leads to: refreshed once, and refused again means that the person has to
/// sign in. A value, for one request. (Protocol's last table, row 401.)
package struct TokenRefresh: Hashable, Sendable {
  package enum Decision: Hashable, Sendable {
    /// Ask the session for a new token, then send the same request again.
    case refresh
    /// `needsAuthentication`, and no further request.
    case giveUp
  }

  private var hasRefreshed = false

  package init() {}

  /// The hub has refused the token, or there is none.
  package mutating func refused() -> Decision {
    defer { hasRefreshed = true }
    return hasRefreshed ? .giveUp : .refresh
  }

  /// Whether the request is worth sending again: a token that stayed as it is would be refused again.
  package func isWorthTrying(_ new: String?, after old: String?) -> Bool {
    new != nil && new != old
  }
}
