import Foundation
import HubClient
import HubProtocol
import HubServer
import ProfileSync
import Testing

@Suite("A hub that waits", .timeLimit(.minutes(2)))
struct RealHubTests {
  /// A hub, a connection to it and what asks it as `alice`.
  private func withHub(
    _ body: (HubServer, HubConnection, _ ask: (HubCall) throws -> HubRequest) async throws -> Void
  ) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(
      path: "client-test-\(UUID().uuidString)", directoryHint: .isDirectory)
    defer { try? FileManager.default.removeItem(at: directory) }
    let hub = try await HubServer.start(
      HubConfiguration(dataDirectory: directory, keys: [try SigningKey.generate(.hs256)]))
    let connection = try HubConnection(url: hub.url)
    let account = try AccountID("alice")
    do {
      let token = try hub.token(for: account)
      try await body(hub, connection) { call in
        call.request(token: token, account: account, format: .cbor)
      }
    } catch {
      connection.close()
      try await hub.stop()
      throw error
    }
    connection.close()
    try await hub.stop()
  }

  private func push(
    _ connection: HubConnection, _ ask: (HubCall) throws -> HubRequest, _ epoch: UUID,
    client: UUID
  ) async throws {
    let mutation = WireMutation(
      mutation: UUID(), order: 0, kind: .put, id: RecordID("r"), base: nil, firstSent: 0,
      payload: Data("text".utf8))
    let answer = try await connection.send(
      ask(.push(PushRequest(client: client, epoch: epoch, cursor: 0, mutations: [mutation]))))
    #expect(answer.status == 200)
  }

  @Test("answers a pull that waits, and tells those who listen, when another device has pushed")
  func woken() async throws {
    try await withHub { (hub, connection, ask) async throws in
      guard case .opened(let head, let events) = try await connection.events(ask(.events)) else {
        Issue.record("no stream")
        return
      }
      #expect(head.values(of: HubHeader.hub) == [hub.hubID.wireText])
      #expect(head.values(of: HubHeader.account) == ["alice"])
      var iterator = events.makeAsyncIterator()
      guard case .hello(let greeting) = try await iterator.next() else {
        Issue.record("no greeting")
        return
      }
      #expect(greeting.hub == hub.hubID && greeting.account.text == "alice")
      #expect(greeting.highWater == 0)
      let client = UUID()
      _ = try await connection.send(ask(.registerClient(client: client, name: "test")))
      let poll = try ask(
        .changes(ChangesQuery(after: 0, epoch: greeting.epoch, waitSeconds: 55)))
      #expect(poll.stallLimit > .seconds(55) && poll.timeout > .seconds(55) && poll.mayWait)
      async let waiting = connection.send(poll)
      try await push(connection, ask, greeting.epoch, client: client)
      let page = try ChangesPage(decoding: try await waiting.body, as: .cbor)
      #expect(page.records.map(\.id) == ["r"])
      #expect(try await iterator.next() == .change(highWater: 1))
      try await hub.erase(greeting.account)
      #expect(try await iterator.next() == .bye(code: "account_erased"))
      #expect(try await iterator.next() == nil)
      guard case .refused(let answer) = try await connection.events(ask(.events)) else {
        Issue.record("an erased account has no stream")
        return
      }
      #expect(answer.status == 410)
    }
  }
}
