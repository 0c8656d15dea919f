import Foundation
import HoldfastTesting
import HubProtocol
import ProfileSync
import Synchronization
import Testing

// What the hub in memory has beside the protocol, whose tests it meets as well.
@Suite("The hub in memory", .timeLimit(.minutes(1)))
struct MemoryHubTests {
  private func request(_ call: HubCall, _ hub: MemoryHub) throws -> HubRequest {
    call.request(token: hub.token(for: "ada"), account: try AccountID("ada"), format: .cbor)
  }

  private func query(epoch: UUID, waitSeconds: Int = 0) -> HubCall {
    .changes(ChangesQuery(after: 0, epoch: epoch, limit: 10, waitSeconds: waitSeconds))
  }

  /// The epoch of an account that has been seen.
  private func epoch(_ hub: MemoryHub) async throws -> UUID {
    _ = try await hub.send(try request(.session(nonce: UUID()), hub))
    return try #require(hub.epoch(of: "ada"))
  }

  @Test("listens for nobody whose event stream did not come about")
  func lostStreams() async throws {
    let hub = MemoryHub()
    let events = try request(.events, hub)
    for fault in [HubFault.dropAfterCommit, .delay(milliseconds: 60_000)] {
      hub.fail(fault, at: .events)
      var listening = events
      listening.timeout = .milliseconds(20)
      await #expect(throws: TransportError.self) { try await hub.events(listening) }
      #expect(hub.waitingCount == 0)
    }
    let task = Task {
      hub.onAnswer { _, _ in withUnsafeCurrentTask { $0?.cancel() } }
      return try await hub.events(events)
    }
    await #expect(throws: TransportError.self) { try await task.value }
    #expect(hub.waitingCount == 0)
    hub.onAnswer(nil)
    // As a plain request, it is answered with its head alone.
    #expect(try await hub.send(events).status == 200)
    #expect(hub.waitingCount == 0)
  }

  @Test("lets an answer come too late for its client, which does not wait longer")
  func late() async throws {
    let hub = MemoryHub()
    let epoch = try await epoch(hub)
    let client = UUID()
    _ = try await hub.send(try request(.registerClient(client: client, name: "test"), hub))
    var push = try request(
      .push(
        PushRequest(
          client: client, epoch: epoch, cursor: 0,
          mutations: [
            WireMutation(
              mutation: UUID(), order: 0, kind: .put, id: "r", base: nil, firstSent: 0,
              payload: Data("p".utf8))
          ])), hub)
    push.timeout = .milliseconds(20)
    hub.fail(.delay(milliseconds: 600_000), at: .mutations)
    do {
      _ = try await hub.send(push)
      Issue.record("an answer came")
    } catch {
      #expect(error.code == .timedOut)
    }
    #expect(hub.records(of: "ada").map(\.record) == ["r"])
  }

  @Test("counts a fault that counts by itself from the beginning with each call")
  func counts() async throws {
    let hub = MemoryHub()
    var epochs = [try await epoch(hub)]
    for _ in 1...3 {
      hub.fail(.newEpoch())
      epochs.append(try await epoch(hub))
    }
    #expect(Set(epochs).count == 4)
    for _ in 1...2 {
      hub.fail(.throttle(count: 2), times: nil)
      var statuses: [Int] = []
      for _ in 1...3 {
        statuses.append(try await hub.send(try request(query(epoch: epochs[3]), hub)).status)
      }
      #expect(statuses == [429, 429, 200])
      hub.stopFailing()
    }
    for _ in 1...2 {
      hub.fail(.unauthorizedAtPage(2), times: 2)
      var statuses: [Int] = []
      for _ in 1...3 {
        statuses.append(try await hub.send(try request(query(epoch: epochs[3]), hub)).status)
      }
      #expect(statuses == [200, 401, 200])
    }
  }

  @Test("takes a token for as long as it was given, however short that is")
  func shortToken() async throws {
    let time = Mutex(1_000.0)
    var configuration = MemoryHub.Configuration()
    configuration.now = { Date(timeIntervalSince1970: time.withLock { $0 }) }
    let hub = MemoryHub(configuration)
    let token = hub.token(for: "ada", lifetime: .milliseconds(500))
    let call = HubCall.session(nonce: UUID())
    let request = try call.request(token: token, account: AccountID("ada"), format: .cbor)
    #expect(try await hub.send(request).status == 200)
    time.withLock { $0 = 1_001 }
    #expect(try await hub.send(request).status == 401)
  }

  @Test("tells those who wait that a backup was put in the place of all they know")
  func restored() async throws {
    var configuration = MemoryHub.Configuration()
    configuration.limits.waitSeconds = 3
    let hub = MemoryHub(configuration)
    let empty = hub.backUp()
    let known = try await epoch(hub)
    let waiting = try request(query(epoch: known, waitSeconds: 3), hub)
    async let answer = hub.send(waiting)
    while hub.waitingCount == 0 { try await Task.sleep(for: .milliseconds(2)) }
    hub.restore(empty)
    let response = try await answer
    let problem = try HubProblem(decoding: response.body)
    #expect(problem.code == HubCode.epochChanged.rawValue)
  }
}

@Suite("The events of the hub in memory", .timeLimit(.minutes(1)))
struct MemoryHubEventsTests {
  private let hub = MemoryHub()
  private let client = UUID()

  private func send(_ call: HubCall) async throws -> HubResponse {
    try await hub.send(
      call.request(token: hub.token(for: "ada"), account: try AccountID("ada"), format: .cbor))
  }

  private func put(_ id: RecordID, _ epoch: UUID) -> HubCall {
    let mutation = WireMutation(
      mutation: UUID(), order: 0, kind: .put, id: id, base: nil, firstSent: 0, payload: Data())
    return .push(PushRequest(client: client, epoch: epoch, cursor: 0, mutations: [mutation]))
  }

  private func untilWaiting(_ count: Int) async throws {
    while hub.waitingCount != count { try await Task.sleep(for: .milliseconds(2)) }
  }

  /// The epoch of an account whose client is registered, and its events.
  private func opened() async throws -> (UUID, HubEvents) {
    _ = try await send(.session(nonce: UUID()))
    _ = try await send(.registerClient(client: client, name: "test"))
    let request = HubCall.events.request(
      token: hub.token(for: "ada"), account: try AccountID("ada"), format: .cbor)
    guard case .opened(let head, let events) = try await hub.events(request) else {
      throw TransportError(code: .other, description: "no stream")
    }
    #expect(head.status == 200 && head.body.isEmpty)
    return (try #require(hub.epoch(of: "ada")), events)
  }

  @Test("tell of each change, and end with the reason")
  func changes() async throws {
    let (epoch, stream) = try await opened()
    #expect(hub.waitingCount == 1)
    var events = stream.makeAsyncIterator()
    let greeting = HubGreeting(
      hub: hub.id, epoch: epoch, account: try AccountID("ada"), highWater: 0)
    #expect(try await events.next() == .hello(greeting))
    for highWater in UInt64(1)...3 {
      _ = try await send(put("r", epoch))
      #expect(try await events.next() == .change(highWater: highWater))
    }
    hub.beginEpoch(of: "ada")
    #expect(try await events.next() == .bye(code: HubFarewell.epochChanged.rawValue))
    #expect(try await events.next() == nil)
    try await untilWaiting(0)
  }

  @Test("are given up by a reader that is cancelled")
  func cancelled() async throws {
    let (_, events) = try await opened()
    let task = Task { for try await _ in events {} }
    #expect(hub.waitingCount == 1)
    task.cancel()
    _ = await task.result
    try await untilWaiting(0)
  }

  @Test("let a pull that waits go on at once, and end it when its task is cancelled")
  func waits() async throws {
    let (epoch, events) = try await opened()
    defer { withExtendedLifetime(events) {} }
    let query = HubCall.changes(ChangesQuery(after: 0, epoch: epoch, waitSeconds: 30))
    async let waiting = send(query)
    try await untilWaiting(2)
    _ = try await send(put("r", epoch))
    let page = try ChangesPage(decoding: try await waiting.body, as: .cbor)
    #expect(page.records.map(\.id) == ["r"])
    let later = HubCall.changes(ChangesQuery(after: 1, epoch: epoch, waitSeconds: 30))
    let task = Task { try await send(later) }
    try await untilWaiting(2)
    task.cancel()
    do {
      _ = try await task.value
      Issue.record("an answer came")
    } catch {
      #expect((error as? TransportError)?.code == .cancelled)
    }
    try await untilWaiting(1)
  }
}
