public import HubProtocol

/// A misbehaviour of a hub, or of the way to it, by name.
///
/// The same names are the values of the header `Holdfast-Fault` of a real hub that has faults on demand
/// enabled; `unreachable`, `lost-request` and `outage` are of the way there, and known here only.
/// (Protocol section *Faults on demand*.)
public enum HubFault: Hashable, Sendable {
  /// The request is never sent: nobody listens there.
  case unreachable
  /// The request gets lost on its way: the hub does nothing, and no answer comes.
  case lostRequest
  /// The hub answers 503 and does nothing.
  case outage
  /// Everything is done, and the connection ends without an answer.
  case dropAfterCommit
  /// The answer comes so many milliseconds late.
  case delay(milliseconds: Int)
  /// The connection ends within the body, after so many bytes; nil: in its middle.
  case cutBody(byteCount: Int? = nil)
  /// The body names another account.
  case otherAccountBody
  /// `Holdfast-Account` names another account.
  case otherAccountHeader
  /// The page with this number, from 1, is refused as `token_expired`.
  case unauthorizedAtPage(Int)
  /// So many requests are `rate_limited`, then none.
  case throttle(count: Int)
  /// The account takes a new epoch, once; nil: it forks at the high water.
  case newEpoch(forkedAt: UInt64? = nil)
  /// Every second page is the one before it, byte for byte.
  case repeatPage
  /// The records of a page have versions as low as the page allows.
  case olderVersions
  /// A page says that there is more, and its cursor stands.
  case cursorStands
  /// A page says that there is more, and its cursor goes back.
  case cursorBack
  /// There is always more.
  case endlessMore
  /// The first mutations, in list order, get these verdicts and are not applied.
  case verdicts([MutationStatus])
  /// Tombstones below the high water are purged, once.
  case purgedTombstones
  /// An event stream says hello, and nothing of any change.
  case silentEvents

  /// The names of all faults, without values.
  public static let names: [String] = [
    "unreachable", "lost-request", "outage", "drop-after-commit", "delay", "cut-body",
    "other-account-body", "other-account-header", "unauthorized-at-page", "throttle", "new-epoch",
    "repeat-page", "older-versions", "cursor-stands", "cursor-back", "endless-more", "verdicts",
    "purged-tombstones", "silent-events",
  ]

  /// Reads `name` or `name=value`, as ``description`` writes it; nil for another text.
  public init?(_ text: String) {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    let value = parts.count == 2 ? parts[1] : nil
    let number = value.flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
    switch (parts.first ?? "", value, number) {
    case ("unreachable", nil, _): self = .unreachable
    case ("lost-request", nil, _): self = .lostRequest
    case ("outage", nil, _): self = .outage
    case ("drop-after-commit", nil, _): self = .dropAfterCommit
    case ("delay", _, let number?): self = .delay(milliseconds: number)
    case ("cut-body", nil, _): self = .cutBody()
    case ("cut-body", _, let number?): self = .cutBody(byteCount: number)
    case ("other-account-body", nil, _): self = .otherAccountBody
    case ("other-account-header", nil, _): self = .otherAccountHeader
    case ("unauthorized-at-page", _, let number?): self = .unauthorizedAtPage(number)
    case ("throttle", _, let number?): self = .throttle(count: number)
    case ("new-epoch", nil, _): self = .newEpoch()
    case ("new-epoch", _, let number?): self = .newEpoch(forkedAt: UInt64(number))
    case ("repeat-page", nil, _): self = .repeatPage
    case ("older-versions", nil, _): self = .olderVersions
    case ("cursor-stands", nil, _): self = .cursorStands
    case ("cursor-back", nil, _): self = .cursorBack
    case ("endless-more", nil, _): self = .endlessMore
    case ("purged-tombstones", nil, _): self = .purgedTombstones
    case ("silent-events", nil, _): self = .silentEvents
    case ("verdicts", let value?, _):
      let statuses = value.split(separator: ",").map { MutationStatus(rawValue: String($0)) }
      guard !statuses.contains(nil) else { return nil }
      self = .verdicts(statuses.compactMap { $0 })
    default: return nil
    }
  }

  /// The name, without a value.
  var name: String { String(description.prefix { $0 != "=" }) }

  /// What the hub itself does, as the header's value; nil for what happens on the way.
  var header: String? {
    switch self {
    case .unreachable, .lostRequest, .outage: nil
    default: description
    }
  }
}

extension HubFault: CustomStringConvertible {
  /// `name` or `name=value`.
  public var description: String {
    switch self {
    case .unreachable: "unreachable"
    case .lostRequest: "lost-request"
    case .outage: "outage"
    case .dropAfterCommit: "drop-after-commit"
    case .delay(let milliseconds): "delay=\(milliseconds)"
    case .cutBody(let byteCount): byteCount.map { "cut-body=\($0)" } ?? "cut-body"
    case .otherAccountBody: "other-account-body"
    case .otherAccountHeader: "other-account-header"
    case .unauthorizedAtPage(let page): "unauthorized-at-page=\(page)"
    case .throttle(let count): "throttle=\(count)"
    case .newEpoch(let forkedAt): forkedAt.map { "new-epoch=\($0)" } ?? "new-epoch"
    case .repeatPage: "repeat-page"
    case .olderVersions: "older-versions"
    case .cursorStands: "cursor-stands"
    case .cursorBack: "cursor-back"
    case .endlessMore: "endless-more"
    case .verdicts(let statuses): "verdicts=\(statuses.map(\.rawValue).joined(separator: ","))"
    case .purgedTombstones: "purged-tombstones"
    case .silentEvents: "silent-events"
    }
  }
}
