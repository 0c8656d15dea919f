import Foundation
import HubProtocol
public import ProfileStore
import Synchronization

/// What the registry holds for this module, and knows nothing of.
private struct Attached: Sendable {
  var transport: (any HubTransport)?
  var observer: any SyncObserver = NoObserver()
  var clock: any Clock<Duration> = ContinuousClock()
}

extension ProfileRegistry {
  /// Gives the store its way to the hub; a later call replaces it for passes that begin then.
  public func connect(to transport: any HubTransport) {
    attach { $0.transport = transport }
  }

  /// Tells an observer what goes over the network from now on; a later call replaces it.
  /// - Parameters:
  ///   - observer: nil: nobody any more.
  ///   - clock: what durations are measured by.
  public func observe(
    with observer: (any SyncObserver)?, clock: any Clock<Duration> = ContinuousClock()
  ) {
    attach { attached in
      attached.observer = observer ?? NoObserver()
      attached.clock = clock
    }
  }

  private func attach(_ change: (inout Attached) -> Void) {
    attachment.withLock { attachment in
      var attached = attachment as? Attached ?? Attached()
      change(&attached)
      attachment = attached
    }
  }

  private var attached: Attached {
    attachment.withLock { $0 } as? Attached ?? Attached()
  }

  func transport() throws(SyncError) -> any HubTransport {
    guard let transport = attached.transport else {
      throw SyncError(
        .notConnected, "the registry has no way to a hub: call connect(to:) with a HubConnection")
    }
    return transport
  }

  var observer: any SyncObserver { attached.observer }
  /// What durations are measured by.
  var clock: any Clock<Duration> { attached.clock }

  /// Asks the hub for one account in its present sign-in.
  func caller(
    for account: VerifiedAccount, in area: Area, _ session: any AccountSession,
    _ signedIn: SignedInAccount
  ) throws(SyncError) -> HubCaller {
    let transport = try transport()
    let attached = attached
    return HubCaller(
      account: account, session: session, signedIn: signedIn, transport: transport,
      observer: attached.observer, clock: attached.clock, board: .of(area.signals))
  }

  /// Whether the area keeps the app's records.
  var keepsRecords: Bool { policy.keepsRecords }

  /// Asks the hub whose token this is, with a nonce, and registers a client that asserts the answer:
  /// the proof that writing an owner needs. It signs nobody in and changes nothing on this device.
  ///
  /// - Parameters:
  ///   - token: the bearer token.
  ///   - clientName: what the hub's operator sees of this device, 0 to 256 bytes.
  /// - Throws: ``SyncError``: `needsAuthentication` for a refused token, `accountDisabled`,
  ///   `accountErased`, `accountMismatch`, `hubUnreachable`, `hubNotTrusted`, `badHubAddress`,
  ///   `hubUnavailable`, `badAnswer`, `refused`, also for a longer name, before anything is sent.
  /// - Cost: two requests.
  public func verify(token: String, clientName: String = "") async throws -> VerifiedAccount {
    do {
      return try await verified(token: token, clientName: clientName)
    } catch let error as SyncError where error.code == .accountMismatch {
      observer.securityEvent()
      throw error
    }
  }

  private func verified(token: String, clientName: String) async throws -> VerifiedAccount {
    let nameByteCount = clientName.utf8.count
    guard nameByteCount <= WireLimits.clientNameByteCountMax else {
      throw SyncError(
        .refused,
        "the client's name has \(nameByteCount) bytes, the limit is "
          + "\(WireLimits.clientNameByteCountMax): give a shorter one")
    }
    let transport = try transport()
    let nonce = UUID()
    let sessionResponse = try await Self.ask(
      .session(nonce: nonce), token: token, account: nil,
      expecting: Expectation(hub: nil, account: nil, call: .session), over: transport)
    let answer = try AnswerBody.read(SessionAnswer.self, from: sessionResponse)
    guard answer.nonce == nonce else { throw SyncError.badAnswer("it answers another question") }
    guard AnswerBody.isConsistent(sessionResponse, hub: answer.hub, account: answer.account) else {
      throw SyncError(
        .accountMismatch,
        "the answer's head and body name different accounts or hubs: treat it as a security event")
    }

    let client = UUID()
    let clientResponse = try await Self.ask(
      .registerClient(client: client, name: clientName), token: token, account: answer.account,
      expecting: Expectation(hub: answer.hub, account: answer.account, call: .client),
      over: transport)
    let registered = try AnswerBody.read(ClientAnswer.self, from: clientResponse)
    guard registered.hub == answer.hub, registered.account == answer.account else {
      throw SyncError(
        .accountMismatch, "the hub named two accounts for one token: treat it as a security event")
    }
    guard registered.client == client else { throw SyncError.badAnswer("it names another client") }
    return VerifiedAccount(
      hub: answer.hub, id: answer.account, proof: .hub(ClientTicket(client: client)))
  }

  private static func ask(
    _ call: HubCall, token: String, account: AccountID?, expecting expected: Expectation,
    over transport: any HubTransport
  ) async throws -> HubResponse {
    let response: HubResponse
    do {
      response = try await transport.send(
        call.request(token: token, account: account, format: .cbor))
    } catch {
      if error.code == .cancelled || Task.isCancelled { throw CancellationError() }
      throw SyncError(error)
    }
    let action = AnswerJudge.action(for: response, expecting: expected)
    guard action == .use else {
      throw error(for: action, response)
    }
    return response
  }

  private static func error(for action: AnswerAction, _ response: HubResponse) -> SyncError {
    let code: SyncError.Code =
      switch action {
      case .refreshToken: .needsAuthentication
      case .stopForSecurity: .accountMismatch
      case .networkTrouble: .badAnswer
      case .backOff: .hubUnavailable
      case .freeze: .accountErased
      case .stop(.accountDisabled): .accountDisabled
      default: .refused
      }
    return SyncError(
      code,
      refusal: PassRunner.Refused(
        action: action, hubCode: AnswerJudge.problem(of: response)?.code,
        detail: "status \(response.status)"))
  }
}
