import Foundation
import HubProtocol

extension HubService {
  /// The answer to an admitted request: disabled or erased, content type, size, form, client, epoch,
  /// cursor, verdicts.
  /// - Parameter presence: has the client watched if the answer keeps it waiting.
  package func answer(
    _ request: AdmittedRequest, body: Body, presence: ClientPresence
  ) async -> Reply {
    var frame = request.frame
    var reply: Reply
    do {
      reply = try await respond(to: request, body: body, &frame, presence)
    } catch let refusal as Refusal {
      reply = frame.reply(refusal)
    } catch {
      reply = frame.reply(refusal(for: error))
      reply.cause = String(describing: error)
    }
    guard let plan = request.faults else { return reply }
    return await spoiled(reply, by: plan, request)
  }

  private func respond(
    to request: AdmittedRequest, body: Body, _ frame: inout ReplyFrame,
    _ presence: ClientPresence
  ) async throws -> Reply {
    guard let token = request.token else { return try await openReply(request, frame) }
    if let plan = request.faults { try await applyBefore(plan, request, token.account) }
    let standing = try await store.admit(token.account)
    try accept(standing.state, &frame)
    let data = try content(of: request, body)
    if let capture { try capture(data, request.head, token.account) }
    switch request.endpoint {
    case .session: return try sessionReply(request, token, standing, frame)
    case .client(let segment):
      return try await clientReply(
        segment, request, data, token.account, standing.state, frame)
    case .changes: return try await changesReply(request, token, &frame, presence)
    case .records: return try await recordReply(request, token.account, &frame)
    case .events: return try await eventsReply(request, token, &frame, presence)
    case .mutations: return try await pushReply(request, data, token.account, &frame)
    case .health, .readiness: return try await openReply(request, frame)
    }
  }

  /// Puts the epoch into every answer from here on, and refuses what is disabled or erased.
  func accept(_ state: AccountState, _ frame: inout ReplyFrame) throws(Refusal) {
    frame.epoch = state.status == .erased ? nil : state.epoch
    if let refusal = state.statusRefusal { throw Refusal(refusal) }
  }

  /// Turns what a store's transaction found into an answer, with the epoch that it saw.
  func refuse(
    _ refusal: AccountRefusal, _ state: AccountState, _ frame: inout ReplyFrame
  ) -> Refusal {
    frame.epoch = state.status == .erased ? nil : state.epoch
    return Refusal(refusal)
  }

  /// Content type (415), size (413); endpoints without a message look at the size alone.
  private func content(of request: AdmittedRequest, _ body: Body) throws(Refusal) -> Data {
    let head = request.head
    if request.endpoint.takesBody, head.announcesBody {
      let type = head.text(of: HubHeader.contentType)
      guard let type, WireFormat(contentType: type) != nil else {
        throw Refusal(
          .unsupportedMediaType, "send application/json or application/cbor, and say which")
      }
      let coding = head.text(of: HubHeader.contentEncoding)
      guard coding.map({ asciiEqual($0, "identity") }) ?? true else {
        throw Refusal(.unsupportedMediaType, "the body's coding is not known")
      }
    }
    guard case .whole(let data) = body, data.count <= limits.pushBytes else {
      throw Refusal(.tooLarge, "a body has at most \(limits.pushBytes) bytes")
    }
    return data
  }

  private func openReply(_ request: AdmittedRequest, _ frame: ReplyFrame) async throws -> Reply {
    if request.endpoint == .readiness {
      do { try await store.probe() } catch {
        var reply = frame.reply(
          Refusal(.unavailable, "the store does not answer", retryAfterSeconds: 5))
        reply.cause = String(describing: error)
        return reply
      }
    }
    return frame.reply(
      status: 200, type: "application/json", body: Data("{\"status\":\"ok\"}".utf8))
  }

  /// What passes by is to be tried again; everything else is the hub's fault.
  private func refusal(for error: any Error) -> Refusal {
    store.isPassing(error)
      ? Refusal(.unavailable, "the hub cannot store or read now", retryAfterSeconds: 5)
      : Refusal(.internal, "the hub failed; nothing is known to be stored")
  }
}
