package import Foundation
import HubClient
package import HubProtocol
package import ProfileSync
import Synchronization
import Testing

/// The way to the test's hub, on which something can happen: a fault asked for, an answer changed or
/// given by the test, a gate to wait at.
package final class Wire: HubTransport {
  /// What happens on the way there; an answer ends it there. Counted from 1.
  package typealias Before =
    @Sendable (_ number: Int, _ request: inout HubRequest) async throws(TransportError)
    -> HubResponse?
  /// What happens on the way back.
  package typealias After =
    @Sendable (_ number: Int, _ request: HubRequest, _ response: inout HubResponse)
    async throws(TransportError) -> Void

  private struct State: Sendable {
    var requests: [HubRequest] = []
    var before: Before?
    var after: After?
    var stream: (@Sendable () -> HubEvents)?
  }

  private let hub: TestHub
  private let state = Mutex(State())

  package init(_ hub: TestHub) { self.hub = hub }

  package func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let (number, before, after) = state.withLock { state in
      state.requests.append(request)
      return (state.requests.count, state.before, state.after)
    }
    var request = request
    if let answer = try await before?(number, &request) { return answer }
    var response = try await hub.connection.send(request)
    try await after?(number, request, &response)
    return response
  }

  /// The same way, on which the hub's events can be listened to.
  package var listening: any HubEventTransport { ListeningWire(wire: self) }

  fileprivate func events(
    _ request: HubRequest
  ) async throws(TransportError) -> HubEventAnswer {
    let (number, before, after, stream) = state.withLock { state in
      state.requests.append(request)
      return (state.requests.count, state.before, state.after, state.stream)
    }
    var request = request
    if let answer = try await before?(number, &request) { return .refused(answer) }
    if let stream {
      let hub = HubResponse.made(200, hub: hub.id, account: "alice")
      return .opened(hub, stream())
    }
    switch try await hub.connection.events(request) {
    case .opened(var head, let events):
      try await after?(number, request, &head)
      return .opened(head, events)
    case .refused(var response):
      try await after?(number, request, &response)
      return .refused(response)
    }
  }

  /// Gives the events of a stream in the hub's place.
  package func streams(_ stream: @escaping @Sendable () -> HubEvents) {
    state.withLock { $0.stream = stream }
  }

  /// What was sent since the last ``clear()``.
  package var requests: [HubRequest] { state.withLock(\.requests) }

  /// The calls among them, as method and path.
  package var calls: [Call] { requests.compactMap(\.call) }

  /// Forgets what was sent, and lets everything through as it is.
  package func clear() { state.withLock { $0 = State() } }

  package func before(_ happens: @escaping Before) { state.withLock { $0.before = happens } }
  package func after(_ happens: @escaping After) { state.withLock { $0.after = happens } }

  /// Asks the hub to misbehave at every such call.
  package func ask(for fault: String, at call: Call? = nil) {
    before { _, request throws(TransportError) in
      if call == nil || request.call == call {
        request.headers.append(HeaderField(HubHeader.fault, fault))
      }
      return nil
    }
  }
}

private struct ListeningWire: HubEventTransport {
  let wire: Wire

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    try await wire.send(request)
  }

  func events(_ request: HubRequest) async throws(TransportError) -> HubEventAnswer {
    try await wire.events(request)
  }
}

/// The calls of the protocol, as a test tells them apart.
package enum Call: String, Sendable, CaseIterable {
  case session
  case clients
  case changes
  case records
  case mutations
  case events
}

extension HubRequest {
  package var call: Call? {
    let path = target.prefix { $0 != "?" }
    return path.split(separator: "/").dropFirst().first.flatMap { Call(rawValue: String($0)) }
  }

  /// The value of a query parameter.
  package func query(_ name: String) -> String? {
    URLComponents(string: target)?.queryItems?.first { $0.name == name }?.value
  }

  /// A push's content.
  package var push: PushRequest? {
    get throws {
      guard call == .mutations, let body else { return nil }
      return try PushRequest(decoding: body, as: .cbor)
    }
  }
}

extension HubResponse {
  /// Changes the body of an answer that the hub has given.
  package mutating func change<Message: HubMessage>(
    _ type: Message.Type, _ change: (inout Message) -> Void
  ) {
    guard status == 200 else { return }
    do {
      var message = try Message(decoding: body, as: .cbor)
      change(&message)
      body = message.encoded(as: .cbor)
    } catch { Issue.record("an answer could not be read: \(error)") }
  }

  /// An answer of the test's own making.
  package static func made(
    _ status: Int, hub: UUID? = nil, account: String? = nil, code: HubCode? = nil,
    retryAfter: String? = nil, body: Data? = nil, contentType: String? = nil
  ) -> HubResponse {
    var headers: [HeaderField] = []
    if let hub { headers.append(HeaderField(HubHeader.hub, hub.uuidString.lowercased())) }
    if let account {
      headers.append(
        HeaderField(HubHeader.account, PercentEncoding.encode(bytes: Array(account.utf8))))
    }
    if let retryAfter { headers.append(HeaderField(HubHeader.retryAfter, retryAfter)) }
    var content = body ?? Data()
    if let code {
      headers.append(HeaderField(HubHeader.contentType, HubProblem.contentType))
      content = HubProblem(
        title: code.rawValue, status: status, detail: "made by a test", code: code.rawValue
      ).encoded()
    } else if let contentType {
      headers.append(HeaderField(HubHeader.contentType, contentType))
    }
    return HubResponse(status: status, headers: headers, body: content)
  }
}
