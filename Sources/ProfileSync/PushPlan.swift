import Foundation
package import HubProtocol
package import ProfileStore

/// How large the next batch is, and what becomes of one that the hub does not take. A value.
package struct PushPlan: Hashable, Sendable {
  /// What to do after an answer that is not for use.
  package enum Decision: Hashable, Sendable {
    /// Send again with the smaller limit.
    case again
    /// Ask with an empty push whether the hub takes anything at all; if so, park the one.
    case parkIfEmptyPushIsAccepted(Parked.Reason)
    /// Not the push's to resolve.
    case giveUp
  }

  package private(set) var countMax: Int
  package let byteCountMax: Int
  private let countCeiling: Int

  package init(limits: HubLimits) {
    countCeiling = max(1, min(limits.pushMutations, 500))
    countMax = countCeiling
    // Headers, keys and base64 take their share; a larger batch is halved when the hub says so.
    byteCountMax = max(
      1, min(limits.pushBytes / 4 * 3 - 4_096, SyncLimits.pushByteCountMax))
  }

  /// Whether a batch may be as large as any.
  package var isFull: Bool { countMax == countCeiling }

  /// After a batch was taken: grows back towards the ceiling.
  package mutating func accepted() {
    countMax = min(countCeiling, countMax * 2)
  }

  /// After a batch of `count` was not taken.
  package mutating func refused(_ action: AnswerAction, count: Int) -> Decision {
    switch action {
    case .halve(let isFromHub):
      guard count > 1 else {
        return isFromHub && count == 1 ? .parkIfEmptyPushIsAccepted(.tooLarge) : .giveUp
      }
    case .bisect(let namesMutation):
      guard count > 1 else {
        return namesMutation && count == 1 ? .parkIfEmptyPushIsAccepted(.rejected) : .giveUp
      }
    default: return .giveUp
    }
    halve(count)
    return .again
  }

  /// The next batch is half as large as one of `count`.
  package mutating func halve(_ count: Int) { countMax = max(1, count / 2) }

  /// The records that the hub wants later: those of which the first mutation that it has not taken is
  /// deferred. One that waits behind a conflict or a refusal goes when that is decided, and not after a
  /// pause.
  package static func putOff(_ items: [PushItem], _ statuses: [MutationStatus]) -> Set<RecordID> {
    var stopped: Set<RecordID> = []
    var found: Set<RecordID> = []
    for (item, status) in zip(items, statuses) where status != .applied && status != .duplicate {
      guard stopped.insert(item.record).inserted, status == .deferred else { continue }
      found.insert(item.record)
    }
    return found
  }

  /// What one verdict means for its mutation; nil: it stays and is sent in a later pass.
  /// - Precondition: ``PushCheck`` has let the answer through.
  package static func settlement(of result: MutationResult) -> Settlement? {
    switch result.status {
    case .applied, .duplicate: result.version.map { .acknowledged(version: $0) }
    case .conflict:
      .parked(Parked(reason: .conflict, code: result.code, current: hubVersion(result.current)))
    case .rejected:
      .parked(Parked(reason: .rejected, code: result.code, current: hubVersion(result.current)))
    case .deferred: nil
    }
  }

  private static func hubVersion(_ record: WireRecord?) -> HubVersion? {
    record.map {
      HubVersion(
        version: $0.version, isDeleted: $0.deleted, payload: $0.payload,
        isPayloadOmitted: $0.isPayloadOmitted)
    }
  }
}
