import Foundation
import HubClient
import HubProtocol
import ProfileSync
import SyncTestSupport
import Testing

/// A request with limits that a test on loopback never meets, unless it gives others.
func request(
  _ method: String = "GET", _ target: String = "/v1/session?nonce=secret-query",
  headers: [HeaderField] = [HeaderField("Authorization", "Bearer secret-token")],
  body: Data? = nil, answerByteCountMax: Int = 1 << 20, timeout: Duration = .seconds(60),
  stallLimit: Duration = .seconds(60)
) -> HubRequest {
  HubRequest(
    method: method, target: target, headers: headers, body: body,
    answerByteCountMax: answerByteCountMax, timeout: timeout, stallLimit: stallLimit)
}

/// Sends a request and gives back the error that this throws.
func transportError(
  _ connection: HubConnection, _ request: HubRequest,
  sourceLocation: SourceLocation = #_sourceLocation
) async throws -> TransportError {
  let thrown = await #expect(throws: TransportError.self, sourceLocation: sourceLocation) {
    _ = try await connection.send(request)
  }
  let error = try #require(thrown, sourceLocation: sourceLocation)
  #expect(!error.description.contains("secret"), sourceLocation: sourceLocation)
  return error
}

/// Runs a test against a server and a connection to it, and ends both.
func withServer(
  _ script: @escaping @Sendable (RawConnection) -> Void,
  client body: (RawServer, HubConnection) async throws -> Void
) async throws {
  let server = try RawServer(script)
  defer { server.stop() }
  let connection = try HubConnection(url: try server.url())
  defer { connection.close() }
  try await body(server, connection)
}
