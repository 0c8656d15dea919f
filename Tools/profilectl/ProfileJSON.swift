import Foundation
import HubProtocol
import ProfileStore

/// What `profilectl list --json` prints.
struct ListJSON: Encodable {
  private let profiles: [ProfileJSON]
  @OrNull private var registryProblem: String?

  init(_ survey: StoreSurvey, revealsAccounts: Bool) {
    profiles = survey.profiles.map { ProfileJSON($0, revealsAccounts: revealsAccounts) }
    _registryProblem = OrNull(wrappedValue: survey.registryFailure?.description)
  }
}

/// One profile, as `list` and `show` print it.
struct ProfileJSON: Encodable {
  struct Pending: Encodable {
    var count: Int
    var parked: Int
    var payloadBytes: Int
    @OrNull var oldest: Date?
  }

  struct Pass: Encodable {
    var endedAt: Date
    var isComplete: Bool
    var message: String
  }

  private var profile: String
  private var state: String
  @OrNull private var owner: AccountJSON?
  @OrNull private var records: Int?
  @OrNull private var knownRecords: Int?
  @OrNull private var pending: Pending?
  @OrNull private var cursor: CursorJSON?
  @OrNull private var usedBytes: Int?
  @OrNull private var createdAt: Date?
  @OrNull private var lastPass: Pass?
  @OrNull private var client: String?
  @OrNull private var problem: String?

  init(_ info: ProfileInfo, revealsAccounts: Bool) {
    profile = info.area.description
    state = info.state.rawValue
    usedBytes = info.usedByteCount > 0 ? info.usedByteCount : nil
    createdAt = info.createdAt
    problem = info.problem
    guard info.state.isReadable else { return }
    owner = info.owner.map { AccountName($0, isRevealed: revealsAccounts).json }
    records = info.records
    knownRecords = info.knownRecords
    pending = Pending(
      count: info.pending.count, parked: info.pending.parked,
      payloadBytes: info.pending.payloadByteCount, oldest: info.pending.oldest)
    cursor = info.cursor.map(CursorJSON.init)
    lastPass = info.lastPass.map {
      Pass(endedAt: $0.endedAt, isComplete: $0.isComplete, message: $0.message)
    }
    client = info.client?.wireText
  }
}

/// A place in an account's history.
struct CursorJSON: Encodable {
  private let epoch: String
  private let sequence: UInt64

  init(_ cursor: Cursor) {
    epoch = cursor.epoch.wireText
    sequence = cursor.sequence
  }
}
