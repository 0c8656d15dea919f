import HubProtocol
public import ProfileSync

extension CuedSession {
  /// A way to the hub that tells this session of each request and answer, for what is planned at
  /// `.request` and `.answer`.
  /// - Parameter transport: a ``MemoryHub``, or any other way to a hub. Where its events can be
  ///   listened to, those of the result can, too; the head of a stream counts as its answer.
  public func watching(_ transport: any HubTransport) -> any HubTransport {
    guard let transport = transport as? any HubEventTransport else {
      return WatchedTransport(session: self, transport: transport)
    }
    return WatchedEventTransport(session: self, transport: transport)
  }

  /// Sends something, and tells of it. A request that came to nothing has no answer.
  fileprivate func tell<Answer>(
    of request: HubRequest,
    _ send: (HubRequest) async throws(TransportError) -> Answer
  ) async throws(TransportError) -> Answer {
    let endpoint = MemoryHub.Endpoint(request)
    requestGoes(to: endpoint)
    let answer = try await send(request)
    answerCame(from: endpoint)
    return answer
  }
}

private struct WatchedTransport: HubTransport {
  let session: CuedSession
  let transport: any HubTransport

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    try await session.tell(of: request) { request async throws(TransportError) in
      try await transport.send(request)
    }
  }
}

private struct WatchedEventTransport: HubEventTransport {
  let session: CuedSession
  let transport: any HubEventTransport

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    try await session.tell(of: request) { request async throws(TransportError) in
      try await transport.send(request)
    }
  }

  func events(_ request: HubRequest) async throws(TransportError) -> HubEventAnswer {
    try await session.tell(of: request) { request async throws(TransportError) in
      try await transport.events(request)
    }
  }
}
