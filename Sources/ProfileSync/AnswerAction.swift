package import HubProtocol

/// What the client does with one answer: the rows of the protocol's last table.
package enum AnswerAction: Hashable, Sendable {
  /// 2xx of the right hub and account. Its body is compared with both, and with the epoch.
  case use
  /// Names another account or hub: use nothing, stop, report.
  case stopForSecurity
  /// 409: only a replay takes up the new epoch.
  case epochChanged
  /// Not the hub's, or not by the protocol: nothing is known of the request.
  case networkTrouble(retryAfter: Duration?)
  /// 429 and 5xx: nothing is known of the request.
  case backOff(retryAfter: Duration?)
  /// A 500 of the hub itself to a push, for the owner: it may fail on one of the mutations.
  case failed(retryAfter: Duration?)
  /// A 413: a smaller batch. A single one is parked only if the hub itself said it.
  case halve(isFromHub: Bool)
  /// 400 on a push: find the one. It is parked only if the problem names it.
  case bisect(namesMutation: Bool)
  /// 401: refresh once.
  case refreshToken
  /// 404 `client_unknown`: register once.
  case registerClient
  /// 410 `cursor_expired`: a scan from zero.
  case scanFromZero
  /// 410 `account_erased`: freeze, keep the data.
  case freeze
  /// Stop and report, no retry by itself.
  case stop(HubCode)

  /// What the answer asked to wait.
  var retryAfter: Duration? {
    switch self {
    case .networkTrouble(let retryAfter), .backOff(let retryAfter), .failed(let retryAfter):
      retryAfter
    default: nil
    }
  }
}
