import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Synchronization
import Testing

/// A store of its own for one test. When the test is over it is checked (nothing half made is left,
/// every area can be read and is sound) and removed.
final class TemporaryStore: Sendable {
  let path: String
  /// The registry's session.
  let session = AppSession()
  let clock = ManualClock()
  private let isDamagedOnPurpose = Mutex(false)

  init() throws {
    path = NSTemporaryDirectory() + "/store-test-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    do {
      if !isDamagedOnPurpose.withLock({ $0 }) { try check() }
      try FileManager.default.removeItem(atPath: path)
    } catch {
      Issue.record(error, "the store could not be checked and removed")
    }
  }

  /// Says that the test leaves behind what no store should be.
  func expectDamage() { isDamagedOnPurpose.withLock { $0 = true } }

  func registry(
    session: (any AccountSession)? = nil, keeping: ProfileRegistry.RecordKeeping = .area,
    limits: StoreLimits = StoreLimits(), at place: String? = nil,
    onStep: @escaping @Sendable (OwnershipStep) -> Void = { _ in }
  ) throws -> ProfileRegistry {
    var configuration = ProfileRegistry.Configuration(
      recordKeeping: keeping, limits: limits, now: { [clock] in clock.now })
    configuration.onStep = onStep
    return try ProfileRegistry(
      directory: URL(fileURLWithPath: place ?? path), session: session ?? self.session,
      configuration: configuration)
  }

  /// Directories of areas, whole or not, by the names they have.
  func entries() throws -> [String] {
    let areas = path + "/areas"
    guard FileManager.default.fileExists(atPath: areas) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: areas).flatMap {
      try FileManager.default.contentsOfDirectory(atPath: areas + "/" + $0)
    }
  }

  /// Whether the directories of areas are these and no other, once nobody holds an erased one.
  ///
  /// A process that some other test is just starting holds a copy of every file lock of this one for
  /// a moment; the files of an erased area go at the next call then.
  func hasOnly(_ areas: [AreaID], in registry: ProfileRegistry) async throws -> Bool {
    let wanted = Set(areas.map(\.description))
    for _ in 0..<10_000 {
      if Set(try entries()) == wanted { return true }
      try await registry.locked {}
    }
    return false
  }

  private func check() throws {
    let left = try entries().filter { AreaID($0) == nil }
    #expect(left.isEmpty, "half made or half removed areas are left")
    guard try !entries().isEmpty else { return }
    for profile in try StoreInspector(directory: URL(fileURLWithPath: path)).profiles() {
      #expect(profile.state != .unreadable, "\(profile.problem ?? "")")
      let area = try Area.open(
        profile.area,
        directory: "\(path)/areas/\(profile.area.description.prefix(2))/\(profile.area)",
        limits: StoreLimits(), access: .read)
      #expect(try area.violations() == [])
    }
  }
}

/// A clock that stands until it is moved.
final class ManualClock: Sendable {
  private let time = Mutex(Date(timeIntervalSince1970: 1_750_000_000))
  var now: Date { time.withLock { $0 } }
  func advance(by seconds: Double) { time.withLock { $0 += seconds } }
}

/// A session that answers each call from a script; a test changes it on cue.
final class ScriptedSession: AccountSession {
  private let calls = Mutex(0)
  private let answer: @Sendable (_ call: Int) -> SessionState

  /// - Parameter answer: what to say at the call with that number, from 1.
  init(_ answer: @escaping @Sendable (_ call: Int) -> SessionState) { self.answer = answer }

  convenience init(_ state: SessionState) { self.init { _ in state } }

  var callCount: Int { calls.withLock { $0 } }

  var state: SessionState {
    answer(
      calls.withLock { calls in
        calls += 1
        return calls
      })
  }
}

enum Hub {
  static let first = UUID(uuid: (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
  static let second = UUID(uuid: (2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2))
  static let epoch = UUID(uuid: (9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9))
}

/// As the hub has just verified it, with a client that it accepted.
func verified(_ id: String, hub: UUID = Hub.first) throws -> VerifiedAccount {
  VerifiedAccount(
    hub: hub, id: try AccountID(id), proof: .hub(ClientTicket(client: UUID())))
}

extension VerifiedAccount {
  /// The same account as an area says it: enough to open that area, not to write an owner.
  var remembered: VerifiedAccount { VerifiedAccount(hub: hub, id: id, proof: .area) }

  func signedIn(generation: UInt64 = 1_000_000) -> SessionState {
    .account(SignedInAccount(account: bytes, token: "token", generation: generation))
  }
}

extension TemporaryStore {
  func signIn(_ account: VerifiedAccount) { session.signIn(account, token: "token") }

  /// A profile of a fresh account that is signed in.
  func signedInProfile(
    _ id: String, in registry: ProfileRegistry
  ) async throws -> (VerifiedAccount, Profile) {
    let account = try verified(id)
    let profile = try await registry.profile(for: account)
    signIn(account)
    return (account, profile)
  }

  /// Puts as a signed-out person, who is gone again afterwards.
  @discardableResult
  func guest(
    in registry: ProfileRegistry, puts records: [String], payload: String = "guest"
  ) async throws -> Profile {
    session.signOut()
    let profile = try await registry.unownedProfile()
    for record in records {
      try await profile.enqueue(
        .put(RecordID(record), Data("\(payload) \(record)".utf8)), account: nil)
    }
    return profile
  }
}

extension Profile {
  /// Every table of the area with every byte in it.
  func dump() throws -> [String: [[UInt8]: [UInt8]]] {
    var tables: [String: [[UInt8]: [UInt8]]] = [:]
    for name in try area.environment.tableNames() {
      if name == "edits" {
        tables[name] = try dumpEdits()
        continue
      }
      let table = try area.environment.table(name, key: BytesCodec.self, value: BytesCodec.self)
      var rows: [[UInt8]: [UInt8]] = [:]
      try area.environment.read { transaction in
        try transaction.scan(table) { key, value in
          rows[key.copiedBytes()] = value.copiedBytes()
          return .next
        }
      }
      tables[name] = rows
    }
    return tables
  }

  /// The one table in which a key has several values: each pair as a key.
  private func dumpEdits() throws -> [[UInt8]: [UInt8]] {
    let table = try area.environment.multiTable(
      "edits", key: BytesCodec.self, value: UInt64Codec.self)
    var pairs: [[UInt8]: [UInt8]] = [:]
    try area.environment.read { transaction in
      try transaction.scan(table) { key, value in
        pairs[key.copiedBytes() + value.copiedBytes()] = []
        return .next
      }
    }
    return pairs
  }

  /// Parks a waiting mutation as the hub's answer would.
  func park(
    _ mutation: UUID, _ parked: Parked = Parked(reason: .rejected, code: "test")
  ) async throws {
    try await settle(mutation, .parked(parked))
  }

  func acknowledge(_ mutation: UUID, version: UInt64) async throws {
    try await settle(mutation, .acknowledged(version: version))
  }

  func settle(
    _ mutation: UUID, _ settlement: Settlement, epoch: UUID = Hub.epoch, highWater: UInt64 = 0
  ) async throws {
    // 0: none that waits, as when it was settled meanwhile.
    let order = try order(of: mutation) ?? 0
    try await area.settle(
      [(order, mutation, settlement)], epoch: epoch, highWater: highWater,
      policy: registry.policy)
  }

  /// Where a mutation waits; entries that are damaged are passed over.
  func order(of mutation: UUID) throws -> UInt64? {
    let table = try area.environment.table(
      "outbox", key: UInt64Codec.self, value: BytesCodec.self)
    return try area.environment.read { transaction in
      var order: UInt64?
      try transaction.scan(table) { key, value in
        guard value.byteCount > 18, value.loadUUID(at: 2) == mutation else { return .next }
        order = try UInt64Codec.decode(key)
        return .stop
      }
      return order
    }
  }

  /// A change of the hub, as a pull commits it.
  func pull(_ record: RecordID, version: UInt64, _ payload: String?) async throws {
    try await area.commit(
      [
        IncomingChange(
          record: record, version: version, payload: payload.map { Data($0.utf8) },
          isDeleted: payload == nil)
      ], epoch: Hub.epoch, lineage: [], progress: .cursor(version), position: nil,
      policy: registry.policy, requiring: {})
  }

  /// What a pass would send now.
  func sendable(countMax: Int = 500, byteCountMax: Int = 1 << 20) throws -> [OutboxEntry] {
    try area.read {
      try area.batch(after: 0, countMax: countMax, byteCountMax: byteCountMax, $0)
    }
  }

  /// The outbox whoever is signed in.
  func waiting() throws -> [OutboxEntry] {
    try StoreInspector(directory: registry.directory).outbox(id)
  }

  func text(_ record: RecordID) throws -> String? {
    try self.record(record).map { String(decoding: $0.payload, as: UTF8.self) }
  }
}

/// The error that `body` throws, by its code.
func code(
  _ location: SourceLocation = #_sourceLocation, of body: () async throws -> Void
) async -> StoreError.Code? {
  do {
    try await body()
    return nil
  } catch let error as StoreError {
    return error.code
  } catch {
    Issue.record(error, "not a StoreError", sourceLocation: location)
    return nil
  }
}

/// All bytes of the files of a directory that belong to a store's data.
///
/// A lock file is never opened: closing it would drop LMDB's locks of this process.
func bytes(under path: String) throws -> Data {
  guard let files = FileManager.default.enumerator(atPath: path) else { return Data() }
  var all = Data()
  for case let file as String in files where !file.hasSuffix("lock.mdb") {
    let whole = path + "/" + file
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: whole, isDirectory: &isDirectory),
      !isDirectory.boolValue
    else { continue }
    all.append(try Data(contentsOf: URL(fileURLWithPath: whole)))
  }
  return all
}

extension Profile {
  /// Decides as a person does who has just looked at ``parked()``.
  func decide(_ mutation: UUID, account: VerifiedAccount, _ resolution: Resolution) async throws {
    let seen = try parked().first { $0.mutation == mutation }?.parked?.current?.version
    try await resolve(mutation, seen: seen, account: account, resolution)
  }

  /// Another handle to an open area, with the session of another registry.
  static func handle(to area: Area, of registry: ProfileRegistry) -> Profile {
    Profile(area: area, registry: registry, session: nil)
  }
}
