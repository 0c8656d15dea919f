import Foundation
import HubClient
import HubProtocol
import ProfileSync
import SyncTestSupport
import Testing

@Suite("An exchange with a server that behaves", .timeLimit(.minutes(5)))
struct ExchangeTests {
  @Test("sends the request as it is, and adds only what HTTP needs")
  func requestBytes() async throws {
    try await withServer {
      $0.serve { [connection = $0] _ in connection.answer() }
    } client: { (server, connection) async throws in
      let headers = [
        HeaderField("Authorization", "Bearer secret-token"), HeaderField("X-Twice", "1"),
        HeaderField("X-Twice", "2"), HeaderField("X-Empty", ""),
        HeaderField("Accept", "application/cbor"),
      ]
      _ = try await connection.send(request("GET", "/v1/a/../b%2F?x=%00&y=+", headers: headers))
      let sent = try #require(server.requests.first)
      #expect(sent.requestLine == "GET /v1/a/../b%2F?x=%00&y=+ HTTP/1.1")
      #expect(
        sent.lines.dropFirst() == [
          "Host: 127.0.0.1:\(server.port)", "Authorization: Bearer secret-token", "X-Twice: 1",
          "X-Twice: 2", "X-Empty:", "Accept: application/cbor",
        ])
      #expect(sent.body.isEmpty)
    }
  }

  @Test("puts the path of the hub's address before the target")
  func basePath() async throws {
    let server = try RawServer { connection in connection.serve { _ in connection.answer() } }
    defer { server.stop() }
    let connection = try HubConnection(url: try server.url("/hold/fast/"))
    defer { connection.close() }
    _ = try await connection.send(request("GET", "/v1/session"))
    #expect(server.requests.first?.requestLine == "GET /hold/fast/v1/session HTTP/1.1")
  }

  @Test("brings back status, every header in order, and the body as it came")
  func answer() async throws {
    let body = Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0) })
    try await withServer { connection in
      connection.serve { _ in
        connection.answer(
          "409 Conflict",
          headers: [
            "Holdfast-Hub: one", "holdfast-hub:  two \t", "Content-Encoding: gzip",
            "Set-Cookie: a=b", "X-Colons: a:b",
          ], body: body)
      }
    } client: { (_, connection) async throws in
      let answer = try await connection.send(request())
      #expect(answer.status == 409)
      #expect(answer.values(of: "HOLDFAST-HUB") == ["one", "two"])
      #expect(answer.values(of: "content-encoding") == ["gzip"])
      #expect(answer.values(of: "x-colons") == ["a:b"])
      #expect(
        answer.headers.map(\.name) == [
          "Content-Length", "Holdfast-Hub", "holdfast-hub", "Content-Encoding", "Set-Cookie",
          "X-Colons",
        ])
      #expect(answer.body == body)
    }
  }

  @Test(
    "sends a body whole, without asking for leave first",
    arguments: [("POST", 3_000_000), ("PUT", 1), ("POST", 0), ("DELETE", 5)])
  func requestBody(_ method: String, _ count: Int) async throws {
    let body = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    try await withServer { connection in
      connection.serve { _ in connection.answer("201 Created") }
    } client: { (server, connection) async throws in
      let answer = try await connection.send(
        request(method, headers: [HeaderField("Content-Type", "application/cbor")], body: body))
      #expect(answer.status == 201)
      let sent = try #require(server.requests.first)
      #expect(sent.requestLine.hasPrefix("\(method) "))
      #expect(sent.values("content-length") == ["\(count)"])
      #expect(sent.values("content-type") == ["application/cbor"])
      #expect(sent.values("expect") == [])
      #expect(sent.body == body)
    }
  }

  @Test("sends no length and no type where a method has no body")
  func withoutBody() async throws {
    try await withServer { connection in
      connection.serve { _ in connection.answer("204 No Content") }
    } client: { (server, connection) async throws in
      _ = try await connection.send(request("DELETE"))
      _ = try await connection.send(request("POST"))
      let sent = server.requests
      #expect(sent.count == 2)
      #expect(sent.first?.values("content-length") == [])
      #expect(sent.last?.values("content-length") == ["0"])
      #expect(sent.flatMap { $0.values("content-type") + $0.values("accept") } == [])
    }
  }

  @Test("takes an answer in chunks, without what interim heads and trailers say")
  func chunks() async throws {
    try await withServer { connection in
      connection.serve { _ in
        connection.send("HTTP/1.1 103 Early Hints\r\nHoldfast-Account: early\r\n\r\n")
        connection.send(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nHoldfast-Account: right\r\n\r\n")
        connection.send("3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nHoldfast-Account: late\r\n\r\n")
      }
    } client: { (_, connection) async throws in
      let answer = try await connection.send(request())
      #expect(answer.status == 200)
      #expect(answer.values(of: "Holdfast-Account") == ["right"])
      #expect(answer.body == Data("abcdefg".utf8))
    }
  }

  @Test("uses its connection again, and a new one where the server has closed it")
  func keepAlive() async throws {
    try await withServer { connection in
      // Two requests for each connection, without a word that it is over.
      for _ in 0..<2 where connection.readRequest() != nil { connection.answer() }
    } client: { (server, connection) async throws in
      for expected in [1, 1, 2, 2, 3] {
        #expect(try await connection.send(request()).status == 200)
        #expect(server.acceptedCount == expected)
      }
    }
  }

  @Test("gets its own answer, however many are under way")
  func concurrent() async throws {
    try await withServer { connection in
      connection.serve { request in connection.answer(body: Data(request.requestLine.utf8)) }
    } client: { (server, connection) async throws in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<100 {
          group.addTask {
            let answer = try await connection.send(request("GET", "/v1/\(number)"))
            #expect(answer.body == Data("GET /v1/\(number) HTTP/1.1".utf8))
          }
        }
        try await group.waitForAll()
      }
      #expect(server.requests.count == 100)
      #expect(server.acceptedCount <= 16)
    }
  }
}
