import Foundation
import HubProtocol
import HubServer
import Synchronization
import Testing

/// One account that pushes until its hub is gone, and remembers what was acknowledged.
final class Pusher: Sendable {
  private struct State {
    var epoch: UUID?
    /// Acknowledged mutations and the versions they were given.
    var acknowledged: [UUID: UInt64] = [:]
    var ids: [UUID: RecordID] = [:]
    /// Sent, and the answer did not come: they may be stored or not.
    var unknown: [WireMutation] = []
    var number = 0
    /// No push is under way any more, and none will be before the next ``verify(port:)``.
    var hasEnded = false
    var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?
  }

  private let account: AccountID
  private let token: String
  private let client = UUID()
  private let state = Mutex(State())

  init(account: String, issuer: TokenIssuer) throws {
    self.account = try AccountID(account)
    token = try issuer.token(
      for: self.account, issuedAt: Int64(Date().timeIntervalSince1970), lifetimeSeconds: 3_600)
  }

  /// Returns once so many mutations were acknowledged in all, or no more will be.
  func waitUntil(acknowledged count: Int) async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        let isOver = state.hasEnded || state.acknowledged.count >= count
        if !isOver { state.waiter = (count, continuation) }
        return isOver
      }
      if isOver { continuation.resume() }
    }
  }

  /// Pushes small batches over one connection until it breaks; anything else is an issue. Whoever
  /// waits for it waits no longer then.
  func push(port: Int) {
    defer {
      state.withLock { $0.hasEnded = true }
      takeWaiter(where: \.hasEnded)?.resume()
    }
    do {
      let connection = try RawConnection(port: port)
      while true {
        let (batch, epoch) = nextBatch()
        let push = PushRequest(client: client, epoch: epoch, cursor: 0, mutations: batch)
        let answer = try exchange(
          connection, "POST", "/v1/mutations", push.encoded(as: .cbor), .cbor)
        guard answer.status == 200 else {
          Issue.record("a push was answered with \(answer.status) \(answer.code ?? "")")
          return
        }
        settle(try answer.message(PushAnswer.self))
      }
    } catch is RawHTTPError {
      // The connection broke: the hub was killed, which is what this is for.
    } catch {
      Issue.record("an answer to a push cannot be read: \(error)")
    }
  }

  /// Checks that the epoch is the same and everything acknowledged is stored as it was said.
  func verify(port: Int) throws {
    let connection = try RawConnection(port: port)
    let session = try exchange(
      connection, "GET", "/v1/session?nonce=\(UUID().wireText)", nil, .json
    ).message(SessionAnswer.self)
    _ = try exchange(
      connection, "PUT", "/v1/clients/\(client.wireText)",
      ClientRegistration(name: "pusher").encoded(as: .json), .json)
    let known = state.withLock { state in
      if state.epoch == nil { state.epoch = session.epoch }
      state.hasEnded = false
      return state
    }
    #expect(session.epoch == known.epoch, "a crash is no restore")
    #expect(session.highWater >= UInt64(known.acknowledged.count))
    for (mutation, version) in known.acknowledged {
      let id = try #require(known.ids[mutation])
      let target = "/v1/records?id=\(PercentEncoding.encode(bytes: id.bytes))"
      let record = try exchange(connection, "GET", target, nil, .json)
        .message(RecordAnswer.self).record
      #expect(record?.version == version)
      #expect(record?.mutation == mutation)
    }
  }

  /// What is unknown goes first, under the same UUIDs.
  private func nextBatch() -> ([WireMutation], UUID) {
    state.withLock { state in
      if state.unknown.isEmpty {
        for _ in 0..<3 {
          state.number += 1
          let mutation = WireMutation.put("r\(state.number)", "payload \(state.number)")
          state.ids[mutation.mutation] = mutation.id
          state.unknown.append(mutation)
        }
      }
      return (state.unknown, state.epoch ?? UUID())
    }
  }

  private func settle(_ answer: PushAnswer) {
    // A push whose answer was lost is stored whole or not at all.
    let statuses = Set(answer.results.map(\.status))
    #expect(statuses == [.applied] || statuses == [.duplicate])
    state.withLock { state in
      for result in answer.results { state.acknowledged[result.mutation] = result.version }
      state.unknown = []
    }
    takeWaiter(where: { $0.acknowledged.count >= $0.waiter?.count ?? 0 })?.resume()
  }

  private func takeWaiter(
    where isDone: (State) -> Bool
  ) -> CheckedContinuation<Void, Never>? {
    state.withLock { state in
      guard isDone(state) else { return nil }
      defer { state.waiter = nil }
      return state.waiter?.continuation
    }
  }

  private func exchange(
    _ connection: RawConnection, _ method: String, _ target: String, _ body: Data?,
    _ format: WireFormat
  ) throws -> RawAnswer {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(token)\r\n"
    head += "Holdfast-Account: \(PercentEncoding.encode(bytes: account.bytes))\r\n"
    head += "Content-Type: \(format.rawValue)\r\nContent-Length: \(body?.count ?? 0)\r\n\r\n"
    connection.send(Data(head.utf8) + (body ?? Data()))
    return try connection.receive()
  }
}
