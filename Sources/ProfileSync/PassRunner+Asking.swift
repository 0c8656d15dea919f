import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Requires that the session says what it said when the pass began: who, and in which sign-in.
  /// - Returns: what it says now, its token read together with it.
  @discardableResult
  func requireSession() throws(SyncError) -> SignedInAccount {
    try Self.require(signedIn, in: session)
  }

  /// The same as a check for another thread: within the transaction that commits a batch.
  var sessionCheck: @Sendable () throws -> Void {
    { [signedIn, session] in try Self.require(signedIn, in: session) }
  }

  @discardableResult
  private static func require(
    _ signedIn: SignedInAccount, in session: any AccountSession
  ) throws(SyncError) -> SignedInAccount {
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
  /// - Throws: ``Refused`` for the machine; `sessionChanged`, `hubUnreachable`, `hubNotTrusted`,
  ///   `badHubAddress`, `badAnswer`, `CancellationError`.
  func ask(_ call: HubCall, _ kind: Expectation.Call) async throws -> HubResponse {
    var refresh = TokenRefresh()
    while true {
      let now = try requireSession()
      var refused = Refused(action: .refreshToken)
      if let token = now.token {
        let response = try await exchange(call, token: token)
        let action = AnswerJudge.action(
          for: response,
          expecting: Expectation(hub: account.hub, account: account.id, call: kind))
        if action == .use { return response }
        refused = Refused(
          action: action, hubCode: AnswerJudge.problem(of: response)?.code,
          detail: "status \(response.status)")
      }
      guard refused.action == .refreshToken, refresh.refused() == .refresh else { throw refused }
      try await refreshToken()
      let new = try requireSession().token
      guard refresh.isWorthTrying(new, after: now.token) else { throw refused }
    }
  }

  private func exchange(_ call: HubCall, token: String) async throws -> HubResponse {
    try Task.checkCancellation()
    let request = call.request(
      token: token, account: account.id, format: .cbor, limits: hub?.limits ?? HubLimits())
    let response: HubResponse
    do {
      // A store that is suspended lets go of its locks, and this pass holds one.
      response = try await area.passes.interruptible { [transport] in
        try await transport.send(request)
      }
    } catch let error as TransportError {
      if error.code == .cancelled || Task.isCancelled { throw CancellationError() }
      throw SyncError(error)
    }
    // Whatever it says: it was asked for somebody who may be gone.
    try requireSession()
    return response
  }

  private func refreshToken() async throws {
    do {
      try await area.passes.interruptible { [session] in try await session.refreshToken() }
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
    _ response: HubResponse, hub: UUID, account: AccountID, epoch: UUID
  ) throws {
    guard hub == self.account.hub, account == self.account.id else {
      throw Refused(action: .stopForSecurity, detail: "in the body")
    }
    guard AnswerBody.isConsistent(response, hub: hub, account: account),
      AnswerBody.namedEpoch(of: response) == epoch
    else { throw SyncError.badAnswer("head and body name different things") }
    guard epoch == self.hub?.epoch else { throw Refused(action: .epochChanged) }
  }

  func verify() async throws -> SessionAnswer {
    let nonce = UUID()
    let response = try await ask(.session(nonce: nonce), .session)
    let answer = try AnswerBody.read(SessionAnswer.self, from: response)
    guard answer.nonce == nonce else { throw SyncError.badAnswer("it answers another question") }
    guard answer.hub == account.hub, answer.account == account.id else {
      throw Refused(action: .stopForSecurity, detail: "in the body")
    }
    hub = answer
    return answer
  }

  func register() async throws {
    let client = facts.client.id
    let response = try await ask(.registerClient(client: client, name: ""), .client)
    let answer = try AnswerBody.read(ClientAnswer.self, from: response)
    try requireOurs(
      response, hub: answer.hub, account: answer.account, epoch: answer.epoch)
    guard answer.client == client else { throw SyncError.badAnswer("it names another client") }
    try await area.noteRegistered(client)
  }
}
