public import Foundation

/// One call of a client to a hub: what to ask, from which a request follows.
///
/// A pure value; nothing is sent. The requests differ in nothing but what the protocol says, so
/// whoever has a transport needs no knowledge of paths, headers and limits. (Protocol section
/// "Endpoints".)
public enum HubCall: Hashable, Sendable {
  /// `GET /v1/session`: whose token is this? The answer repeats the nonce.
  case session(nonce: UUID)
  /// `PUT /v1/clients/{client}`: binds an area's client UUID to the account, or renames it.
  case registerClient(client: UUID, name: String)
  /// `GET /v1/changes`: one page of records, see ``ChangesQuery``.
  case changes(ChangesQuery)
  /// `GET /v1/records`: the newest record of one ID.
  case record(id: RecordID)
  /// `POST /v1/mutations`.
  case push(PushRequest)
  /// `GET /v1/events`: a stream of hints, which no transport reads to its end; see ``HubEvent``.
  case events

  /// The request to send.
  ///
  /// - Parameters:
  ///   - token: The session's token, as it is. It appears in `Authorization` and nowhere else.
  ///   - account: The owner of the area, which the hub compares with the token's account. Nil is
  ///     for ``session(nonce:)`` only, which asserts nothing whatever is given: any other call
  ///     without an account traps, since it would leave the choice of the account to the token.
  ///   - format: The form of the body, and the one asked for.
  ///   - limits: What the hub announced; until it did, the defaults. They bound the answer's
  ///     size, but never beyond ``answerByteCountMax``.
  /// - Returns: A request with its time and size limits.
  public func request(
    token: String, account: AccountID?, format: WireFormat, limits: HubLimits = HubLimits()
  ) -> HubRequest {
    var headers = [HeaderField(HubHeader.authorization, "Bearer \(token)")]
    if !isSession {
      guard let account else {
        preconditionFailure("only /v1/session may be asked without asserting an account")
      }
      headers.append(HeaderField(HubHeader.account, PercentEncoding.encode(bytes: account.bytes)))
    }
    let accepted = self == .events ? HubCall.eventContentType : format.contentType
    headers.append(HeaderField(HubHeader.accept, accepted))
    let body = body(format: format)
    if body != nil { headers.append(HeaderField(HubHeader.contentType, format.contentType)) }
    return HubRequest(
      method: method, target: target, headers: headers, body: body,
      answerByteCountMax: answerByteCountMax(format: format, limits: limits),
      timeout: timeout, stallLimit: stallLimit, mayWait: mayWait)
  }

  /// The request of a push in CBOR whose mutations are encoded already; see
  /// ``request(token:account:format:limits:)``.
  /// - Parameter push: the push without its mutations.
  package static func request(
    pushing mutations: EncodedMutations, in push: PushRequest, token: String, account: AccountID,
    limits: HubLimits
  ) -> HubRequest {
    let call = HubCall.push(push)
    var request = call.request(token: token, account: account, format: .cbor, limits: limits)
    request.body = push.encoded(with: mutations)
    request.answerByteCountMax = call.answerByteCountMax(
      toPushOf: mutations.count, format: .cbor, limits: limits)
    return request
  }

  /// The form of a stream of events, whatever the format of other answers.
  public static let eventContentType = "text/event-stream"
}

/// What to ask `GET /v1/changes` for.
public struct ChangesQuery: Hashable, Sendable {
  /// The sequence after which to begin: the cursor, or 0 for everything; 0 to 2^53 - 1.
  public var after: UInt64
  /// The epoch that `after` is of.
  public var epoch: UUID
  /// Records in the page; a number outside 1 to 500 is sent as the nearer of the two.
  public var limit: Int
  /// The sequence at which to end, for a scan from zero; not below `after`.
  public var until: UInt64?
  /// How many seconds the hub may wait for a change; a number outside 0 to 55 is sent as the
  /// nearer of the two, and 0 not at all. Counts only without `until`.
  public var waitSeconds: Int

  /// Takes a query.
  /// - Parameters:
  ///   - after: The sequence after which to begin.
  ///   - epoch: The epoch that it is of.
  ///   - limit: Records in the page, 500 by default.
  ///   - until: The sequence at which to end; nil by default.
  ///   - waitSeconds: How long the hub may wait for a change; 0 by default.
  public init(
    after: UInt64, epoch: UUID, limit: Int = WireLimits.batchCountMax, until: UInt64? = nil,
    waitSeconds: Int = 0
  ) {
    self.after = after
    self.epoch = epoch
    self.limit = limit
    self.until = until
    self.waitSeconds = waitSeconds
  }

  var sentLimit: Int { min(max(limit, 1), WireLimits.batchCountMax) }

  var sentWaitSeconds: Int { min(max(waitSeconds, 0), WireLimits.waitSecondsMax) }

  var target: String {
    var target = "/v1/changes?after=\(after)&epoch=\(epoch.wireText)&limit=\(sentLimit)"
    if let until { target += "&until=\(until)" }
    if sentWaitSeconds > 0 { target += "&wait=\(sentWaitSeconds)" }
    return target
  }
}

extension HubCall {
  private var isSession: Bool {
    if case .session = self { true } else { false }
  }

  private var method: String {
    switch self {
    case .session, .changes, .record, .events: "GET"
    case .registerClient: "PUT"
    case .push: "POST"
    }
  }

  private var target: String {
    switch self {
    case .session(let nonce): "/v1/session?nonce=\(nonce.wireText)"
    case .registerClient(let client, _): "/v1/clients/\(client.wireText)"
    case .changes(let query): query.target
    case .record(let id): "/v1/records?id=\(PercentEncoding.encode(bytes: id.bytes))"
    case .push: "/v1/mutations"
    case .events: "/v1/events"
    }
  }

  private func body(format: WireFormat) -> Data? {
    switch self {
    case .session, .changes, .record, .events: nil
    case .registerClient(_, let name): ClientRegistration(name: name).encoded(as: format)
    case .push(let push): push.encoded(as: format)
    }
  }
}
