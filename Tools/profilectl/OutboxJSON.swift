import Foundation
import HubProtocol
import ProfileStore

/// What `profilectl outbox --json` prints.
struct OutboxJSON: Encodable {
  private let profile: String
  private let state: String
  private let entries: [Entry]
  private let isTruncated: Bool

  init(_ listing: OutboxListing) {
    profile = listing.profile.area.description
    state = listing.profile.state.rawValue
    entries = listing.rows.map { Entry($0, revealsAccounts: listing.revealsAccounts) }
    isTruncated = listing.isTruncated
  }

  private struct Base: Encodable {
    var kind: String
    @OrNull var version: UInt64?
    @OrNull var mutation: String?

    init(_ base: Mutation.Base) {
      switch base {
      case .mustNotExist: kind = "mustNotExist"
      case .version(let number):
        kind = "version"
        version = number
      case .mutation(let id):
        kind = "mutation"
        mutation = id.wireText
      }
    }
  }

  private struct Current: Encodable {
    var version: UInt64
    var isDeleted: Bool
    var isPayloadOmitted: Bool
    @OrNull var payload: Data?
  }

  private struct ParkedJSON: Encodable {
    var reason: String
    @OrNull var code: String?
    @OrNull var current: Current?

    init(_ parked: Parked) {
      reason = "\(parked.reason)"
      code = parked.code
      current = parked.current.map {
        Current(
          version: $0.version, isDeleted: $0.isDeleted, isPayloadOmitted: $0.isPayloadOmitted,
          payload: $0.payload)
      }
    }
  }

  private struct HeldJSON: Encodable {
    var attempts: Int
    var nextTry: Date
  }

  private struct Entry: Encodable {
    private let order: UInt64
    private let mutation: String
    private let isCallerGiven: Bool
    private let kind: String
    private let record: String
    @OrNull private var base: Base?
    @OrNull private var account: AccountJSON?
    private let enqueuedAt: Date
    @OrNull private var firstSent: UInt64?
    private let state: String
    @OrNull private var held: HeldJSON?
    @OrNull private var parked: ParkedJSON?
    @OrNull private var payloadBytes: Int?
    @OrNull private var payload: Data?

    init(_ row: OutboxRow, revealsAccounts: Bool) {
      let entry = row.entry
      order = entry.order
      mutation = entry.mutation.wireText
      isCallerGiven = entry.isCallerGiven
      kind = entry.kind.rawValue
      record = entry.record.text
      _base = OrNull(wrappedValue: entry.base.map(Base.init))
      _account = OrNull(
        wrappedValue: entry.account.map { AccountName($0, isRevealed: revealsAccounts).json })
      enqueuedAt = entry.enqueuedAt
      _firstSent = OrNull(wrappedValue: entry.firstSent)
      state = row.state.rawValue
      _held = OrNull(
        wrappedValue: entry.held.map { HeldJSON(attempts: $0.attempts, nextTry: $0.nextTry) })
      _parked = OrNull(wrappedValue: entry.parked.map(ParkedJSON.init))
      _payloadBytes = OrNull(wrappedValue: row.payloadByteCount)
      _payload = OrNull(wrappedValue: entry.payload)
    }
  }
}
