import Foundation
import HubClient
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

/// What a hub that means harm answers to one call.
private struct Harm: Sendable, CustomTestStringConvertible {
  let testDescription: String
  var code = SyncError.Code.badAnswer
  /// Sends the answer; gets the headers that make it look like the hub's.
  let answer: @Sendable (RawConnection, _ headers: [String]) -> Void

  static func body(_ name: String, _ type: String, _ body: [UInt8]) -> Harm {
    Harm(testDescription: name) { connection, headers in
      connection.answer(headers: headers + ["Content-Type: \(type)"], body: body)
    }
  }

  static let all =
    [
      Harm(testDescription: "a hundred gigabytes, announced") { connection, _ in
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
        sendForEver(connection)
      },
      Harm(testDescription: "a hundred gigabytes, in pieces without an end") {
        connection, headers in
        let head = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"] + headers
        connection.send(head.joined(separator: "\r\n") + "\r\n\r\n")
        let piece = Array("10000\r\n".utf8) + [UInt8](repeating: 0x80, count: 1 << 16)
        while connection.send(piece + Array("\r\n".utf8)) { sent.add(piece.count) }
      },
      Harm(testDescription: "10,000 headers") { connection, headers in
        let junk = (1...10_000).map { "X-Header-\($0): \(String(repeating: "a", count: 40))" }
        connection.answer(headers: headers + junk, body: Array("{}".utf8))
      },
      Harm(testDescription: "a head that drips", code: .hubUnreachable) { connection, _ in
        for byte in "HTTP/1.1 200 OK\r\nX: ".utf8 { connection.send([byte]) }
        while connection.send([0x61]) { usleep(20_000) }
      },
      Harm(testDescription: "a body that drips", code: .hubUnreachable) { connection, headers in
        let head = ["HTTP/1.1 200 OK", "Content-Length: 100000"] + headers
        connection.send(head.joined(separator: "\r\n") + "\r\n\r\n")
        while connection.send([0x61]) { usleep(20_000) }
      },
      .body("invalid UTF-8 in JSON", "application/json", Array("{\"hub\":\"".utf8) + [0xC3, 0x28]),
      .body("invalid UTF-8 in CBOR", "application/cbor", [0xA1, 0x63, 0xFF, 0xFE, 0xFD, 0x01]),
      .body("JSON that nests", "application/json", [UInt8](repeating: 0x5B, count: 200_000)),
    ]
    + [
      ("arrays that nest", [UInt8](repeating: 0x81, count: 200_000)),
      ("tags that nest", [UInt8](repeating: 0xC1, count: 200_000)),
      ("an array of 2^60 elements", [0x9B, 0x10, 0, 0, 0, 0, 0, 0, 0]),
      ("a map of 2^64 - 1 entries", [0xBB] + [UInt8](repeating: 0xFF, count: 8)),
      ("bytes of 2^62 length", [0xA1, 0x61, 0x61, 0x5B, 0x40, 0, 0, 0, 0, 0, 0, 0]),
      ("text without an end", [0x7F] + [UInt8](repeating: 0x60, count: 100_000)),
      ("maps without an end", [UInt8](repeating: 0xBF, count: 100_000)),
    ].map { .body("a CBOR bomb: \($0)", "application/cbor", $1) }

  /// What was sent of answers without an end.
  static let sent = Sum()

  private static func sendForEver(_ connection: RawConnection) {
    let block = [UInt8](repeating: 0x80, count: 1 << 16)
    while connection.send(block) { sent.add(block.count) }
  }
}

private final class Sum: Sendable {
  private let value = Mutex(0)
  func add(_ count: Int) { value.withLock { $0 += count } }
  var taken: Int { value.withLock { $0 } }
}

/// A way to a hub that gives up soon.
private struct Hasty: HubTransport {
  let connection: HubConnection

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    var request = request
    request.timeout = .seconds(2)
    return try await connection.send(request)
  }
}

@Suite("A hub that means harm", .serialized)
struct HostileHubTests {
  @Test(
    "is refused with a typed error, takes no room, and costs nothing that was there",
    arguments: Harm.all, [Call.session, .mutations, .changes])
  private func harms(_ harm: Harm, at call: Call) async throws {
    try await TestHub.run { hub in
      let alice = try await Person.withRecords(hub, ids(1...3))
      try await alice.write(ids(4...5), "mine")
      let port = UInt16(try #require(hub.server.url.port))
      let headers = ["Holdfast-Hub: \(hub.id.uuidString.lowercased())", "Holdfast-Account: alice"]
      let server = try RawServer { connection in
        guard let request = connection.readRequest() else { return }
        guard request.requestLine.contains("/v1/\(call.rawValue)") else {
          return connection.relay(request, to: port)
        }
        harm.answer(connection, headers)
      }
      let connection = try HubConnection(url: try server.url())
      alice.device.registry.connect(to: Hasty(connection: connection))
      let before = try alice.standing()
      await expect(harm.code) {
        try await alice.profile.synchronize(account: alice.account)
      }
      connection.close()
      server.stop()
      let after = try alice.standing()
      #expect(after.cursor == before.cursor)
      #expect(after.records.map(\.id) == before.records.map(\.id))
      #expect(after.outbox == before.outbox || call == .changes)
      alice.device.registry.connect(to: hub.connection)
      try await alice.profile.synchronize(account: alice.account)
      #expect(try alice.texts() == (try await hub.texts(of: "alice")))
      #expect(try await hub.highWater(of: "alice") == 5)
    }
    // What the system buffers on both ends comes on top of the limit of an answer.
    #expect(Harm.sent.taken < 3 * 2 * (96 << 20))
  }
}
