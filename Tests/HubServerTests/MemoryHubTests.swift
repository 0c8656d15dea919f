import Foundation
import HoldfastTesting
import HubProtocol
import ProfileSync
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
