extension SyncError {
  /// What a pass that was stopped with this code says.
  init(_ code: Code, refusal: PassRunner.Refused?) {
    let detail = refusal.map { $0.detail.isEmpty ? "" : " (\($0.detail))" } ?? ""
    self.init(
      code, Self.message(for: code) + detail, retryAfter: refusal?.action.retryAfter,
      hubCode: refusal?.hubCode)
  }

  /// No answer came, or none that was kept.
  init(_ error: TransportError) {
    switch error.code {
    case .answerTooLarge:
      self = .badAnswer("it is longer than its limit", cause: error)
    case .invalidRequest:
      // The token is the only part of a request that is not this package's own.
      self.init(
        .needsAuthentication, "the token cannot be sent as it is: get a new one", cause: error)
    case .tlsFailed:
      self.init(
        .hubNotTrusted,
        "no trusted encrypted connection was made: check the hub's address, its certificate and the "
          + "network; nothing was sent",
        cause: error)
    case .invalidURL:
      self.init(.badHubAddress, "the hub's address cannot be used: correct it", cause: error)
    default:
      self.init(
        .hubUnreachable,
        "no answer came from the hub: try again later; what was sent will be sent again",
        cause: error)
    }
  }

  static func badAnswer(_ what: String, cause: TransportError? = nil) -> SyncError {
    SyncError(
      .badAnswer, "the hub's answer cannot be used: \(what); try again later", cause: cause)
  }

  static let stateLost = badAnswer("it came to a step that nobody began")

  private static func message(for code: Code) -> String {
    switch code {
    case .needsAuthentication:
      "the hub refuses the token: sign in again; outbox and cursor are kept"
    case .accountMismatch:
      "the answer names another account or hub than the area's owner: nothing of it was used and "
        + "nothing more is sent; treat it as a security event"
    case .epochChanged:
      "the account's history was reset at the hub: call with replayFromStart: true"
    case .epochAlreadyLeft:
      "the hub is back in an epoch that this device has left: its operator has to look"
    case .cursorExpired:
      "the hub calls the cursor expired again after a whole scan: its operator has to look"
    case .accountDisabled: "the hub has disabled the account: ask its operator"
    case .accountErased:
      "the account is erased at the hub: this device's data is kept until the app erases it"
    case .clientBoundElsewhere:
      "this area's client belongs to another account at the hub: inspect the store with profilectl"
    case .hubUnavailable: "the hub cannot answer now: try again later"
    case .badAnswer:
      "something else than the hub answered, or not by its protocol: look at the network and the "
        + "hub's address, then try again"
    case .continuationExpired: "that replay is over: begin a new one"
    case .refused: "the hub refuses the request for good: update the app, or ask its operator"
    default: "the pass stopped"
    }
  }
}
