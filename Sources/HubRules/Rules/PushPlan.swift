package import Foundation
package import HubProtocol

/// A push made ready for the storing transaction: what needs no store is decided outside of it.
package struct PushPlan: Sendable {
  package let claim: CursorClaim
  /// What was pushed, in the body in which it came.
  package let push: PushOutline
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

  package init(
    _ push: PushOutline, digests: some ContentDigester, currentByteCountMax: Int, storedAt: Int64
  ) {
    self.push = push
    claim = CursorClaim(epoch: push.epoch, cursor: push.cursor)
    self.digests = digests.digests(of: push)
    judgingOrder = Self.judgingOrder(of: push.mutations)
    self.currentByteCountMax = currentByteCountMax
    self.storedAt = storedAt
  }

  /// A mutation by its place in the list.
  package func mutation(_ place: Int) -> PushedMutation {
    PushedMutation(push: push, outline: push.mutations[place])
  }

  /// By `order`, equal ones as listed.
  private static func judgingOrder(of mutations: [PushOutline.Mutation]) -> [Int] {
    let places = Array(mutations.indices)
    // A client lists them so.
    if zip(mutations, mutations.dropFirst()).allSatisfy({ $0.order <= $1.order }) { return places }
    return places.sorted { left, right in
      let (first, second) = (mutations[left].order, mutations[right].order)
      return first == second ? left < right : first < second
    }
  }
}

/// One mutation of a push, in the body in which it came.
package struct PushedMutation: JudgedMutation {
  package let push: PushOutline
  package let outline: PushOutline.Mutation

  package var mutation: UUID { outline.mutation }
  package var base: WireBase? { outline.base }
  package var firstSent: UInt64 { outline.firstSent }
  /// Made when it is asked for.
  package var id: RecordID { push.record(of: outline) }
}

/// The verdicts on a push, in list order.
package struct PushVerdicts: Sendable {
  package let mutations: [PushOutline.Mutation]
  package let verdicts: [MutationVerdict]
  /// The newest record of those whose answer names it, by place; nil where there is none.
  package var current: [Int: WireRecord] = [:]

  /// - Parameter verdicts: one per mutation.
  package init(on mutations: [PushOutline.Mutation], _ verdicts: [MutationVerdict]) {
    self.mutations = mutations
    self.verdicts = verdicts
  }

  /// Whether something took effect now.
  package var hasApplied: Bool { verdicts.contains(where: \.isApplied) }

  /// The results as the wire has them.
  package var results: [MutationResult] { verdicts.indices.map(result) }

  /// The same in CBOR.
  package func encoded() -> EncodedResults {
    var encoded = EncodedResults(countHint: verdicts.count)
    for (place, verdict) in verdicts.enumerated() {
      switch verdict {
      case .applied(let version):
        encoded.append(
          mutation: mutations[place].mutation, isDuplicate: false, version: version)
      case .duplicate(let version):
        encoded.append(mutation: mutations[place].mutation, isDuplicate: true, version: version)
      case .conflict, .rejected, .blocked, .busy: encoded.append(result(place))
      }
    }
    return encoded
  }

  private func result(_ place: Int) -> MutationResult {
    var result = verdicts[place].result(for: mutations[place].mutation)
    result.current = current[place]
    return result
  }
}

extension MutationVerdict {
  var isApplied: Bool {
    if case .applied = self { true } else { false }
  }

  /// Whether the answer names the newest record.
  package var carriesCurrent: Bool {
    switch self {
    case .conflict, .rejected: true
    case .applied, .duplicate, .blocked, .busy: false
    }
  }

  /// The verdict as the wire has it, without `current`.
  fileprivate func result(for mutation: UUID) -> MutationResult {
    switch self {
    case .applied(let version):
      MutationResult(mutation: mutation, status: .applied, version: version)
    case .duplicate(let version):
      MutationResult(mutation: mutation, status: .duplicate, version: version)
    case .conflict(let detail):
      MutationResult(mutation: mutation, status: .conflict, detail: detail)
    case .rejected(let code, let detail):
      MutationResult(mutation: mutation, status: .rejected, code: code.rawValue, detail: detail)
    case .blocked(let blocker):
      MutationResult(
        mutation: mutation, status: .deferred, code: HubCode.blockedBy.rawValue,
        detail: blocker.uuidString.lowercased())
    case .busy:
      MutationResult(mutation: mutation, status: .deferred, code: HubCode.busy.rawValue)
    }
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
