import Foundation
package import HubProtocol

/// One misbehaviour that a test asks for. (protocol.md, *Faults on demand*.)
package enum Fault: Hashable, Sendable {
  /// Everything is done, and the connection ends without an answer.
  case dropAfterCommit
  /// The answer comes so many milliseconds late.
  case delay(milliseconds: Int)
  /// The connection ends within the body; nil means in its middle.
  case cutBody(byteCount: Int?)
  /// The body names another account.
  case otherAccountBody
  /// `Holdfast-Account` names another account.
  case otherAccountHeader
  /// The page with this number, from 1, is `token_expired`.
  case unauthorizedAtPage(Int)
  /// So many requests are `rate_limited`, then none.
  case throttle(count: Int)
  /// The account takes a new epoch, once; nil forks at the high water.
  case newEpoch(forkedAt: UInt64?)
  /// Every second page is the one before it, byte for byte.
  case repeatPage
  /// The records of a page have versions as low as the page allows.
  case olderVersions
  /// `next` is `after`, and there is more.
  case cursorStands
  /// `next` lies below `after`, and there is more.
  case cursorBack
  /// There is always more.
  case endlessMore
  /// The first mutations, in list order, get these verdicts and are not applied.
  case verdicts([MutationStatus])
  /// Tombstones below the high water are purged, once.
  case purgedTombstones
  /// An event stream says hello, and nothing of any change.
  case silentEvents
}

/// What `Holdfast-Fault` asks for, in its order.
package struct FaultPlan: Sendable {
  package let faults: [Fault]
  /// The header's value, under which the counting faults count.
  let text: String

  /// Reads `name[=value][; name[=value]]…`.
  /// - Throws: ``Refusal`` `bad_request` for an unknown name, or a value that it cannot have.
  package init(header: String?) throws(Refusal) {
    text = header ?? ""
    var faults: [Fault] = []
    for part in text.split(separator: ";") {
      faults.append(try FaultPlan.fault(part.filter { $0 != " " && $0 != "\t" }))
    }
    self.faults = faults
  }

  private static func fault(_ text: String) throws(Refusal) -> Fault {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    let name = parts.first ?? ""
    let value = parts.count == 2 ? parts[1] : nil
    let number = value.flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
    switch (name, value, number) {
    case ("drop-after-commit", nil, _): return .dropAfterCommit
    case ("delay", _, let number?): return .delay(milliseconds: number)
    case ("cut-body", nil, _): return .cutBody(byteCount: nil)
    case ("cut-body", _, let number?): return .cutBody(byteCount: number)
    case ("other-account-body", nil, _): return .otherAccountBody
    case ("other-account-header", nil, _): return .otherAccountHeader
    case ("unauthorized-at-page", _, let number?): return .unauthorizedAtPage(number)
    case ("throttle", _, let number?): return .throttle(count: number)
    case ("new-epoch", nil, _): return .newEpoch(forkedAt: nil)
    case ("new-epoch", _, let number?): return .newEpoch(forkedAt: UInt64(number))
    case ("repeat-page", nil, _): return .repeatPage
    case ("older-versions", nil, _): return .olderVersions
    case ("cursor-stands", nil, _): return .cursorStands
    case ("cursor-back", nil, _): return .cursorBack
    case ("endless-more", nil, _): return .endlessMore
    case ("purged-tombstones", nil, _): return .purgedTombstones
    case ("silent-events", nil, _): return .silentEvents
    case ("verdicts", let value?, _):
      let statuses = value.split(separator: ",").map { MutationStatus(rawValue: String($0)) }
      guard !statuses.contains(nil) else { break }
      return .verdicts(statuses.compactMap { $0 })
    default: break
    }
    throw Refusal(.badRequest, "the fault is not known, or cannot have this value")
  }

  /// What the fault `verdicts` imposes, by place. `applied` and `duplicate` leave the rules to
  /// decide: neither can be given without a version.
  func imposedVerdicts(on count: Int) -> [Int: MutationVerdict] {
    var imposed: [Int: MutationVerdict] = [:]
    for case .verdicts(let statuses) in faults {
      for (place, status) in statuses.enumerated() where place < count {
        switch status {
        case .applied, .duplicate: break
        case .conflict: imposed[place] = .conflict(detail: "a fault on demand")
        case .rejected: imposed[place] = .rejected(.badBase, detail: "a fault on demand")
        case .deferred: imposed[place] = .busy
        }
      }
    }
    return imposed
  }
}
