import Foundation
import HubProtocol
public import ProfileStore
import Synchronization

/// Holds the way to the hub in the registry, which knows nothing of networks.
private struct Attached: Sendable {
  let transport: any HubTransport
}

extension ProfileRegistry {
  /// Gives the store its way to the hub; a later call replaces it for passes that begin then.
  public func connect(to transport: any HubTransport) {
    attachment.withLock { $0 = Attached(transport: transport) }
  }

  func transport() throws(SyncError) -> any HubTransport {
    guard let attached = attachment.withLock({ $0 }) as? Attached else {
      throw SyncError(
        .notConnected, "the registry has no way to a hub: call connect(to:) with a HubConnection")
    }
    return attached.transport
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
  ///   `accountErased`, `accountMismatch`, `hubUnreachable`, `hubUnavailable`, `badAnswer`.
  /// - Cost: two requests.
  public func verify(token: String, clientName: String = "") async throws -> VerifiedAccount {
    let transport = try transport()
    let nonce = UUID()
    let sessionResponse = try await Self.ask(
      .session(nonce: nonce), token: token, account: nil,
      expecting: Expectation(hub: nil, account: nil, call: .session), over: transport)
    let answer = try Self.read(SessionAnswer.self, from: sessionResponse)
    guard answer.nonce == nonce else { throw Self.badAnswer("it answers another question") }
    try Self.requireSame(sessionResponse, hub: answer.hub, account: answer.account)

    let client = UUID()
    let clientResponse = try await Self.ask(
      .registerClient(client: client, name: clientName), token: token, account: answer.account,
      expecting: Expectation(hub: answer.hub, account: answer.account, call: .client),
      over: transport)
    let registered = try Self.read(ClientAnswer.self, from: clientResponse)
    guard registered.hub == answer.hub, registered.account == answer.account else {
      throw SyncError(
        .accountMismatch, "the hub named two accounts for one token: treat it as a security event")
    }
    guard registered.client == client else { throw Self.badAnswer("it names another client") }
    return VerifiedAccount(
      hub: answer.hub, id: answer.account, proof: .hub(ClientTicket(client: client)))
  }

  /// The body of an answer repeats what its header fields say.
  private static func requireSame(
    _ response: HubResponse, hub: UUID, account: AccountID
  ) throws(SyncError) {
    let named = AnswerJudge.header(HubHeader.hub, of: response).flatMap { UUID(wireText: $0) }
    guard named == hub, AnswerJudge.namedAccount(of: response) == account else {
      throw SyncError(
        .accountMismatch,
        "the answer's head and body name different accounts or hubs: treat it as a security event")
    }
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
      throw SyncError(.hubUnreachable, "no answer came from the hub: try again later", cause: error)
    }
    let action = AnswerJudge.action(for: response, expecting: expected)
    guard action == .use else {
      throw error(for: action, hubCode: AnswerJudge.problem(of: response)?.code)
    }
    return response
  }

  private static func error(for action: AnswerAction, hubCode: String?) -> SyncError {
    switch action {
    case .refreshToken:
      SyncError(
        .needsAuthentication, "the hub refuses the token: get a new one", hubCode: hubCode)
    case .stopForSecurity:
      SyncError(
        .accountMismatch, "the answer names another account or hub: treat it as a security event",
        hubCode: hubCode)
    case .backOff(let retryAfter):
      SyncError(
        .hubUnavailable, "the hub cannot answer now, or something else answered: try again later",
        retryAfter: retryAfter, hubCode: hubCode)
    case .freeze: SyncError(.accountErased, "the account is erased at the hub", hubCode: hubCode)
    case .stop(.accountDisabled):
      SyncError(.accountDisabled, "the hub has disabled the account", hubCode: hubCode)
    default: SyncError(.refused, "the hub refuses the request", hubCode: hubCode)
    }
  }

  private static func read<Message: HubMessage>(
    _ type: Message.Type, from response: HubResponse
  ) throws(SyncError) -> Message {
    let header = AnswerJudge.header(HubHeader.contentType, of: response) ?? ""
    guard let format = WireFormat.allCases.first(where: { header.hasPrefix($0.rawValue) }) else {
      throw badAnswer("it is neither CBOR nor JSON")
    }
    do {
      return try Message(decoding: response.body, as: format)
    } catch {
      throw badAnswer("\(error)")
    }
  }

  private static func badAnswer(_ what: String) -> SyncError {
    SyncError(.badAnswer, "the hub's answer cannot be used: \(what); try again later")
  }
}
