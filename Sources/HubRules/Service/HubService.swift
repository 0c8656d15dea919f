package import Foundation
package import HubProtocol

/// The core of the hub: a request in, an answer out, by the protocol's order of checks.
///
/// It knows neither sockets nor tables. The listener asks twice: ``admit(_:)`` as soon as the head is
/// there, which refuses what needs no store, so that nobody without a token makes the hub read a
/// body; then ``answer(_:body:)``.
package struct HubService: Sendable {
  let store: any HubStore
  /// Who waits for changes; the store wakes them.
  package let signals: AccountSignals
  let tokens: any TokenChecker
  let digests: any ContentDigester
  package let limits: HubLimits
  /// Seconds since 1970.
  package let now: @Sendable () -> Double
  /// Nil unless faults on demand are enabled.
  let faults: FaultBoard?
  /// Takes every request that was let through; nil unless bodies are captured.
  let capture: Capture?
  /// How long an event stream is silent before it sends a comment.
  let commentInterval: Duration

  package typealias Capture =
    @Sendable (_ body: Data, _ head: RequestHead, _ account: AccountID) throws -> Void

  package init(
    store: any HubStore, signals: AccountSignals, tokens: any TokenChecker,
    digests: any ContentDigester, limits: HubLimits, now: @escaping @Sendable () -> Double,
    faultsEnabled: Bool = false, capture: Capture? = nil,
    commentInterval: Duration = .seconds(15)
  ) {
    self.store = store
    self.signals = signals
    self.tokens = tokens
    self.digests = digests
    self.limits = limits
    self.now = now
    faults = faultsEnabled ? FaultBoard() : nil
    self.capture = capture
    self.commentInterval = commentInterval
  }

  /// The body of a request, as far as it was read.
  package enum Body: Sendable {
    case whole(Data)
    /// Longer than `pushBytes`: it was not read, or not kept.
    case tooLarge
  }

  /// What became of a head.
  package enum Admission: Sendable {
    case refused(Reply)
    case admitted(AdmittedRequest)
  }

  /// HTTP form, path, method, token, assertion.
  package func admit(_ head: RequestHead) -> Admission {
    var frame = ReplyFrame(hub: store.hubID)
    if let refusal = HTTPForm.refusal(of: head) {
      var reply = frame.reply(refusal)
      reply.closesConnection = true
      return .refused(reply)
    }
    do throws(Refusal) {
      return .admitted(try admitted(head, &frame))
    } catch {
      return .refused(frame.reply(error))
    }
  }

  private func admitted(
    _ head: RequestHead, _ frame: inout ReplyFrame
  ) throws(Refusal) -> AdmittedRequest {
    let plan = try faults.map { _ throws(Refusal) in
      try FaultPlan(header: head.text(of: HubHeader.fault))
    }
    guard let endpoint = Endpoint(path: head.path) else {
      throw Refusal(.notFound, "there is nothing at this path")
    }
    guard endpoint.methods.contains(head.method) else {
      var refusal = Refusal(.methodNotAllowed, "this path has other methods")
      refusal.allowedMethods = endpoint.methods
      throw refusal
    }
    frame.format = WireFormat.preferred(accept: head.text(of: HubHeader.accept))
    guard !endpoint.isOpen else {
      return AdmittedRequest(endpoint: endpoint, head: head, frame: frame)
    }
    let token = try verifiedToken(head)
    frame.account = token.account
    if endpoint.needsAssertion { try checkAssertion(head, token.account) }
    var request = AdmittedRequest(endpoint: endpoint, head: head, frame: frame)
    request.token = token
    request.faults = plan
    return request
  }

  private func verifiedToken(_ head: RequestHead) throws(Refusal) -> VerifiedToken {
    guard let value = head.values(of: HubHeader.authorization).first else {
      throw Refusal(.tokenInvalid, "the request carries no token")
    }
    let scheme = value.prefix { $0 != UInt8(ascii: " ") }
    guard asciiEqual(String(decoding: scheme, as: UTF8.self), "Bearer") else {
      throw Refusal(.tokenInvalid, "the request carries no bearer token")
    }
    let token = Array(value.dropFirst(scheme.count).drop { $0 == UInt8(ascii: " ") })
    do {
      return try tokens.verify(token, now: now())
    } catch {
      switch error {
      case .expired: throw Refusal(.tokenExpired, "the token has ended")
      case .invalid(let reason): throw Refusal(.tokenInvalid, reason)
      }
    }
  }

  /// The account that the client read from its area must be the token's, byte for byte.
  private func checkAssertion(_ head: RequestHead, _ account: AccountID) throws(Refusal) {
    guard let value = head.values(of: HubHeader.account).first, !value.isEmpty else {
      throw Refusal(.accountMissing, "the request asserts no account")
    }
    guard value.allSatisfy({ $0 < 0x80 }),
      let bytes = PercentEncoding.decode(String(decoding: value, as: UTF8.self)),
      String(validating: bytes, as: UTF8.self) != nil
    else { throw Refusal(.badRequest, "the asserted account is no percent-encoded UTF-8") }
    guard bytes == account.bytes else {
      throw Refusal(.accountMismatch, "the request asserts another account than the token's")
    }
  }
}

/// A request whose head was accepted.
package struct AdmittedRequest: Sendable {
  package let endpoint: Endpoint
  package let head: RequestHead
  package var frame: ReplyFrame
  var token: VerifiedToken?
  var faults: FaultPlan?

  init(endpoint: Endpoint, head: RequestHead, frame: ReplyFrame) {
    self.endpoint = endpoint
    self.head = head
    self.frame = frame
  }

  /// The token's account; nil at open endpoints.
  package var account: AccountID? { token?.account }
}
