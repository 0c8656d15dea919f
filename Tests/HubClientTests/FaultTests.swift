import Foundation
import HubClient
import HubProtocol
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

@Suite("A server that misbehaves", .timeLimit(.minutes(5)))
struct FaultTests {
  @Test("by dropping the connection before or in the answer: connectionLost, nothing of it kept")
  func drops() async throws {
    let beginnings = [
      "", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
    ]
    for beginning in beginnings {
      try await withServer { connection in
        if connection.readRequest() != nil { connection.send(beginning) }
      } client: { (_, connection) async throws in
        let error = try await transportError(connection, request())
        #expect(error.code == .connectionLost, "\(beginning)")
        #expect(error.description.contains("GET http://127.0.0.1"))
      }
    }
  }

  @Test("by falling silent, before the answer or in it: timedOut by the stall limit")
  func stalls() async throws {
    for beginning in ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"] {
      let ended = Gate()
      try await withServer { connection in
        guard connection.readRequest() != nil else { return }
        connection.send(beginning)
        connection.waitForEnd()
        ended.open()
      } client: { (_, connection) async throws in
        let start = ContinuousClock.now
        let error = try await transportError(
          connection, request(stallLimit: .milliseconds(150)))
        #expect(error.code == .timedOut)
        #expect(start.duration(to: .now) < .seconds(20))
        await ended.wait()
      }
    }
  }

  @Test("by not reading a body: timedOut by the stall limit")
  func unreadBody() async throws {
    try await withServer { connection in
      connection.holdWithoutReading()
    } client: { (_, connection) async throws in
      let error = try await transportError(
        connection,
        request("POST", body: Data(count: 64 << 20), stallLimit: .milliseconds(300)))
      #expect(error.code == .timedOut)
    }
  }

  @Test("by dripping bytes for ever: timedOut by the limit of the whole exchange")
  func drips() async throws {
    try await withServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
      while !connection.isEnded(within: 20), connection.send("x") {}
    } client: { (_, connection) async throws in
      let error = try await transportError(connection, request(timeout: .milliseconds(300)))
      #expect(error.code == .timedOut)
    }
  }

  @Test("by moving slowly is waited for: each byte puts the stall limit off")
  func slowButMoving() async throws {
    try await withServer { connection in
      connection.serve { _ in
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        for _ in 0..<10 where !connection.isEnded(within: 60) { connection.send("x") }
      }
    } client: { (_, connection) async throws in
      let answer = try await connection.send(request(stallLimit: .milliseconds(400)))
      #expect(answer.body.count == 10)
    }
  }

  @Test("by sending a body without end: answerTooLarge, and only a little more is taken")
  func endlessBody() async throws {
    let sentCount = Atomic(0)
    let ended = Gate()
    try await withServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.send("HTTP/1.1 200 OK\r\n\r\n")
      let block = [UInt8](repeating: 0x41, count: 16 << 10)
      while connection.send(block) {
        sentCount.wrappingAdd(block.count, ordering: .relaxed)
      }
      ended.open()
    } client: { (_, connection) async throws in
      let error = try await transportError(connection, request(answerByteCountMax: 100_000))
      #expect(error.code == .answerTooLarge)
      #expect(error.description.contains("100000"))
      await ended.wait()
      // What the system buffers on both ends comes on top of the limit.
      #expect(sentCount.load(ordering: .relaxed) < 32 << 20)
    }
  }

  @Test("by sending a head without end: answerTooLarge")
  func endlessHead() async throws {
    try await withServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.send("HTTP/1.1 200 OK\r\n")
      let line = "X-Filler: \(String(repeating: "a", count: 1_000))\r\n"
      while connection.send(line) {}
    } client: { (_, connection) async throws in
      let error = try await transportError(connection, request())
      #expect(error.code == .answerTooLarge)
    }
  }

  @Test("by announcing more than may be: answerTooLarge, at once")
  func announcedTooLarge() async throws {
    try await withServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")
      connection.waitForEnd()
    } client: { (_, connection) async throws in
      let error = try await transportError(connection, request(answerByteCountMax: 1_000))
      #expect(error.code == .answerTooLarge)
    }
  }

  @Test("not: an answer of just the limit, or of none at all, is one")
  func justTheLimit() async throws {
    try await withServer { connection in
      connection.serve { request in
        let count = request.requestLine.contains("/empty") ? 0 : 1_000
        connection.answer(body: Data(count: count))
      }
    } client: { (_, connection) async throws in
      let full = try await connection.send(request(answerByteCountMax: 1_000))
      #expect(full.body.count == 1_000)
      let empty = try await connection.send(request("GET", "/empty", answerByteCountMax: 0))
      #expect(empty.body.isEmpty)
      let error = try await transportError(connection, request(answerByteCountMax: 0))
      #expect(error.code == .answerTooLarge)
    }
  }

  @Test("by being a web page: the answer is given as it is, for the caller to judge")
  func html() async throws {
    let page = Data("<html><body>Log in to the hotel</body></html>".utf8)
    try await withServer { connection in
      connection.serve { _ in
        connection.answer("410 Gone", headers: ["Content-Type: text/html"], body: page)
      }
    } client: { (_, connection) async throws in
      let answer = try await connection.send(request())
      #expect(answer.status == 410)
      #expect(answer.values(of: HubHeader.hub) == [])
      #expect(answer.body == page)
    }
  }

  @Test("by speaking no HTTP: other, and it says so")
  func noHTTP() async throws {
    for greeting in ["SSH-2.0-OpenSSH_9.2\r\n", "\u{1}\u{2}\u{3}\n\n\n", "220 mail ready\r\n"] {
      try await withServer { connection in
        if connection.readRequest() != nil { connection.send(greeting) }
      } client: { (_, connection) async throws in
        let error = try await transportError(connection, request())
        #expect(error.code == .other, "\(greeting)")
        #expect(error.description.contains("speaks no HTTP"), "\(greeting)")
      }
    }
  }

  @Test("by speaking no TLS: tlsFailed")
  func noTLS() async throws {
    let server = try RawServer { connection in
      connection.send("HTTP/1.1 400 Bad Request\r\n\r\n")
      connection.waitForEnd()
    }
    defer { server.stop() }
    let connection = try HubConnection(url: try server.url(scheme: "https"))
    defer { connection.close() }
    #expect(try await transportError(connection, request()).code == .tlsFailed)
  }

  @Test("by not being there: unreachable")
  func unreachable() async throws {
    let url = try #require(URL(string: "http://127.0.0.1:\(try unusedPort())"))
    let connection = try HubConnection(url: url)
    defer { connection.close() }
    #expect(try await transportError(connection, request()).code == .unreachable)
  }

  @Test("by having no name: unreachable")
  func unknownName() async throws {
    // RFC 6761: a name under .invalid never exists.
    let url = try #require(URL(string: "http://hub.holdfast.invalid"))
    let connection = try HubConnection(url: url)
    defer { connection.close() }
    #expect(
      try await transportError(connection, request(timeout: .seconds(20))).code == .unreachable)
  }
}

@Suite("A code of libcurl")
struct CurlCodeTests {
  @Test(
    "is told by what to do about it",
    arguments: [
      (UInt32(3), TransportError.Code.invalidURL), (6, .unreachable), (7, .unreachable),
      (18, .connectionLost), (28, .timedOut), (35, .tlsFailed), (52, .connectionLost),
      (55, .connectionLost), (56, .connectionLost), (60, .tlsFailed), (63, .answerTooLarge),
      (77, .tlsFailed), (1, .other), (8, .other), (27, .other), (9_999, .other),
    ])
  func codes(_ curlCode: UInt32, _ code: TransportError.Code) {
    let error = TransportError(curlCode: curlCode, exchange: "GET http://hub/v1")
    #expect(error.code == code)
    #expect(error.description.hasPrefix("GET http://hub/v1: "))
    #expect(error.description.contains("\(curlCode)"))
  }
}
