import Foundation
import HubProtocol
import HubServer
import Testing

@Suite("A hub that stops", .timeLimit(.minutes(2)))
struct StoppingTests {
  @Test("finishes the answers under way, without waiting for a delay, and ends idle connections")
  func finishes() async throws {
    let directory = try TemporaryDirectory()
    var configuration = HubConfiguration.test(directory)
    configuration.faultsEnabled = true
    let hub = try await HubServer.start(configuration)
    let alice = try TestClient(hub)
    let epoch = try await alice.session().epoch
    try await alice.register()
    let port = hub.url.port ?? 0
    let idle = try RawConnection(port: port)
    idle.send(Data("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
    #expect(try await blocking { try idle.receive().status } == 200)
    let file = configuration.dataDirectory.appending(path: "run.json")
    let before = try Data(contentsOf: file)
    let mutation = WireMutation.put("r")
    async let pushed = alice.push(
      [mutation], epoch: epoch, ["Holdfast-Fault": "delay=600000"])
    // The push counts as under way once it is stored, which a second client sees.
    while try await alice.session().highWater == 0 { try Task.checkCancellation() }
    try await hub.stop()
    let answer = try await pushed
    #expect(try answer.message(PushAnswer.self).results.map(\.status) == [.applied])
    #expect(answer.header("Connection") == "close")
    #expect(try await blocking { idle.isEnded() })
    #expect(throws: RawHTTPError.notConnected) { try RawConnection(port: port) }
    #expect(try Data(contentsOf: file) != before)
    // Stopping again is nothing.
    try await hub.stop()
  }

  @Test("does not wait for clients that stall in a head or a body")
  func stalled() async throws {
    let directory = try TemporaryDirectory()
    let hub = try await HubServer.start(.test(directory))
    let alice = try TestClient(hub)
    let port = hub.url.port ?? 0
    let head = try RawConnection(port: port)
    head.send(Data("GET /healthz HT".utf8))
    let body = try RawConnection(port: port)
    let fields = alice.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
    let start = "POST /v1/mutations HTTP/1.1\r\n\(fields)Content-Type: application/json\r\n"
    body.send(Data("\(start)Content-Length: 100\r\n\r\n{".utf8))
    _ = try await alice.session()
    try await hub.stop()
    #expect(try await blocking { head.isEnded() && body.isEnded() })
  }

  @Test("lets a body that moves take longer than the time for one that does not")
  func steady() async throws {
    try await withHub {
      // Longer than a busy machine keeps one part waiting.
      $0.listen.bodySeconds = 8
    } _: { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      let push = PushRequest(
        client: alice.client, epoch: epoch, cursor: 0,
        mutations: [.put("r", String(repeating: "x", count: 400_000))]
      ).encoded(as: .cbor)
      let port = hub.url.port ?? 0
      let connection = try RawConnection(port: port)
      let fields = alice.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
      let start = "POST /v1/mutations HTTP/1.1\r\n\(fields)Content-Type: application/cbor\r\n"
      connection.send(Data("\(start)Content-Length: \(push.count)\r\n\r\n".utf8))
      let clock = ContinuousClock()
      let began = clock.now
      for number in 0..<40 {
        // 12 seconds in all: the hub looks once a second.
        while clock.now < began + .milliseconds(300 * number) {
          _ = try await alice.session()
          try await Task.sleep(for: .milliseconds(50))
        }
        connection.send(push.dropFirst(10_100 * number).prefix(10_100))
      }
      #expect(try await blocking { try connection.receive().status } == 200)
    }
  }

  @Test("answers a chunked body that is far too long once it has ended")
  func tooLongInChunks() async throws {
    try await withHub {
      $0.limits.pushBytes = 8_192
      $0.limits.payloadBytes = 1_024
    } _: { hub in
      let alice = try TestClient(hub)
      try await alice.register()
      var body = Data()
      for _ in 0..<100 {
        body.append(Data("400\r\n".utf8) + Data(repeating: 120, count: 1_024) + Data("\r\n".utf8))
      }
      let answer = try await alice.send(
        "POST", "/v1/mutations",
        ["Content-Type": "application/json", "Transfer-Encoding": "chunked"],
        raw: body + Data("0\r\n\r\n".utf8))
      #expect(answer.status == 413 && answer.code == "too_large")
    }
  }

  @Test("ends connections whose clients drip bytes, while it runs")
  func dripping() async throws {
    try await withHub { configuration in
      configuration.listen.headSeconds = 1
      configuration.listen.bodySeconds = 1
    } _: { hub in
      let alice = try TestClient(hub)
      let port = hub.url.port ?? 0
      let head = try RawConnection(port: port)
      head.send(Data("GET /healthz HT".utf8))
      let body = try RawConnection(port: port)
      let fields = alice.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
      let start = "POST /v1/mutations HTTP/1.1\r\n\(fields)Content-Type: application/json\r\n"
      body.send(Data("\(start)Content-Length: 100\r\n\r\n{".utf8))
      #expect(try await blocking { head.isEnded() })
      #expect(try await blocking { body.isEnded() })
    }
  }
}
