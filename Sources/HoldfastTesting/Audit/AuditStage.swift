import Foundation
import HubProtocol
import ProfileStore
import ProfileSync

/// One situation: a hub, a device with a store on disk, and the app, opened as often as the situation
/// ends it.
final class AuditStage {
  /// Who uses the device.
  enum Person: String {
    case ada, bob
  }

  /// The app has not given what a situation needs.
  struct Missing: Error {
    var reason: String
  }

  /// The situation did not come about, whatever the app does.
  struct NotReached: Error, CustomStringConvertible {
    var description: String
  }

  /// The audit stops a pass after the app's closure has returned.
  struct Interruption: Error {}

  let situation: AuditSituation
  let options: ApplyChangesAudit.Options
  let hub = MemoryHub()
  let session = CuedSession()
  /// What the app's closure threw last.
  var closureError: (any Error)?
  private let ground: URL
  private let open: (URL) async throws -> AuditedApp
  private var accounts: [Person: VerifiedAccount] = [:]
  private var current: Person?
  private var payloadCount = 0
  // Let go of in a crash.
  private var registry: ProfileRegistry?
  private var openedApp: AuditedApp?
  private var profiles: [Person: Profile] = [:]

  /// Makes the directories and launches the app for the first time.
  init(
    _ situation: AuditSituation, _ options: ApplyChangesAudit.Options,
    _ open: @escaping (URL) async throws -> AuditedApp
  ) async throws {
    self.situation = situation
    self.options = options
    self.open = open
    ground = options.directory.appending(
      path: "holdfast-audit-\(UUID())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: appDirectory, withIntermediateDirectories: true)
    session.signOut()
    do { try await launch() } catch {
      try close()
      throw error
    }
  }

  /// Lets go of everything and removes the directories.
  func close() throws {
    end()
    try FileManager.default.removeItem(at: ground)
  }

  // MARK: Launches

  private var appDirectory: URL { ground.appending(path: "app", directoryHint: .isDirectory) }
  private var backup: URL { ground.appending(path: "backup", directoryHint: .isDirectory) }

  private func launch() async throws {
    let registry = try ProfileRegistry(
      directory: ground.appending(path: "store", directoryHint: .isDirectory), session: session,
      configuration: .init(recordKeeping: .app))
    registry.connect(to: session.watching(hub))
    self.registry = registry
    openedApp = try await open(appDirectory)
  }

  private func end() {
    profiles = [:]
    registry = nil
    openedApp = nil
  }

  /// The app ends, and nothing that it had only in memory is left; then it is launched again.
  /// - Parameter files: what happens to its files meanwhile.
  func crash(_ files: () throws -> Void = {}) async throws {
    end()
    try files()
    do { try await launch() } catch {
      throw AuditDeviation(
        expected: "the app can be opened again after it ended",
        observed: "opening it threw \(Self.name(of: error))")
    }
    if let current { try await switchTo(current) }
  }

  /// Copies the app's files, between two launches.
  func backUp() async throws {
    try await crash { try FileManager.default.copyItem(at: appDirectory, to: backup) }
  }

  /// Puts the copy in the place of the app's files, between two launches.
  func restoreBackup() async throws {
    try await crash {
      try FileManager.default.removeItem(at: appDirectory)
      try FileManager.default.copyItem(at: backup, to: appDirectory)
    }
  }

  // MARK: People

  /// Signs somebody in, for the first time or again, and tells the app.
  func switchTo(_ person: Person) async throws {
    let registry = opened(registry)
    let token = hub.token(for: person.rawValue)
    let account = try await account(of: person, token, registry)
    session.signIn(account, token: token)
    profiles[person] = try await registry.profile(for: account)
    current = person
    guard let accountChanged = app.accountChanged else { return }
    do { try await accountChanged(try place(person)) } catch {
      throw AuditDeviation(
        expected: "the app goes over to the account that was signed in",
        observed: "`accountChanged` threw \(Self.name(of: error))")
    }
  }

  private func account(
    of person: Person, _ token: String, _ registry: ProfileRegistry
  ) async throws -> VerifiedAccount {
    if let account = accounts[person] { return account }
    let account = try await registry.verify(token: token)
    // While the hub's word is fresh: an area is made for it.
    profiles[person] = try await registry.profile(for: account)
    accounts[person] = account
    return account
  }

  /// Where the app finds somebody's.
  func place(_ person: Person) throws -> AuditedApp.Place {
    let profile: Profile
    if let open = profiles[person] {
      profile = open
    } else {
      preconditionFailure("HoldfastTesting: \(person) has not signed in since the last launch")
    }
    guard let account = accounts[person] else {
      preconditionFailure("HoldfastTesting: \(person) was never verified")
    }
    return AuditedApp.Place(account: account, profile: profile)
  }

  var app: AuditedApp { opened(openedApp) }

  private func opened<Value>(_ value: Value?) -> Value {
    guard let value else { preconditionFailure("HoldfastTesting: the app is not open") }
    return value
  }

  // MARK: Another device

  /// The ID of a record of this situation: no other one has it.
  func id(_ number: Int) -> RecordID { "audit/\(situation.rawValue)/\(number)" }

  /// A payload that was not there yet.
  func newPayload() -> Data {
    payloadCount += 1
    return options.payload(payloadCount)
  }

  /// Another device of somebody's puts records.
  func put(_ numbers: Int..., by person: Person = .ada) async throws {
    try await hub.write(numbers.map { (id($0), newPayload()) }, of: person.rawValue)
  }

  /// Another device of somebody's deletes records.
  func delete(_ numbers: Int..., by person: Person = .ada) async throws {
    try await hub.write(numbers.map { (id($0), nil) }, of: person.rawValue)
  }

  /// What the hub has of somebody's.
  func hubRecords(_ person: Person) -> [RecordID: Data] {
    var records: [RecordID: Data] = [:]
    for stored in hub.records(of: person.rawValue) { records[stored.record] = stored.payload }
    return records
  }

  /// Looks whether the situation has come about.
  func require(_ condition: Bool, _ otherwise: String) throws {
    guard !condition else { return }
    throw NotReached(description: "\(situation.rawValue) cannot be tried: \(otherwise)")
  }

  /// What an error is called, without anything of the app's in it.
  static func name(of error: any Error) -> String {
    switch error {
    case let error as StoreError: "StoreError.\(error.code)"
    case let error as SyncError: "SyncError.\(error.code)"
    default: "\(type(of: error))"
    }
  }
}
