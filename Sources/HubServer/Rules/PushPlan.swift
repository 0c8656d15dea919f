package import Foundation
package import HubProtocol

/// A push made ready for the storing transaction: what needs no store is decided outside of it.
package struct PushPlan: Sendable {
  package let client: UUID
  package let claim: CursorClaim
  package let mutations: [WireMutation]
  /// One per mutation.
  package let digests: [ContentDigest]
  /// The places of the mutations in the order in which they are judged.
  package let judgingOrder: [Int]
  /// When the answer's `current` payloads reach it, further ones are left out.
  package let currentByteCountMax: Int
  /// Seconds since 1970: when the results were stored, for the choice of what to purge.
  package let storedAt: Int64
  /// Verdicts from outside (a fault on demand), by place.
  package var imposed: [Int: MutationVerdict] = [:]

  package init(_ request: PushRequest, currentByteCountMax: Int, storedAt: Int64) {
    client = request.client
    claim = CursorClaim(epoch: request.epoch, cursor: request.cursor)
    mutations = request.mutations
    digests = request.mutations.map(ContentDigest.init(of:))
    // By `order`, equal ones as listed.
    judgingOrder = request.mutations.indices.sorted { left, right in
      let (first, second) = (request.mutations[left].order, request.mutations[right].order)
      return first == second ? left < right : first < second
    }
    self.currentByteCountMax = currentByteCountMax
    self.storedAt = storedAt
  }
}

/// Leaves payloads out of an answer once those in it reach a limit.
package struct PayloadBudget: Sendable {
  private var byteCount = 0
  private let byteCountMax: Int

  package init(byteCountMax: Int) { self.byteCountMax = byteCountMax }

  /// Whether there is room for another payload.
  package var hasRoom: Bool { byteCount < byteCountMax }

  /// Counts a payload that went into the answer.
  package mutating func take(_ payloadByteCount: Int) { byteCount += payloadByteCount }
}
