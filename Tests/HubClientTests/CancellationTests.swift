import Dispatch
import Foundation
import HubClient
import HubProtocol
import ProfileSync
import SyncTestSupport
import Testing

@Suite("Cancelling and closing", .timeLimit(.minutes(5)))
struct CancellationTests {
  @Test("ends a request that is under way at once, and its connection")
  func cancelled() async throws {
    for beginning in ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"] {
      let received = Gate()
      let ended = Gate()
      try await withServer { connection in
        guard connection.readRequest() != nil else { return }
        connection.send(beginning)
        received.open()
        connection.waitForEnd()
        ended.open()
      } client: { (_, connection) async throws in
        let task = Task { try await transportError(connection, request()) }
        await received.wait()
        // The server never answers: waiting on would end as `timedOut`.
        task.cancel()
        #expect(try await task.value.code == .cancelled)
        await ended.wait()
      }
    }
  }

  @Test("of a task that was cancelled before sends nothing")
  func cancelledBefore() async throws {
    try await withServer { connection in
      connection.serve { _ in connection.answer() }
    } client: { (server, connection) async throws in
      let gate = Gate()
      let task = Task {
        await gate.wait()
        return try await transportError(connection, request())
      }
      task.cancel()
      gate.open()
      #expect(try await task.value.code == .cancelled)
      _ = try await connection.send(request())
      #expect(server.requests.count == 1)
    }
  }

  @Test("of one request leaves the others alone")
  func othersGoOn() async throws {
    let received = Gate()
    let go = Gate()
    let release = DispatchSemaphore(value: 0)
    try await withServer { connection in
      connection.serve { request in
        if request.requestLine.contains("/slow") {
          received.open()
          release.wait()
        }
        connection.answer()
      }
    } client: { (_, connection) async throws in
      let slow = Task { try await connection.send(request("GET", "/slow")).status }
      await received.wait()
      let other = Task {
        await go.wait()
        return try await transportError(connection, request())
      }
      other.cancel()
      go.open()
      #expect(try await other.value.code == .cancelled)
      #expect(try await connection.send(request()).status == 200)
      release.signal()
      #expect(try await slow.value == 200)
    }
  }

  @Test("at any moment gives an answer or an error, and leaves a connection that works")
  func cancelledAtAnyMoment() async throws {
    try await withServer { connection in
      connection.serve { _ in connection.answer(body: Data(count: 50_000)) }
    } client: { (_, connection) async throws in
      for yields in 0..<200 {
        let task = Task { try await connection.send(request()).status }
        for _ in 0..<yields { await Task.yield() }
        task.cancel()
        switch await task.result {
        case .success(let status): #expect(status == 200)
        case .failure(let error): #expect((error as? TransportError)?.code == .cancelled)
        }
      }
      #expect(try await connection.send(request()).status == 200)
    }
  }

  @Test("a connection ends what is under way, and whatever is sent later")
  func closed() async throws {
    let received = Gate()
    let ended = Gate()
    let server = try RawServer { connection in
      guard connection.readRequest() != nil else { return }
      received.open()
      connection.waitForEnd()
      ended.open()
    }
    defer { server.stop() }
    let connection = try HubConnection(url: try server.url())
    let task = Task { try await transportError(connection, request()) }
    await received.wait()
    connection.close()
    #expect(try await task.value.code == .cancelled)
    await ended.wait()
    #expect(try await transportError(connection, request()).code == .cancelled)
    connection.close()
    #expect(server.acceptedCount == 1)
  }

  @Test("is done by the end of the last reference: its kept connection is closed")
  func released() async throws {
    let ended = Gate()
    let server = try RawServer { connection in
      connection.serve { _ in connection.answer() }
      ended.open()
    }
    defer { server.stop() }
    func sendOnce() async throws {
      let connection = try HubConnection(url: try server.url())
      #expect(try await connection.send(request()).status == 200)
    }
    try await sendOnce()
    await ended.wait()
    #expect(server.requests.count == 1)
  }
}
