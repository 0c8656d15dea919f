import Foundation
import HubProtocol
import ProfileStore

/// What `profilectl show --json` prints: the members of a list's profile, and more.
struct DetailsJSON: Encodable {
  private struct Extra: Encodable {
    var directory: String
    var files: [File]
    @OrNull var registry: Registry?
    @OrNull var contents: ContentsJSON?
  }

  private struct File: Encodable {
    var name: String
    var bytes: Int
  }

  private struct Registry: Encodable {
    @OrNull var state: String?
    @OrNull var intent: String?
  }

  private let profile: ProfileJSON
  private let extra: Extra

  init(_ details: ProfileDetails, revealsAccounts: Bool) {
    profile = ProfileJSON(details.profile, revealsAccounts: revealsAccounts)
    extra = Extra(
      directory: details.directory,
      files: details.files.map { File(name: $0.name, bytes: $0.byteCount) },
      registry: details.registry.map { Registry(state: $0.state, intent: $0.intent) },
      contents: details.contents.map { ContentsJSON($0, revealsAccounts: revealsAccounts) })
  }

  func encode(to encoder: any Encoder) throws {
    // Both into one object.
    try profile.encode(to: encoder)
    try extra.encode(to: encoder)
  }
}

/// What lies in an area.
struct ContentsJSON: Encodable {
  private struct Scan: Encodable {
    var kind: String
    var phase: String
    var epoch: String
    var until: UInt64
    var place: UInt64
  }

  private struct Lineage: Encodable {
    var epoch: String
    var forkedAt: UInt64
  }

  private struct Limits: Encodable {
    var payloadBytes: Int
    var pullBytes: Int
    var pullRecords: Int
    var pushBytes: Int
    var pushMutations: Int
    var waitSeconds: Int

    init(_ limits: HubLimits) {
      payloadBytes = limits.payloadBytes
      pullBytes = limits.pullBytes
      pullRecords = limits.pullRecords
      pushBytes = limits.pushBytes
      pushMutations = limits.pushMutations
      waitSeconds = limits.waitSeconds
    }
  }

  private struct Adoption: Encodable {
    var adoption: String
    var source: String
    var adoptedAt: Date
    var records: Int
    var mutations: Int
  }

  private struct Adopter: Encodable {
    var hub: String
    @OrNull var account: String?
    var accountShort: String
    var adoption: String
  }

  private struct TableSize: Encodable {
    var name: String
    var entries: Int
  }

  private let isClientRegistered: Bool
  private let isCopy: Bool
  private let isErasedAtHub: Bool
  @OrNull private var highWater: CursorJSON?
  private let position: UInt64
  private let hasFinishedScan: Bool
  @OrNull private var scan: Scan?
  private let lineage: [Lineage]
  @OrNull private var hubLimits: Limits?
  private let tombstones: Int
  private let parked: [String: Int]
  private let acknowledged: Int
  private let lostAtHub: Int
  private let besideEdits: Int
  private let settled: Int
  private let adoptions: [Adoption]
  @OrNull private var adopter: Adopter?
  private let tables: [TableSize]
  private let mapBytes: Int
  private let readerSlots: Int
  private let readerSlotsMax: Int
  private let lastTransaction: UInt64

  init(_ contents: AreaContents, revealsAccounts: Bool) {
    isClientRegistered = contents.isClientRegistered
    isCopy = contents.isCopy
    isErasedAtHub = contents.isErasedAtHub
    _highWater = OrNull(wrappedValue: contents.highWater.map(CursorJSON.init))
    position = contents.position
    hasFinishedScan = contents.hasFinishedScan
    _scan = OrNull(
      wrappedValue: contents.scan.map {
        Scan(
          kind: "\($0.kind)", phase: "\($0.phase)", epoch: $0.epoch.wireText, until: $0.until,
          place: $0.place)
      })
    lineage = contents.lineage.map { Lineage(epoch: $0.epoch.wireText, forkedAt: $0.forkedAt) }
    _hubLimits = OrNull(wrappedValue: contents.hubLimits.map(Limits.init))
    tombstones = contents.tombstones
    parked = Dictionary(
      uniqueKeysWithValues: Parked.Reason.allCases.map { ("\($0)", contents.parked[$0] ?? 0) })
    acknowledged = contents.acknowledged
    lostAtHub = contents.lostAtHub
    besideEdits = contents.besideEdits
    settled = contents.settled
    adoptions = contents.adoptions.map {
      Adoption(
        adoption: $0.id.wireText, source: $0.receipt.source.description,
        adoptedAt: $0.receipt.adoptedAt, records: $0.receipt.records,
        mutations: $0.receipt.mutations)
    }
    _adopter = OrNull(
      wrappedValue: contents.adopter.map {
        let account = AccountName($0.account, isRevealed: revealsAccounts).json
        return Adopter(
          hub: account.hub, account: account.account, accountShort: account.accountShort,
          adoption: $0.id.wireText)
      })
    tables = contents.tables.map { TableSize(name: $0.name, entries: $0.entryCount) }
    mapBytes = contents.mapByteCount
    readerSlots = contents.readerSlotCount
    readerSlotsMax = contents.readerCountMax
    lastTransaction = contents.lastTransaction
  }
}

extension Parked.Reason {
  /// As a person reads it.
  var text: String { self == .tooLarge ? "too large" : "\(self)" }
}
