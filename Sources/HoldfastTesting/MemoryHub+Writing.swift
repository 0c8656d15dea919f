public import Foundation
public import HubProtocol
import HubRules
import ProfileSync

/// What another device of an account did, as a hub in memory judged it.
public struct MemoryHubRefusal: Error, Hashable, CustomStringConvertible {
  /// One sentence, without any payload.
  public let description: String
}

extension MemoryHub {
  /// Puts or deletes records as another device of the account would: by the hub's rules and limits, as
  /// the last writer, past all faults, and without a trace in ``requests``.
  /// - Parameters:
  ///   - changes: each record with its new payload; nil: it is deleted. They are applied in order.
  ///   - account: the account's ID; one that was never seen is made.
  /// - Throws: ``MemoryHubRefusal`` when the hub does not take them all: a limit, a disabled or erased
  ///   account. Those before a push that was refused stay.
  public func write(_ changes: [(record: RecordID, payload: Data?)], of account: String)
    async throws
  {
    let device = OtherDevice(hub: self, account: account, token: token(for: account))
    let session = try SessionAnswer(
      decoding: try await device.ask(.session(nonce: UUID())), as: .cbor)
    let client = UUID()
    _ = try await device.ask(.registerClient(client: client, name: "another device"))
    var rest = changes[...]
    while !rest.isEmpty {
      let part = rest.prefix(max(session.limits.pushMutations, 1))
      rest = rest.dropFirst(part.count)
      try await device.push(part, client: client, session)
    }
  }
}

private struct OtherDevice {
  let hub: MemoryHub
  let account: String
  let token: String

  /// - Returns: the body of an answer that is for use.
  func ask(_ call: HubCall) async throws -> Data {
    let request = call.request(token: token, account: try AccountID(account), format: .cbor)
    switch hub.service.admit(RequestHead(request, faults: [])) {
    case .refused(let reply): return try body(of: reply)
    case .admitted(let admitted):
      let reply = await hub.service.answer(
        admitted, body: .whole(request.body ?? Data()), presence: ClientPresence { _ in })
      return try body(of: reply)
    }
  }

  private func body(of reply: Reply) throws -> Data {
    guard (200..<300).contains(reply.status) else {
      let problem = try HubProblem(decoding: reply.body)
      throw MemoryHubRefusal(description: "the hub refuses the writing device: \(problem.code)")
    }
    return reply.body
  }

  func push(
    _ changes: ArraySlice<(record: RecordID, payload: Data?)>, client: UUID,
    _ session: SessionAnswer
  ) async throws {
    let mutations = changes.enumerated().map { order, change in
      WireMutation(
        mutation: UUID(), order: UInt64(order), kind: change.payload == nil ? .delete : .put,
        id: change.record, base: nil, firstSent: session.highWater, payload: change.payload)
    }
    let push = PushRequest(
      client: client, epoch: session.epoch, cursor: session.highWater, mutations: mutations)
    let answer = try PushAnswer(decoding: try await ask(.push(push)), as: .cbor)
    for (place, result) in answer.results.enumerated() where result.status != .applied {
      throw MemoryHubRefusal(
        description: "change \(place + 1) is \(result.status.rawValue), \(result.code ?? "no code")"
      )
    }
  }
}
