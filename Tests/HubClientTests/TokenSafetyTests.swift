import Foundation
import Glibc
import HubClient
import HubProtocol
import ProfileSync
import SyncTestSupport
import Testing

@Suite("A token", .timeLimit(.minutes(5)))
struct TokenSafetyTests {
  @Test("is not sent where a redirect points", arguments: ["301", "302", "303", "307", "308"])
  func redirect(_ status: String) async throws {
    let other = try RawServer { connection in connection.serve { _ in connection.answer() } }
    defer { other.stop() }
    let port = other.port
    try await withServer { connection in
      connection.serve { _ in
        connection.answer(
          "\(status) Elsewhere", headers: ["Location: http://127.0.0.1:\(port)/v1/session"])
      }
    } client: { (server, connection) async throws in
      let answer = try await connection.send(request())
      #expect("\(answer.status)" == status)
      #expect(answer.values(of: "Location").count == 1)
      #expect(server.requests.count == 1)
      #expect(other.acceptedCount == 0)
    }
  }

  @Test("is not sent to a proxy that the environment names")
  func proxy() async {
    // In a process of its own, since the environment is everybody's.
    await #expect(processExitsWith: .success) {
      let proxy = try RawServer { connection in connection.serve { _ in connection.answer() } }
      for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        setenv(name, "http://127.0.0.1:\(proxy.port)", 1)
      }
      try await withServer { connection in
        connection.serve { _ in connection.answer("204 No Content") }
      } client: { (server, connection) async throws in
        #expect(try await connection.send(request()).status == 204)
        #expect(server.requests.count == 1)
        #expect(proxy.acceptedCount == 0)
      }
      proxy.stop()
    }
  }

  @Test("is followed by no cookie of an earlier answer")
  func cookies() async throws {
    try await withServer { connection in
      connection.serve { _ in connection.answer(headers: ["Set-Cookie: id=1; Path=/"]) }
    } client: { (server, connection) async throws in
      _ = try await connection.send(request())
      _ = try await connection.send(request())
      #expect(server.requests.count == 2)
      #expect(server.requests.flatMap { $0.values("cookie") } == [])
    }
  }

  @Test("that is refused is an answer, whatever scheme the server asks for")
  func unauthorized() async throws {
    try await withServer { connection in
      connection.serve { _ in
        connection.answer("401 Unauthorized", headers: ["WWW-Authenticate: Basic realm=x"])
      }
    } client: { (server, connection) async throws in
      #expect(try await connection.send(request()).status == 401)
      #expect(server.requests.count == 1)
    }
  }

  @Test("with a line break in it is not sent, nor is anything else that would change the request")
  func injection() async throws {
    try await withServer { connection in
      connection.serve { _ in connection.answer() }
    } client: { (server, connection) async throws in
      let broken = [
        request(headers: [HeaderField("Authorization", "Bearer secret\r\nX-Other: 1")]),
        request(headers: [HeaderField("Authorization", "Bearer secret\u{0}")]),
        request(headers: [HeaderField("X-A: b\r\nX-Other", "1")]),
        request(headers: [HeaderField("", "1")]),
        request(headers: [HeaderField("Content-Length", "9")]),
        request(headers: [HeaderField("transfer-encoding", "chunked")]),
        request(headers: [HeaderField("Host", "other")]),
        request("GET", "/v1/secret HTTP/1.1\r\nX-Other: 1"),
        request("GET", "/v1/session?nonce=se cret"),
        request("GET", "/v1/session#secret"),
        request("GET", "v1/session"),
        request("GET", "@127.0.0.1:1/"),
        request("GET", ""),
        request("GET /", "/v1/session"),
        request("", "/v1/session"),
        request(answerByteCountMax: -1),
      ]
      for request in broken {
        let error = try await transportError(connection, request)
        #expect(error.code == .invalidRequest)
      }
      #expect(server.acceptedCount == 0)
    }
  }
}

@Suite("The address of a hub")
struct HubAddressTests {
  @Test(
    "that cannot be one is refused before anything is sent",
    arguments: [
      "ftp://hub.example.org", "file:///etc/hosts", "hub.example.org", "/v1", "http://",
      "https:///v1", "http://user@hub.example.org", "http://user:secret@hub.example.org",
      "https://hub.example.org?secret=1", "https://hub.example.org#secret", "mailto:a@b.c",
      "http://hub.example.org:0",
    ])
  func refused(_ text: String) throws {
    let url = try #require(URL(string: text))
    let thrown = #expect(throws: TransportError.self) { try HubConnection(url: url) }
    let error = try #require(thrown)
    #expect(error.code == .invalidURL)
    #expect(!error.description.contains("secret"))
  }

  @Test(
    "may be of either scheme, with a port, a path, or an IPv6 host",
    arguments: [
      "http://localhost:8080", "HTTPS://hub.example.org", "https://hub.example.org/",
      "https://example.org/hold/fast", "http://[::1]:8080",
    ])
  func accepted(_ text: String) throws {
    let connection = try HubConnection(url: try #require(URL(string: text)))
    connection.close()
  }
}
