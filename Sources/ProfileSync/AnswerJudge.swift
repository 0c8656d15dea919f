package import Foundation
package import HubProtocol

/// Whose answer is expected, and to what.
package struct Expectation: Hashable, Sendable {
  package enum Call: Sendable, Hashable, CaseIterable {
    case session
    case client
    case pull
    case push
    case record
  }

  /// nil while verifying: no hub and no account is known yet.
  package var hub: UUID?
  package var account: AccountID?
  package var call: Call

  package init(hub: UUID?, account: AccountID?, call: Call) {
    self.hub = hub
    self.account = account
    self.call = call
  }
}

/// Judges answers. Pure: no clock, no I/O.
///
/// The order is the protocol's (section "What the client does with an answer"): (a) what names
/// somebody else is a security event; (b) what is not the hub's, or no answer of the protocol, is
/// network trouble; (c) what parks, freezes, replays or advances needs the owner's name.
package enum AnswerJudge {
  /// The longest `Retry-After` that is honoured.
  package static let retryAfterMax = Duration.seconds(300)

  package static func action(
    for response: HubResponse, expecting expected: Expectation
  ) -> AnswerAction {
    let isSuccess = (200..<300).contains(response.status)
    let hub = header(HubHeader.hub, of: response).flatMap { UUID(wireText: $0) }
    let account = namedAccount(of: response)
    let problem = problem(of: response)
    if isSuccess || isProblem(response) {
      if let wanted = expected.hub, header(HubHeader.hub, of: response) != nil, hub != wanted {
        return .stopForSecurity
      }
      if let wanted = expected.account, header(HubHeader.account, of: response) != nil,
        account != wanted
      {
        return .stopForSecurity
      }
      if hub != nil, problem?.code == HubCode.accountMismatch.rawValue { return .stopForSecurity }
    }
    guard hub != nil else { return trouble(response, expected.call) }
    // Every 2xx of the calls that this module makes is given for a verified token.
    if isSuccess { return account == nil ? trouble(response, expected.call) : .use }
    guard let problem, let code = HubCode(rawValue: problem.code),
      status(of: code) == response.status
    else { return trouble(response, expected.call) }
    return action(
      for: code, call: expected.call, isOwners: account != nil,
      otherwise: trouble(response, expected.call))
  }

  /// - Parameter isOwners: the account that is expected was named, or, while none is known yet, one.
  private static func action(
    for code: HubCode, call: Expectation.Call, isOwners: Bool, otherwise trouble: AnswerAction
  ) -> AnswerAction {
    switch code {
    case .tokenInvalid, .tokenExpired: .refreshToken
    case .accountMismatch: .stopForSecurity
    case .clientUnknown: call == .push && isOwners ? .registerClient : .stop(code)
    case .accountErased: isOwners ? .freeze : trouble
    case .cursorExpired: isOwners ? .scanFromZero : trouble
    case .epochChanged: isOwners ? .epochChanged : trouble
    case .tooLarge: call == .push ? .halve(isFromHub: isOwners) : .stop(code)
    case .badMutation: call == .push ? .bisect(namesMutation: isOwners) : .stop(code)
    case .badRequest: call == .push ? .bisect(namesMutation: false) : .stop(code)
    case .internal:
      call == .push && isOwners ? .failed(retryAfter: trouble.retryAfter) : trouble
    case .rateLimited, .unavailable: trouble
    case .accountDisabled, .clientBoundElsewhere, .accountMissing, .badCursor, .notFound,
      .methodNotAllowed, .uriTooLong, .unsupportedMediaType, .headersTooLarge:
      .stop(code)
    // Verdicts on single mutations, never a problem of their own: they have no status.
    case .blockedBy, .busy, .mutationReused, .badBase: trouble
    }
  }

  /// Parks and freezes nothing. A proxy's 413 still makes a batch smaller.
  private static func trouble(_ response: HubResponse, _ call: Expectation.Call) -> AnswerAction {
    let retryAfter = retryAfter(of: response)
    switch response.status {
    case 413 where call == .push: return .halve(isFromHub: false)
    case 429, 500...: return .backOff(retryAfter: retryAfter)
    default: return .networkTrouble(retryAfter: retryAfter)
    }
  }

  /// The status that comes with a code; nil for those of verdicts. A code with another status is not
  /// the hub's word.
  private static func status(of code: HubCode) -> Int? {
    switch code {
    case .accountMissing, .badCursor, .badMutation, .badRequest: 400
    case .tokenInvalid, .tokenExpired: 401
    case .accountMismatch, .accountDisabled, .clientBoundElsewhere: 403
    case .notFound, .clientUnknown: 404
    case .methodNotAllowed: 405
    case .epochChanged: 409
    case .accountErased, .cursorExpired: 410
    case .tooLarge: 413
    case .uriTooLong: 414
    case .unsupportedMediaType: 415
    case .rateLimited: 429
    case .headersTooLarge: 431
    case .internal: 500
    case .unavailable: 503
    case .blockedBy, .busy, .mutationReused, .badBase: nil
    }
  }

  private static func isProblem(_ response: HubResponse) -> Bool {
    !(200..<300).contains(response.status)
      && header(HubHeader.contentType, of: response)?.lowercased()
        .hasPrefix(HubProblem.contentType) == true
  }

  /// The problem, if the answer is one by its type and form.
  package static func problem(of response: HubResponse) -> HubProblem? {
    guard isProblem(response) else { return nil }
    do {
      return try HubProblem(decoding: response.body)
    } catch {
      // An error without a readable problem is network trouble, which is what nil means here.
      return nil
    }
  }

  /// A field's value; empty, which is no value of any field here, when it came more than once.
  package static func header(_ name: String, of response: HubResponse) -> String? {
    let values = response.values(of: name)
    return values.count == 1 ? values[0] : values.isEmpty ? nil : ""
  }

  /// The account that the answer names, byte for byte.
  package static func namedAccount(of response: HubResponse) -> AccountID? {
    guard let text = header(HubHeader.account, of: response),
      let bytes = PercentEncoding.decode(text)
    else { return nil }
    do {
      return try AccountID(bytes: bytes)
    } catch {
      // No account can have that name; the callers treat it as another one.
      return nil
    }
  }

  /// Whole seconds, at most five minutes; a date or nonsense counts as not said.
  static func retryAfter(of response: HubResponse) -> Duration? {
    guard let text = header(HubHeader.retryAfter, of: response),
      text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), !text.isEmpty
    else { return nil }
    // More digits than fit are still a long time.
    return min(.seconds(Int64(text) ?? 300), retryAfterMax)
  }
}
