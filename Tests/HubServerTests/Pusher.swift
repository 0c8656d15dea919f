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

  /// Returns once so many mutations were acknowledged in all.
  func waitUntil(acknowledged count: Int) async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        if state.acknowledged.count < count { state.waiter = (count, continuation) }
        return state.acknowledged.count >= count
      }
      if isReached { continuation.resume() }
    }
  }

  /// Pushes small batches over one connection until it breaks.
  func push(port: Int) {
    do {
      let connection = try RawConnection(port: port)
      while true {
        let (batch, epoch) = nextBatch()
        let push = PushRequest(client: client, epoch: epoch, cursor: 0, mutations: batch)
        let answer = try exchange(
          connection, "POST", "/v1/mutations", push.encoded(as: .cbor), .cbor)
        guard answer.status == 200 else { return }
        settle(try answer.message(PushAnswer.self))
      }
    } catch {
      // The connection broke: the hub was killed, which is what this is for.
      return
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
    let waiter: CheckedContinuation<Void, Never>? = state.withLock { state in
      for result in answer.results {
        #expect(result.status == .applied || result.status == .duplicate)
        state.acknowledged[result.mutation] = result.version
      }
      state.unknown = []
      guard let waiter = state.waiter, state.acknowledged.count >= waiter.count else { return nil }
      state.waiter = nil
      return waiter.continuation
    }
    waiter?.resume()
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
