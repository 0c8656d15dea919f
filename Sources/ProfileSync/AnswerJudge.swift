package import Foundation
package import HubProtocol

/// What the client does with one answer: the table of the protocol's last section, exhaustively.
package enum AnswerAction: Hashable, Sendable {
  /// 2xx of the right hub and account. Its epoch is compared with the body's.
  case use
  /// Names another account or hub: use nothing, stop, report.
  case stopForSecurity
  /// 409: only a replay takes up the new epoch.
  case epochChanged(epoch: UUID?, lineage: [LineageEntry])
  /// Network trouble, 429 and 5xx: nothing is known of the request.
  case backOff(retryAfter: Duration?)
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
}

/// Whose answer is expected, and to what.
package struct Expectation: Hashable, Sendable {
  package enum Call: Sendable, Hashable {
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
package enum AnswerJudge {
  /// The longest `Retry-After` that is honoured.
  package static let retryAfterMax = Duration.seconds(300)

  package static func action(
    for response: HubResponse, expecting expected: Expectation
  ) -> AnswerAction {
    let problem = problem(of: response)
    let isUsable = (200..<300).contains(response.status) || problem != nil
    let hub = header(HubHeader.hub, of: response).flatMap { UUID(wireText: $0) }
    let account = namedAccount(of: response)

    // (a) Present and unlike: somebody else's.
    if isUsable {
      if let wanted = expected.hub, let text = header(HubHeader.hub, of: response),
        UUID(wireText: text) != wanted
      {
        return .stopForSecurity
      }
      if let wanted = expected.account, header(HubHeader.account, of: response) != nil,
        account != wanted
      {
        return .stopForSecurity
      }
      if problem?.code == HubCode.accountMismatch.rawValue, hub != nil { return .stopForSecurity }
    }
    // (b) No hub of ours said it: network trouble, whatever the status is.
    let retryAfter = retryAfter(of: response)
    guard hub != nil else {
      return response.status == 413 ? .halve(isFromHub: false) : .backOff(retryAfter: retryAfter)
    }
    if (200..<300).contains(response.status) {
      guard account != nil else { return .backOff(retryAfter: retryAfter) }
      return .use
    }
    guard let problem, let code = HubCode(rawValue: problem.code) else {
      return response.status == 413 ? .halve(isFromHub: false) : .backOff(retryAfter: retryAfter)
    }
    // (c) What parks, freezes, replays or advances needs the owner's name.
    let isOwners = account != nil && (expected.account == nil || account == expected.account)
    return action(
      for: code, problem: problem, call: expected.call, isOwners: isOwners, retryAfter: retryAfter)
  }

  private static func action(
    for code: HubCode, problem: HubProblem, call: Expectation.Call, isOwners: Bool,
    retryAfter: Duration?
  ) -> AnswerAction {
    switch code {
    case .tokenInvalid, .tokenExpired: .refreshToken
    case .accountMismatch: .stopForSecurity
    case .accountDisabled, .clientBoundElsewhere: .stop(code)
    case .clientUnknown: call == .push && isOwners ? .registerClient : .stop(code)
    case .accountErased: isOwners ? .freeze : .backOff(retryAfter: retryAfter)
    case .cursorExpired: isOwners ? .scanFromZero : .backOff(retryAfter: retryAfter)
    case .epochChanged:
      isOwners
        ? .epochChanged(epoch: problem.epoch, lineage: problem.lineage ?? [])
        : .backOff(retryAfter: retryAfter)
    case .tooLarge: call == .push ? .halve(isFromHub: isOwners) : .stop(code)
    case .badMutation: call == .push ? .bisect(namesMutation: isOwners) : .stop(code)
    case .badRequest: call == .push ? .bisect(namesMutation: false) : .stop(code)
    case .rateLimited, .unavailable, .internal, .busy: .backOff(retryAfter: retryAfter)
    case .accountMissing, .badCursor, .notFound, .methodNotAllowed, .uriTooLong,
      .unsupportedMediaType, .headersTooLarge, .blockedBy, .mutationReused, .badBase:
      .stop(code)
    }
  }

  /// The problem, if the answer is one by its type and form.
  package static func problem(of response: HubResponse) -> HubProblem? {
    guard !(200..<300).contains(response.status),
      let type = header(HubHeader.contentType, of: response),
      type.lowercased().hasPrefix("application/problem+json")
    else { return nil }
    do {
      return try HubProblem(decoding: response.body)
    } catch {
      // An error without a readable problem is network trouble, which is what nil means here.
      return nil
    }
  }

  /// A field that is there exactly once.
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
    guard let text = header(HubHeader.retryAfter, of: response), let seconds = UInt32(text) else {
      return nil
    }
    return min(.seconds(Int64(seconds)), retryAfterMax)
  }
}
