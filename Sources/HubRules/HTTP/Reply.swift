package import Foundation
package import HubProtocol

/// One answer, ready to be sent.
package struct Reply: Sendable {
  /// How it is sent; anything but `whole` is a fault on demand.
  package enum Delivery: Hashable, Sendable {
    case whole
    /// The connection ends after so many bytes of the body.
    case cut(afterByteCount: Int)
    /// The connection ends without an answer.
    case dropped
  }

  package var status: Int
  package var headers: [HeaderField]
  package var body: Data
  package var delivery = Delivery.whole
  /// What comes in place of a body; nil for an answer that is whole.
  package var events: EventStream?
  /// The connection ends after it.
  package var closesConnection = false
  /// What went wrong inside, for the log; no payload, key or token.
  package var cause: String?
}

/// What every answer to one request has in common.
package struct ReplyFrame: Sendable {
  package let hub: UUID
  /// The token's account, once the token was verified.
  package var account: AccountID?
  /// The account's epoch, once the assertion was accepted.
  package var epoch: UUID?
  /// The form of a 2xx body; problems are always JSON.
  package var format = WireFormat.json

  package init(hub: UUID) { self.hub = hub }

  /// An answer with a message of the protocol.
  package func reply(_ message: some HubMessage, status: Int = 200) -> Reply {
    reply(status: status, type: format.contentType, body: message.encoded(as: format))
  }

  /// An answer with a body of another kind.
  package func reply(status: Int, type: String, body: Data) -> Reply {
    var headers = [HeaderField(HubHeader.hub, hub.wireText)]
    if let account {
      let text = PercentEncoding.encode(bytes: account.bytes)
      headers.append(HeaderField(HubHeader.account, text))
    }
    if let epoch { headers.append(HeaderField(HubHeader.epoch, epoch.wireText)) }
    headers.append(HeaderField(HubHeader.contentType, type))
    headers.append(HeaderField(HubHeader.cacheControl, "private, no-store"))
    headers.append(HeaderField(HubHeader.vary, "Authorization"))
    return Reply(status: status, headers: headers, body: body)
  }

  /// A problem.
  package func reply(_ refusal: Refusal) -> Reply {
    var reply = reply(
      status: refusal.status, type: "application/problem+json", body: refusal.problem.encoded())
    if refusal.status == 401 {
      reply.headers.append(HeaderField(HubHeader.wwwAuthenticate, "Bearer"))
    }
    if refusal.status == 405 {
      let methods = refusal.allowedMethods.joined(separator: ", ")
      reply.headers.append(HeaderField(HubHeader.allow, methods))
    }
    if let seconds = refusal.retryAfterSeconds {
      reply.headers.append(HeaderField(HubHeader.retryAfter, String(max(seconds, 1))))
    }
    return reply
  }
}
