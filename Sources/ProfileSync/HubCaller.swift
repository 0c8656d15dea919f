import Foundation
import HubProtocol
import ProfileStore
import Synchronization

/// Asks the hub for one account in one sign-in. Every request names the owner; the session is looked
/// at before it goes and after its answer came.
struct HubCaller: Sendable {
  let account: VerifiedAccount
  let session: any AccountSession
  /// Who was signed in when the work began; anything else ends it.
  let signedIn: SignedInAccount
  let transport: any HubTransport
  let observer: any SyncObserver
  let clock: any Clock<Duration>
  let board: EventBoard
  /// The line in which the pass that asks holds a place; nil: it is asked outside of any pass.
  var passes: PassQueue?

  /// Requires that the session says what it said when the work began: who, and in which sign-in.
  /// - Returns: what it says now, its token read together with it.
  @discardableResult
  func requireSession() throws(SyncError) -> SignedInAccount {
    guard case .account(let now) = session.state, now.account == signedIn.account,
      now.generation == signedIn.generation
    else {
      throw SyncError(
        .sessionChanged,
        "the session changed while the pass ran: nothing of the batch in hand was committed, and "
          + "nothing more was sent")
    }
    return now
  }

  /// Sends one call with the owner's name and returns an answer that is for use. A refused token is
  /// refreshed once, and that one request sent again.
  /// - Throws: `PassRunner.Refused` for the machine; `sessionChanged`, `hubUnreachable`,
  ///   `hubNotTrusted`, `badHubAddress`, `badAnswer`, `CancellationError`.
  func ask(
    _ call: HubCall, _ kind: Expectation.Call, as measured: RequestMeasurement.Call? = nil,
    limits: HubLimits
  ) async throws -> HubResponse {
    try await ask(kind, as: measured) { token in
      call.request(token: token, account: account.id, format: .cbor, limits: limits)
    }
  }

  /// The same with a request that is made in another way.
  /// - Parameter makeRequest: gets the token, and is called again with a new one.
  func ask(
    _ kind: Expectation.Call, as measured: RequestMeasurement.Call? = nil,
    _ makeRequest: (_ token: String) -> HubRequest
  ) async throws -> HubResponse {
    try await withToken { token, isRepeated in
      let request = makeRequest(token)
      return try await exchange(
        request, kind, measured ?? kind.measured, isRepeated: isRepeated
      ) { [transport] in
        let response = try await transport.send(request)
        return (response, response)
      }
    }
  }

  /// Begins to listen to the hub's hints. A refused token is refreshed once, as by ``ask``; the
  /// stream's head is judged like any answer, and nothing of the stream is used before.
  /// - Throws: as ``ask``.
  func listen(over transport: any HubEventTransport) async throws -> HubEvents {
    try await withToken { token, isRepeated in
      let request = HubCall.events.request(token: token, account: account.id, format: .cbor)
      return try await exchange(request, .pull, .events, isRepeated: isRepeated) {
        switch try await transport.events(request) {
        case .opened(let head, let events): (head, events)
        case .refused(let response): (response, nil)
        }
      }
    }
  }

  /// An answer, judged, and what is of use in it.
  private struct Judged<Content: Sendable>: Sendable {
    let response: HubResponse
    let content: Content?
    let action: AnswerAction
  }

  /// Sends with the session's token; a refused one is refreshed once, and what was sent is sent again.
  private func withToken<Content: Sendable>(
    _ send: (_ token: String, _ isRepeated: Bool) async throws -> Judged<Content>
  ) async throws -> Content {
    var refresh = TokenRefresh()
    var isRepeated = false
    while true {
      let now = try requireSession()
      board.lastUsed.withLock { $0 = now }
      var refused = PassRunner.Refused(action: .refreshToken)
      if let token = now.token {
        let answer = try await send(token, isRepeated)
        if answer.action == .use, let content = answer.content { return content }
        refused = PassRunner.Refused(
          action: answer.action == .use ? .networkTrouble(retryAfter: nil) : answer.action,
          hubCode: AnswerJudge.problem(of: answer.response)?.code,
          detail: "status \(answer.response.status)")
      }
      guard refused.action == .refreshToken, refresh.refused() == .refresh else { throw refused }
      try await refreshToken(refused: now)
      let new = try requireSession().token
      guard refresh.isWorthTrying(new, after: now.token) else { throw refused }
      isRepeated = true
    }
  }

  private func exchange<Content: Sendable>(
    _ request: HubRequest, _ kind: Expectation.Call, _ call: RequestMeasurement.Call,
    isRepeated: Bool,
    _ send: @escaping @Sendable () async throws -> (HubResponse, Content?)
  ) async throws -> Judged<Content> {
    try Task.checkCancellation()
    let time = Stopwatch(clock)
    func note(
      _ response: HubResponse?, refusal: String? = nil, failure: TransportError.Code? = nil
    ) {
      observer.requestEnded(
        RequestMeasurement(
          call: call, status: response?.status, refusal: refusal, failure: failure,
          isRepeated: isRepeated, sentByteCount: request.body?.count ?? 0,
          receivedByteCount: response?.body.count ?? 0, duration: time.elapsed()))
    }
    let (response, content): (HubResponse, Content?)
    do {
      (response, content) = try await interruptible(send)
    } catch let error as TransportError {
      note(nil, failure: error.code)
      if error.code == .cancelled || Task.isCancelled { throw CancellationError() }
      throw SyncError(error)
    }
    let action = AnswerJudge.action(
      for: response,
      expecting: Expectation(hub: account.hub, account: account.id, call: kind))
    // A code that the protocol does not know may be anything; it is none to show.
    note(
      response,
      refusal: action == .use
        ? nil : AnswerJudge.problem(of: response).flatMap { HubCode(rawValue: $0.code)?.rawValue })
    // Whatever else it says: it was asked for somebody who may be gone. This is reported nevertheless.
    if action != .stopForSecurity { try requireSession() }
    return Judged(response: response, content: content, action: action)
  }

  /// A store that is suspended lets go of its locks, and a pass holds one.
  private func interruptible<R: Sendable>(
    _ body: @escaping @Sendable () async throws -> R
  ) async throws -> R {
    guard let passes else { return try await body() }
    return try await passes.interruptible(body)
  }

  private func refreshToken(refused: SignedInAccount) async throws {
    do {
      // It may end this pass, and goes on itself.
      try await interruptible { [session, board] in
        try await TokenRefreshes.all.refresh(session, refused: refused, owner: board)
      }
    } catch let error as StoreError where error.code == .suspended {
      throw error
    } catch {
      if Task.isCancelled { throw CancellationError() }
      throw SyncError(
        .needsAuthentication,
        "the hub refuses the token, and the session could not get a new one: sign in again")
    }
  }

  /// Compares what head and body name with what is expected, before anything of it is used.
  func requireOurs(
    _ response: HubResponse, hub: UUID, account: AccountID, epoch: UUID, expecting expected: UUID?
  ) throws {
    guard hub == self.account.hub, account == self.account.id else {
      throw PassRunner.Refused(action: .stopForSecurity, detail: "in the body")
    }
    guard AnswerBody.isConsistent(response, hub: hub, account: account),
      AnswerBody.namedEpoch(of: response) == epoch
    else { throw SyncError.badAnswer("head and body name different things") }
    guard epoch == expected else { throw PassRunner.Refused(action: .epochChanged) }
  }
}

extension Expectation.Call {
  var measured: RequestMeasurement.Call {
    switch self {
    case .session: .session
    case .client: .client
    case .pull: .pull
    case .push: .push
    case .record: .record
    }
  }
}
