import Foundation
import HubClient
import HubProtocol
import HubServer
import ProfileSync
import SyncTestSupport
import Testing

@Suite("Listening to events", .timeLimit(.minutes(2)))
struct EventsTests {
  private static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

  private static func chunk(_ text: String) -> String {
    "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n"
  }

  private func opened(
    _ connection: HubConnection, _ request: HubRequest = request("GET", "/v1/events")
  ) async throws -> (HubResponse, HubEvents) {
    guard case .opened(let head, let events) = try await connection.events(request) else {
      throw TransportError(code: .other, description: "refused")
    }
    return (head, events)
  }

  private func error(of events: HubEvents) async -> TransportError? {
    do {
      for try await _ in events {}
      return nil
    } catch { return error as? TransportError }
  }

  @Test("gives the head, then each event as it comes, until the stream ends")
  func events() async throws {
    let sent = DispatchSemaphore(value: 0)
    try await withServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.send("HTTP/1.1 103 Early Hints\r\nX: 1\r\n\r\n")
      connection.send(Self.head + "Holdfast-Hub: h\r\nTransfer-Encoding: chunked\r\n\r\n")
      connection.send(Self.chunk("event: change\ndata: {\"highWate"))
      connection.send(Self.chunk("r\":3}\n\n:"))
      sent.wait()
      connection.send(Self.chunk("\n\nevent: newer\ndata: 1\n\nevent: bye\ndata: {"))
      connection.send(Self.chunk("\"code\":\"x\"}\n\n\n") + "0\r\nX-Trailer: 1\r\n\r\n")
    } client: { (_, connection) async throws in
      let (head, events) = try await opened(connection)
      #expect(head.status == 200 && head.values(of: "Holdfast-Hub") == ["h"])
      #expect(head.values(of: "X").isEmpty && head.body.isEmpty)
      var iterator = events.makeAsyncIterator()
      #expect(try await iterator.next() == .change(highWater: 3))
      sent.signal()
      #expect(try await iterator.next() == .bye(code: "x"))
      #expect(try await iterator.next() == nil)
    }
  }

  @Test("gives any other answer whole")
  func refused() async throws {
    let answers: [(String, String, String)] = [
      ("401 Unauthorized", "application/problem+json", "{}"),
      ("200 OK", "text/html", "<p>Please sign in"), ("200 OK", "text/event-streams", "x"),
      ("204 No Content", "text/event-stream", ""),
      ("302 Found", "text/event-stream", "event: a\ndata: {}\n\n"),
    ]
    for (status, type, body) in answers {
      try await withServer { connection in
        connection.serve { _ in
          connection.answer(status, headers: ["Content-Type: \(type)"], body: Array(body.utf8))
        }
      } client: { (_, connection) async throws in
        guard case .refused(let answer) = try await connection.events(request()) else {
          Issue.record("\(status) \(type) is no stream")
          return
        }
        #expect(answer.status == Int(status.prefix(3)))
        #expect(answer.body == (status.hasPrefix("204") ? Data() : Data(body.utf8)))
      }
    }
  }

  @Test(
    "ends with an error where the stream breaks, stalls, or is none",
    arguments: [
      ("event: change\ndata: {\"highWater\":3}\n\n", "connectionLost"),
      ("event: change\ndata: {}\n\n", "other"), ("event: hello\ndata: x\n\n", "other"),
      ("data: " + String(repeating: "x", count: 70_000), "answerTooLarge"),
      ("", "timedOut"),
    ])
  func broken(text: String, code: String) async throws {
    try await withServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.send(Self.head + "Content-Length: 100000\r\n\r\n" + text)
      if text.isEmpty { connection.waitForEnd() }
    } client: { (_, connection) async throws in
      let request = request(
        "GET", "/v1/events", stallLimit: text.isEmpty ? .milliseconds(300) : .seconds(60))
      let error = await error(of: try await opened(connection, request).1)
      #expect(error?.code.description == code)
      #expect(error?.description.contains("secret") == false)
    }
  }

  @Test("closes its connection as soon as the reader is gone, cancelled, or never came")
  func readerGone() async throws {
    let ended = DispatchSemaphore(value: 0)
    try await withServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.send(Self.head + "Transfer-Encoding: chunked\r\n\r\n")
      connection.send(Self.chunk("event: change\ndata: {\"highWater\":3}\n\n"))
      connection.waitForEnd()
      ended.signal()
    } client: { (server, connection) async throws in
      func untilEnded() async {
        await withCheckedContinuation { continuation in
          Thread.detachNewThread {
            ended.wait()
            continuation.resume()
          }
        }
      }
      for try await event in try await opened(connection).1 {
        #expect(event == .change(highWater: 3))
        break
      }
      await untilEnded()
      _ = try await opened(connection)
      await untilEnded()
      let got = Gate()
      let reading = Task {
        for try await _ in try await opened(connection).1 { got.open() }
      }
      await got.wait()
      reading.cancel()
      _ = await reading.result
      await untilEnded()
      #expect(server.acceptedCount == 3)
    }
  }

  @Test("does not hold up other requests, however many listen or wait")
  func others() async throws {
    try await withServer { connection in
      connection.serve { request in
        guard !request.requestLine.contains("session") else { return connection.answer() }
        connection.waitForEnd()
      }
    } client: { (server, connection) async throws in
      let tasks = (0..<40).map { number in
        Task {
          var waiting = request("GET", "/v1/changes")
          waiting.mayWait = true
          if number.isMultiple(of: 2) {
            _ = try await connection.send(waiting)
          } else {
            _ = try await connection.events(request("GET", "/v1/events"))
          }
        }
      }
      let clock = ContinuousClock()
      let limit = clock.now + .seconds(30)
      while server.requests.count < 40 {
        try #require(clock.now < limit, "all 40 wait at the same time")
        try await clock.sleep(for: .milliseconds(2))
      }
      #expect(try await connection.send(request()).status == 200)
      connection.close()
      for task in tasks {
        guard case .failure(let error) = await task.result else {
          Issue.record("nobody answered")
          continue
        }
        #expect((error as? TransportError)?.code == .cancelled)
      }
      await #expect(throws: TransportError.self) { try await connection.events(request()) }
    }
  }
}
