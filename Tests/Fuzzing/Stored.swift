import Foundation
import HubProtocol
import LMDB
import ProfileStore

/// A directory for this process; those of processes that have ended are removed.
private func scratchDirectory(_ name: String) throws -> URL {
  let base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
  let prefix = "fuzz-\(name)-"
  for old in try FileManager.default.contentsOfDirectory(atPath: base) where old.hasPrefix(prefix) {
    guard let process = pid_t(old.dropFirst(prefix.count)), kill(process, 0) != 0, errno == ESRCH
    else { continue }
    try FileManager.default.removeItem(atPath: base + "/" + old)
  }
  let directory = URL(
    filePath: "\(base)/fuzz-\(name)-\(getpid())", directoryHint: .isDirectory)
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  return directory
}

/// The values of an area and of a registry: one of them is replaced, and everything is asked for.
final class StoredValues: FuzzedDecoder {
  static let name = "values"

  private struct Place {
    let environment: Environment
    let table: Table<BytesCodec, BytesCodec>
    let key: [UInt8]
    let value: [UInt8]
  }

  private let registry: ProfileRegistry
  private let profile: Profile
  private let account: VerifiedAccount
  private var places: [Place] = []

  init() throws {
    let directory = try scratchDirectory("values")
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(directory: directory, session: session)
    let account = VerifiedAccount(
      hub: UUID(uuid: (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)),
      id: try AccountID("anna"), proof: .hub(ClientTicket(client: UUID())))
    self.registry = registry
    self.account = account
    profile = try Self.waiting {
      let profile = try await registry.profile(for: account)
      session.signIn(account, token: "token")
      try await Self.fill(profile, account)
      return profile
    }
    for environment in [profile.area.environment, registry.index.environment] {
      for name in try environment.tableNames() where name != "edits" {
        let table = try environment.table(name, key: BytesCodec.self, value: BytesCodec.self)
        try environment.read { transaction in
          try transaction.scan(table) { key, value in
            places.append(
              Place(
                environment: environment, table: table, key: key.copiedBytes(),
                value: value.copiedBytes()))
            return .next
          }
        }
      }
    }
  }

  deinit { try? FileManager.default.removeItem(at: registry.directory) }

  /// Pulled, waiting, parked and acknowledged ones.
  private static func fill(_ profile: Profile, _ account: VerifiedAccount) async throws {
    let epoch = UUID(uuid: (9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9))
    let policy = profile.registry.policy
    try await profile.area.commit(
      (1...3).map {
        IncomingChange(
          record: RecordID("r\($0)"), version: UInt64($0), payload: $0 == 3 ? nil : Data("p".utf8),
          isDeleted: $0 == 3)
      }, epoch: epoch, lineage: [], progress: .cursor(3), position: nil, policy: policy,
      requiring: {})
    for number in 1...3 {
      try await profile.enqueue(
        .put(RecordID("r\(number)"), Data("w".utf8), base: .version(1), mutation: UUID()),
        account: account)
    }
    let waiting = try profile.outbox()
    try await profile.area.settle(
      [
        (waiting[0].order, waiting[0].mutation, .acknowledged(version: 4)),
        (
          waiting[1].order, waiting[1].mutation,
          .parked(Parked(reason: .rejected, code: "test"))
        ),
      ], epoch: epoch, highWater: 4, policy: policy)
  }

  private static func waiting<R: Sendable>(
    _ body: @escaping @Sendable () async throws -> R
  ) throws -> R {
    let result = Outcome<R>()
    let done = DispatchSemaphore(value: 0)
    Task {
      do { result.set(.success(try await body())) } catch { result.set(.failure(error)) }
      done.signal()
    }
    done.wait()
    return try result.get()
  }

  /// Which place, and the value that stands there.
  var seeds: [[UInt8]] { places.enumerated().map { [UInt8($0 % 256)] + $1.value } }

  func take(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let place = places[Int(first) % places.count]
    do {
      try write(Array(bytes.dropFirst()), to: place)
      read()
      try write(place.value, to: place)
    } catch { fatalError("the file itself failed: \(error)") }
  }

  private func write(_ value: [UInt8], to place: Place) throws {
    try place.environment.writeBlocking { try $0.put(value, for: place.key, in: place.table) }
  }

  /// Refused or answered; what is asked of another place is no concern of this one.
  private func read() {
    let questions: [() throws -> Void] = [
      { [profile] in _ = try profile.records() }, { [profile] in _ = try profile.outbox() },
      { [profile] in _ = try profile.parked() },
      { [profile] in _ = try profile.pendingSummary() }, { [profile] in _ = try profile.cursor() },
      { [profile] in _ = try profile.acknowledged() },
      { [profile] in _ = try profile.adoptionReceipts() },
      { [profile] in _ = try profile.lostAtHub() },
      { [profile] in _ = try profile.acknowledgedButLost() },
      { [profile] in _ = try profile.owner },
      { [profile] in _ = try profile.area.facts() },
      { [profile] in _ = try profile.area.violations() },
      { [registry] in _ = try registry.index.snapshot() },
      { [registry, account] in _ = try registry.index.area(of: account.bytes) },
      { [registry] in _ = try registry.index.unowned() },
    ]
    for question in questions {
      do { try question() } catch {
        promise(
          error is StoreError || error is LMDBError, "an untyped error: \(type(of: error))")
      }
    }
  }
}

/// A result that one thread sets and another reads after a semaphore.
private final class Outcome<R: Sendable>: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): written before the semaphore is signalled, read after it.
  private var result: Result<R, any Error>?
  func set(_ new: Result<R, any Error>) { result = new }
  func get() throws -> R {
    guard let result else { fatalError("nothing was set") }
    return try result.get()
  }
}

/// A data file with some bytes replaced: checked, and opened and read where the check finds nothing.
final class DataFiles: FuzzedDecoder {
  static let name = "pages"

  private let directory: URL
  private let file: URL
  private let whole: [UInt8]

  init() throws {
    directory = try scratchDirectory("pages")
    file = directory.appending(path: "data.mdb")
    var configuration = Environment.Configuration()
    configuration.fileReserveByteCountMax = 0
    let environment = try Environment.open(at: directory.path, configuration: configuration)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    let many = try environment.multiTable("m", key: UInt64Codec.self, value: UInt64Codec.self)
    for round in 0..<3 as Range<UInt64> {
      try environment.writeBlocking { transaction in
        for key in 0..<40 as Range<UInt64> {
          let value = [UInt8](repeating: 1, count: key == 7 ? 9_000 : 200)
          try transaction.put(value, for: key + round, in: table)
          try transaction.insert(key, for: key % 3, in: many)
        }
      }
    }
    try environment.close()
    whole = Array(try Data(contentsOf: file))
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  /// Three bytes for each byte that is replaced: place and value.
  var seeds: [[UInt8]] { [[0, 16, 1], [0, 32, 12, 0, 32, 14], [0, 48, 16]] }

  func take(_ bytes: [UInt8]) {
    var changed = whole
    for index in stride(from: 0, to: bytes.count - bytes.count % 3, by: 3) {
      let place = (Int(bytes[index]) << 8 | Int(bytes[index + 1])) % changed.count
      changed[place] = bytes[index + 2]
    }
    do {
      try Data(changed).write(to: file)
      guard try Environment.checkIntegrity(at: directory.path).isIntact else { return }
      try read()
    } catch {
      promise(error is LMDBError, "an untyped error: \(type(of: error))")
    }
  }

  private func read() throws {
    let environment = try Environment.open(at: directory.path)
    defer { do { try environment.close() } catch { fatalError("it does not close: \(error)") } }
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    try environment.read { transaction in
      try transaction.scan(table) { _, _ in .next }
    }
    try environment.writeBlocking { try $0.put([1], for: 1, in: table) }
  }
}
