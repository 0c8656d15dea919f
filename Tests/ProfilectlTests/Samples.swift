import Foundation
import HubProtocol
import ProfileStore

@testable import profilectl

/// Profiles as values, with every case that is shown differently.
enum Samples {
  private static func area(_ digits: String) -> AreaID {
    guard let area = AreaID(digits + String(repeating: "0", count: 32 - digits.count)) else {
      preconditionFailure("\(digits) are no digits of an area's ID")
    }
    return area
  }

  private static func account(_ id: String) throws -> VerifiedAccount {
    VerifiedAccount(hub: TestStore.hub, id: try AccountID(id), proof: .area)
  }

  /// The owner of ``owned()``.
  static let owner = "alice@example.org"

  static func owned() throws -> ProfileInfo {
    var profile = ProfileInfo(area: area("1f3a9c07"), state: .owned)
    profile.owner = try account(owner)
    profile.records = 13_000
    profile.knownRecords = 12_990
    profile.pending = PendingSummary(
      count: 1_012, parked: 12, payloadByteCount: 3_482, oldest: TestStore.now)
    profile.cursor = Cursor(epoch: TestStore.epoch, sequence: 29_001)
    profile.usedByteCount = 7 << 20
    profile.createdAt = TestStore.now
    profile.lastPass = PassOutcome(
      endedAt: TestStore.now + 60, isComplete: false, message: "the hub is not there")
    profile.client = TestStore.uuid("33333333-3333-4333-8333-333333333333")
    return profile
  }

  static func unowned() -> ProfileInfo {
    var profile = ProfileInfo(area: area("1f3a9c08"), state: .unowned)
    profile.records = 1
    profile.pending = PendingSummary(
      count: 1, parked: 0, payloadByteCount: 2, oldest: TestStore.now)
    profile.usedByteCount = 57_344
    profile.createdAt = TestStore.now
    return profile
  }

  static func setAside() -> ProfileInfo {
    var profile = unowned()
    profile.state = .setAside
    return profile
  }

  static func unreadable() -> ProfileInfo {
    var profile = ProfileInfo(area: area("1f3a9c07ff"), state: .unreadable)
    profile.failure = StoreError(.damaged, "the file is cut\nshort")
    return profile
  }

  static func erased() -> ProfileInfo {
    var profile = ProfileInfo(area: area("ee"), state: .erased)
    profile.usedByteCount = 57_344
    profile.createdAt = TestStore.now
    return profile
  }

  static func survey() throws -> StoreSurvey {
    StoreSurvey(profiles: [try owned(), setAside(), unreadable(), erased()])
  }

  /// All of ``owned()``.
  static func details() throws -> ProfileDetails {
    var details = ProfileDetails(
      profile: try owned(), directory: "/store/areas/1f/1f3a9c07000000000000000000000000")
    details.files = [
      .init(name: "data.mdb", byteCount: 7 << 20), .init(name: "lock.mdb", byteCount: 65_664),
    ]
    details.registry = .init(state: "owned", intent: "bind")
    details.contents = try contents()
    return details
  }

  private static func contents() throws -> AreaContents {
    var contents = AreaContents()
    contents.isClientRegistered = true
    contents.isCopy = true
    contents.isErasedAtHub = true
    contents.highWater = Cursor(epoch: TestStore.epoch, sequence: 30_000)
    contents.position = 58
    contents.scan = ScanState(
      id: TestStore.epoch, kind: .expired, epoch: TestStore.epoch, until: 30_000, place: 500)
    contents.lineage = [
      LineageEntry(epoch: TestStore.uuid("44444444-4444-4444-8444-444444444444"), forkedAt: 12)
    ]
    contents.hubLimits = HubLimits()
    contents.tombstones = 990
    contents.parked = [.conflict: 11, .tooLarge: 1]
    contents.acknowledged = 1_000
    contents.lostAtHub = 2
    contents.besideEdits = 3
    contents.settled = 4
    contents.adoptions = [
      .init(
        id: TestStore.uuid("55555555-5555-4555-8555-555555555555"),
        receipt: AdoptionReceipt(
          source: area("1f3a9c08"), adoptedAt: TestStore.now, mutations: 6, records: 5))
    ]
    contents.adopter = .init(
      account: try account("bob@example.org"),
      id: TestStore.uuid("66666666-6666-4666-8666-666666666666"))
    contents.tables = [
      .init(name: "app.bookmarks", entryCount: 7), .init(name: "outbox", entryCount: 1_012),
    ]
    contents.mapByteCount = 64 << 20
    contents.readerSlotCount = 2
    contents.readerCountMax = 1_024
    contents.lastTransaction = 12_345
    return contents
  }

  /// An outbox with an entry of every state, from a real store.
  static func outbox() async throws -> OutboxListing {
    let store = try TestStore()
    let profile = try await OutboxTests.fill(store)
    let copy = try store.copied()
    let inspector = try StoreInspector(directory: copy.directory)
    var maker = OutboxRow.Maker(keepsPayloads: true)
    return OutboxListing(
      profile: try inspector.profile(profile.id),
      rows: try inspector.outbox(profile.id) { maker.row($0) }, isTruncated: false,
      revealsAccounts: true)
  }
}
