import Foundation
import ProfileStore
import ToolSupport

/// The store that a command looks at; what is damaged inside is unreadable, and ends nothing.
struct StoreReader {
  private let store: StoreInspector
  private static let registry = "registry"

  /// Why the registry cannot be read.
  var registryFailure: StoreError? { store.registryFailure }

  init(_ invocation: Invocation) throws {
    let directory = URL(
      filePath: invocation[ProfilectlTool.store], directoryHint: .isDirectory)
    let failure = CrashGuard.crashed.contains(Self.registry) ? StoreError.damagedInside : nil
    store = try CrashGuard.reading(Self.registry) {
      try StoreInspector(directory: directory, registryFailure: failure)
    }
  }

  /// Every profile.
  func survey() throws -> StoreSurvey {
    var survey = StoreSurvey(profiles: [], registryFailure: registryFailure)
    for area in try store.areas() {
      do {
        survey.profiles.append(try profile(area))
      } catch let error as StoreError where error.code == .unknownArea {
        // It was erased while we looked.
      }
    }
    return survey
  }

  /// The profile that a person named.
  func profile(named digits: String) throws -> ProfileInfo {
    try profile(ProfileID.area(digits, among: try store.areas()))
  }

  private func profile(_ area: AreaID) throws -> ProfileInfo {
    if CrashGuard.crashed.contains(area.description) {
      var profile = ProfileInfo(area: area, state: .unreadable)
      profile.failure = .damagedInside
      return profile
    }
    return try CrashGuard.reading(area.description) { try store.profile(area) }
  }

  /// Everything that is known of it.
  func details(of profile: ProfileInfo) throws -> ProfileDetails {
    try CrashGuard.reading(profile.area.description) { try store.details(of: profile) }
  }

  /// What waits in its outbox.
  func outbox(of area: AreaID, limit: Int, keepsPayloads: Bool) throws -> [OutboxRow] {
    var maker = OutboxRow.Maker(keepsPayloads: keepsPayloads)
    return try CrashGuard.reading(area.description) {
      try store.outbox(area, limit: limit) { maker.row($0) }
    }
  }
}

extension StoreError {
  fileprivate static let damagedInside = StoreError(
    .damaged,
    "the file is damaged inside, so that not even LMDB can read it: restore it from a copy")
}
