package import Foundation
package import HubProtocol

/// The newest version of a record, without its payload.
package struct RecordHead: Hashable, Sendable {
  package var version: UInt64
  /// A tombstone.
  package var deleted: Bool

  package init(version: UInt64, deleted: Bool) {
    self.version = version
    self.deleted = deleted
  }
}

/// What the hub keeps of an applied mutation.
package struct StoredResult: Hashable, Sendable {
  package var version: UInt64
  package var digest: ContentDigest

  package init(version: UInt64, digest: ContentDigest) {
    self.version = version
    self.digest = digest
  }
}

/// What an applied mutation became that another one is based on.
package struct BaseResult: Hashable, Sendable {
  package var version: UInt64
  package var id: RecordID

  package init(version: UInt64, id: RecordID) {
    self.version = version
    self.id = id
  }
}

/// What the store knows about one mutation when it is judged; earlier ones of its request count as
/// applied.
package struct MutationFacts: Hashable, Sendable {
  /// The result stored under the mutation's own UUID.
  package var stored: StoredResult?
  /// The newest version of the mutation's record.
  package var newest: RecordHead?
  /// What the mutation became that this one is based on; nil if it is not stored.
  package var base: BaseResult?

  package init(
    stored: StoredResult? = nil, newest: RecordHead? = nil, base: BaseResult? = nil
  ) {
    self.stored = stored
    self.newest = newest
    self.base = base
  }
}

/// What is judged: everything of a mutation that a verdict depends on beside its content's digest.
package protocol JudgedMutation {
  var mutation: UUID { get }
  var base: WireBase? { get }
  var firstSent: UInt64 { get }
  /// The record that it changes.
  var id: RecordID { get }
}

extension WireMutation: JudgedMutation {}

/// What the hub decides on one mutation.
package enum MutationVerdict: Hashable, Sendable {
  /// To be stored with this version.
  case applied(version: UInt64)
  case duplicate(version: UInt64)
  case conflict(detail: String)
  case rejected(HubCode, detail: String)
  case blocked(by: UUID)
  case busy
}

/// Judges the mutations of one push, one after the other in their order.
///
/// A value without storage or clock: the store gives the facts, applies what it is told to apply, and
/// asks about the next one. The verdicts come in the protocol's order: the stored result,
/// `blocked_by`, the floor, the base.
package struct MutationJudge: Sendable {
  /// The last sequence given, with those of this push.
  package private(set) var highWater: UInt64
  private let idempotencyFloor: UInt64
  /// Records of which an earlier mutation of this push was not applied, and which one.
  private var blockers: [RecordID: UUID] = [:]

  package init(state: AccountState) {
    highWater = state.highWater
    idempotencyFloor = state.idempotencyFloor
  }

  /// Decides on the next mutation.
  package mutating func judge(
    _ mutation: some JudgedMutation, digest: ContentDigest, facts: MutationFacts
  ) -> MutationVerdict {
    let verdict = decide(mutation, digest: digest, facts: facts)
    switch verdict {
    case .applied(let version): highWater = version
    case .duplicate: break
    case .conflict, .rejected, .blocked, .busy: block(mutation)
    }
    return verdict
  }

  /// Notes that a mutation is not applied, without judging it.
  package mutating func block(_ mutation: some JudgedMutation) {
    if blockers[mutation.id] == nil { blockers[mutation.id] = mutation.mutation }
  }

  private func decide(
    _ mutation: some JudgedMutation, digest: ContentDigest, facts: MutationFacts
  ) -> MutationVerdict {
    if let stored = facts.stored {
      return stored.digest == digest
        ? .duplicate(version: stored.version)
        : .rejected(.mutationReused, detail: "this mutation was applied with another content")
    }
    if !blockers.isEmpty, let blocker = blockers[mutation.id] { return .blocked(by: blocker) }
    if mutation.firstSent < idempotencyFloor {
      return .conflict(detail: "the hub no longer knows whether this mutation was applied")
    }
    if let refusal = complaint(aboutBaseOf: mutation, facts: facts) { return refusal }
    guard highWater < AccountState.sequenceMax else { return .busy }
    return .applied(version: highWater + 1)
  }

  private func complaint(
    aboutBaseOf mutation: some JudgedMutation, facts: MutationFacts
  ) -> MutationVerdict? {
    switch mutation.base {
    case nil: return nil
    case .version(0):
      guard let newest = facts.newest, !newest.deleted else { return nil }
      return .conflict(detail: "the record exists")
    case .version(let version):
      return facts.newest?.version == version
        ? nil : .conflict(detail: "the record has another version")
    case .mutation(let base):
      guard let result = facts.base else { return .blocked(by: base) }
      guard result.id == mutation.id else {
        return .rejected(.badBase, detail: "the base is a mutation of another record")
      }
      return facts.newest?.version == result.version
        ? nil : .conflict(detail: "the record has changed since the base")
    }
  }
}
