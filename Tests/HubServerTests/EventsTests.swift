import Foundation
import HubProtocol
import HubRules
import HubServer
import Testing

@Suite("An event stream", .timeLimit(.minutes(2)))
struct EventsTests {
  private func prepared(
    _ change: (inout HubConfiguration) -> Void = { _ in },
    _ body: (TestedHub, TestClient, UUID) async throws -> Void
  ) async throws {
    try await withHub(change) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      _ = try await alice.push([.put("r1"), .put("r2")], epoch: epoch)
      try await body(hub, alice, epoch)
    }
  }

  private func hello(_ hub: TestedHub, _ epoch: UUID, _ highWater: Int) -> String {
    "event: hello\ndata: {\"hub\":\"\(hub.hubID.wireText)\",\"epoch\":\"\(epoch.wireText)\","
      + "\"account\":\"alice\",\"highWater\":\(highWater)}"
  }

  private func change(_ highWater: Int) -> String {
    "event: change\ndata: {\"highWater\":\(highWater)}"
  }

  private func bye(_ code: String) -> String { "event: bye\ndata: {\"code\":\"\(code)\"}" }

  @Test("says hello, and then of each change how far the account has come")
  func changes() async throws {
    try await prepared { (hub, alice, epoch) async throws in
      let stream = try await EventStreamClient(alice)
      let head = stream.head
      #expect(head.hasPrefix("HTTP/1.1 200 "))
      for field in [
        "Content-Type: text/event-stream", "Cache-Control: private, no-store",
        "Vary: Authorization", "Holdfast-Hub: \(hub.hubID.wireText)", "Holdfast-Account: alice",
        "Holdfast-Epoch: \(epoch.wireText)", "Transfer-Encoding: chunked",
      ] {
        #expect(head.contains("\r\n\(field)"), "\(field)")
      }
      #expect(try await stream.nextEvent() == hello(hub, epoch, 2))
      _ = try await alice.push([.put("r3")], epoch: epoch)
      #expect(try await stream.nextEvent() == change(3))
      // Nothing is said of somebody else's, nor of a push that stored nothing.
      let bob = try TestClient(hub, "bob")
      let other = try await bob.session().epoch
      try await bob.register()
      _ = try await bob.push([.put("r")], epoch: other)
      _ = try await alice.push([], epoch: epoch)
      _ = try await alice.push([.put("r4"), .put("r5")], epoch: epoch)
      #expect(try await stream.nextEvent() == change(5))
    }
  }

  @Test("says in a comment that it is there, whenever it has been silent")
  func comments() async throws {
    try await prepared {
      $0.commentInterval = .milliseconds(300)
    } _: { (hub, alice, epoch) async throws in
      let stream = try await EventStreamClient(alice)
      #expect(try await stream.next() == hello(hub, epoch, 2))
      #expect(try await stream.next() == ":")
      #expect(try await stream.next() == ":")
      _ = try await alice.push([.put("r3")], epoch: epoch)
      var next = try await stream.next()
      while next == ":" { next = try await stream.next() }
      #expect(next == change(3))
    }
  }

  @Test("ends with the reason when the account's standing changes")
  func standing() async throws {
    try await prepared { (hub, alice, epoch) async throws in
      func end(_ change: () async throws -> Void) async throws -> String? {
        let stream = try await EventStreamClient(alice)
        #expect(try await stream.nextEvent()?.hasPrefix("event: hello") ?? false)
        try await change()
        let last = try await stream.nextEvent()
        #expect(try await stream.nextEvent() == nil, "nothing follows a bye")
        try await hub.untilWaiting(0)
        return last
      }
      let changed = try await end { try await hub.beginEpoch(alice.account) }
      #expect(changed == bye("epoch_changed"))
      let disabled = try await end { try await hub.disable(alice.account) }
      #expect(disabled == bye("account_disabled"))
      #expect(try await alice.send("GET", "/v1/events").code == "account_disabled")
      try await hub.enable(alice.account)
      let erased = try await end { try await hub.erase(alice.account) }
      #expect(erased == bye("account_erased"))
      let answer = try await alice.send("GET", "/v1/events")
      #expect(answer.status == 410 && answer.code == "account_erased")
      #expect(hub.waitingCount == 0)
    }
  }

  @Test("ends with the token")
  func tokenEnds() async throws {
    let directory = try TemporaryDirectory()
    let start = ContinuousClock.now
    let configuration = HubConfiguration.test(directory)
    // The hub's clock goes as ours does.
    let now: @Sendable () -> Double = { 1_000_000.5 + (ContinuousClock.now - start) / .seconds(1) }
    try await withHub(configuration, now: now) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      let short = try hub.token(for: alice.account, lifetimeSeconds: 2)
      let stream = try await EventStreamClient(alice, token: short)
      #expect(try await stream.nextEvent() == hello(hub, epoch, 0))
      #expect(try await stream.nextEvent() == bye("token_expired"))
      #expect(try await stream.nextEvent() == nil)
    }
  }

  @Test("ends with a bye when the hub stops")
  func stopped() async throws {
    let directory = try TemporaryDirectory()
    let hub = try await HubServer.start(.test(directory))
    let alice = try TestClient(hub)
    var streams: [EventStreamClient] = []
    for _ in 0..<20 { streams.append(try await EventStreamClient(alice)) }
    try await hub.untilWaiting(20)
    try await hub.stop()
    for stream in streams {
      #expect(try await stream.nextEvent()?.hasPrefix("event: hello") ?? false)
      #expect(try await stream.nextEvent() == bye("shutting_down"))
      #expect(try await stream.nextEvent() == nil)
    }
  }

  @Test("is freed when its client is gone")
  func hungUp() async throws {
    try await prepared { (hub, alice, _) async throws in
      do {
        let connections = try (0..<20).map { _ in try alice.connection("/v1/events") }
        try await hub.untilWaiting(20)
        withExtendedLifetime(connections) {}
      }
      try await hub.untilWaiting(0)
    }
  }

  @Test("is refused like any other request, and its head alone can be asked for")
  func refused() async throws {
    try await prepared { (hub, alice, _) async throws in
      let cases: [(String, [String: String?], Int, String)] = [
        ("GET", ["Authorization": nil], 401, "token_invalid"),
        ("GET", ["Holdfast-Account": nil], 400, "account_missing"),
        ("GET", ["Holdfast-Account": "bob"], 403, "account_mismatch"),
        ("POST", [:], 405, "method_not_allowed"),
      ]
      for (method, changed, status, code) in cases {
        let answer = try await alice.send(method, "/v1/events", changed)
        #expect(answer.status == status && answer.code == code)
      }
      let head = try await alice.send("HEAD", "/v1/events")
      #expect(head.status == 200 && head.header("Content-Type") == "text/event-stream")
      try await hub.untilWaiting(0)
    }
  }

  @Test("misbehaves on demand")
  func faults() async throws {
    try await prepared {
      $0.faultsEnabled = true
      $0.commentInterval = .milliseconds(300)
    } _: { (hub, alice, epoch) async throws in
      let silent = try await EventStreamClient(alice, ["Holdfast-Fault": "silent-events"])
      #expect(try await silent.next() == hello(hub, epoch, 2))
      _ = try await alice.push([.put("r3")], epoch: epoch)
      #expect(try await silent.next() == ":")
      #expect(try await silent.next() == ":")
      try await hub.beginEpoch(alice.account)
      var last = try await silent.next()
      while last == ":" { last = try await silent.next() }
      #expect(last == bye("epoch_changed"))
      let other = try await EventStreamClient(alice, ["Holdfast-Fault": "other-account-body"])
      #expect(try await other.next()?.contains("\"account\":\"someone-else\"") ?? false)
      let cut = try await EventStreamClient(alice, ["Holdfast-Fault": "cut-body=10"])
      await #expect(throws: RawHTTPError.self) { try await cut.next() }
      await #expect(throws: RawHTTPError.self) {
        try await alice.send("GET", "/v1/events", ["Holdfast-Fault": "drop-after-commit"])
      }
    }
  }
}
