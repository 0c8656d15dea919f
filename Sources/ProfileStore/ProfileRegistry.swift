import Dispatch
public import Foundation
import HubProtocol
import LMDB
package import Synchronization

/// The store on one device: knows which account owns which area, and opens, provisions and erases
/// them. It never hands out another account's area and never transfers an owner.
///
/// Several processes may use one store at the same time. (Contract section 3.)
public final class ProfileRegistry: Sendable {
  /// Where an app keeps its records.
  public enum RecordKeeping: Sendable {
    /// In the area itself: `enqueue` writes the record, too, and a pass needs no closure.
    case area
    /// In a store of the app's own: the area keeps outbox, metadata and cursor only.
    case app
  }

  /// The settings of a store in this process.
  public struct Configuration: Sendable {
    /// What the store holds at most.
    public var limits: StoreLimits
    /// Where the app keeps its records; in the area by default.
    public var recordKeeping: RecordKeeping
    /// This device's clock; it decides nothing but ages that a person sees.
    public var now: @Sendable () -> Date

    /// The defaults, but for what is given.
    public init(
      recordKeeping: RecordKeeping = .area, limits: StoreLimits = StoreLimits(),
      now: @escaping @Sendable () -> Date = { Date() }
    ) {
      self.recordKeeping = recordKeeping
      self.limits = limits
      self.now = now
    }
  }

  /// The store's directory.
  public let directory: URL
  /// The session that counts where no nearer one was given; it alone decides *nobody*.
  public let session: any AccountSession
  package let policy: StorePolicy
  let index: RegistryIndex
  /// What a later module attaches: the way to the hub.
  package let attachment = Mutex<(any Sendable)?>(nil)
  private let queue = DispatchQueue(label: "holdfast.registry")
  private let noticedGeneration = Mutex<UInt64?>(nil)

  private var path: String { directory.path }
  private var lockFile: String { path + "/store.lock" }

  /// Opens the store in a directory, made if there is none.
  ///
  /// What a crash left half done is finished or withdrawn; a registry that is missing while areas
  /// exist is rebuilt from them.
  /// - Throws: `notAStore` when the place is no directory or cannot be written; `newerFormat`;
  ///   `storage`.
  public init(
    directory: URL, session: any AccountSession, configuration: Configuration = Configuration()
  ) throws {
    self.directory = directory
    self.session = session
    policy = StorePolicy(
      limits: configuration.limits, keepsRecords: configuration.recordKeeping == .area,
      now: configuration.now)
    try Self.prepare(directory.path)
    index = try RegistryIndex(at: directory.path + "/registry", access: .createOrWrite)
    if try index.snapshot().format == nil {
      let lock = try FileLock.exclusive(lockFile)
      try withExtendedLifetime(lock) { try rebuild() }
    } else if let lock = try FileLock.ifFree(lockFile) {
      // Another process that is at work settles what it began; later calls look again.
      try withExtendedLifetime(lock) { try settleIntents() }
    }
  }

  private static func prepare(_ path: String) throws(StoreError) {
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) {
      guard isDirectory.boolValue else {
        throw StoreError(.notAStore, "the store's place is a file: give a directory")
      }
    } else {
      do {
        try FileManager.default.createDirectory(
          atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch {
        throw StoreError(
          .notAStore, "the store's directory cannot be made: \(error.localizedDescription)")
      }
    }
    guard access(path, W_OK | X_OK) == 0 else {
      throw StoreError(
        .notAStore, "the store's directory cannot be written: change its owner or permissions")
    }
    for name in ["registry", "areas"] { try Files.makeDirectory(path + "/" + name) }
  }

  // MARK: Running

  /// Runs on the registry's own queue: its calls block on files and locks.
  func onQueue<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try body() }) }
    }
  }

  /// Runs under the store-wide lock, after what others left half done was settled.
  func locked<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await onQueue { [self] in
      let lock = try FileLock.exclusive(lockFile)
      return try withExtendedLifetime(lock) {
        try settleIntents()
        return try body()
      }
    }
  }

  /// The directory of an area: two levels, so that no directory grows without bound.
  func directory(of area: AreaID) -> String {
    Self.directory(of: area, in: path)
  }

  static func directory(of area: AreaID, in path: String) -> String {
    "\(path)/areas/\(area.description.prefix(2))/\(area)"
  }

  func open(_ area: AreaID) throws -> Area {
    try Area.open(area, directory: directory(of: area), limits: policy.limits)
  }

  /// The IDs of all areas whose directories are there whole.
  func areasOnDisk() throws -> [AreaID] {
    try Self.areas(in: path)
  }

  static func areas(in path: String) throws -> [AreaID] {
    let root = path + "/areas"
    // A file manager may leave files of its own here.
    let shards = try FileManager.default.contentsOfDirectory(atPath: root)
      .filter { $0.utf8.count == 2 }
    return try shards.flatMap { shard in
      try FileManager.default.contentsOfDirectory(atPath: root + "/" + shard)
        .filter { $0.hasPrefix(shard) }
    }.compactMap { AreaID($0) }
  }

  // MARK: Opening

  /// Opens the account's own area, or provisions a fresh one.
  ///
  /// Opening needs the session to say the account, or an account that the hub has just verified;
  /// provisioning needs the latter. Unowned data never stands in the way: it stays as it is, and
  /// ``unownedProfile()`` asks for a decision afterwards.
  /// - Parameter session: counts for this profile instead of the registry's.
  /// - Throws: `proofRequired` when a fresh area is needed and the hub was not asked;
  ///   `anotherAccountSignedIn`, `notSignedIn`, `sessionUnknown`; `registryDisagrees`; `storage`.
  public func profile(
    for account: VerifiedAccount, session: (any AccountSession)? = nil
  ) async throws -> Profile {
    let nearest = session ?? self.session
    if account.clientTicket == nil { try Self.require(account, in: nearest) }
    if let area = try await onQueue({ [self] in try openOwned(account) }) {
      try await noticeSignIn(of: account)
      return Profile(area: area, registry: self, session: session)
    }
    let area = try await locked { [self] in
      if let area = try openOwned(account) { return area }
      return try provision(for: account)
    }
    try await noticeSignIn(of: account)
    return Profile(area: area, registry: self, session: session)
  }

  /// Opens the account's existing area for maintenance (retry, discard, adopt, pending numbers)
  /// without a session; reading its data and enqueueing still ask the session.
  /// - Throws: `unknownAccount` when the store has no area of that account.
  public func profileForMaintenance(of account: VerifiedAccount) async throws -> Profile {
    guard let area = try await onQueue({ [self] in try openOwned(account) }) else {
      throw StoreError(.unknownAccount, "this store has no profile of that account")
    }
    return Profile(area: area, registry: self, session: nil)
  }

  /// Opens the area of whoever is signed in, or the signed-out area: what an app does at launch.
  /// - Throws: `sessionUnknown`; `unknownAccount` when the session's account has no area here;
  ///   as ``profile(for:session:)`` and ``unownedProfile()``.
  public func currentProfile() async throws -> Profile {
    switch session.state {
    case .unknown: throw StoreError.sessionUnknown
    case .nobody: return try await unownedProfile()
    case .account(let signedIn):
      guard let account = VerifiedAccount(storedBytes: signedIn.account, proof: .area),
        try index.area(of: signedIn.account) != nil
      else {
        throw StoreError(
          .unknownAccount, "this store has no profile of the account that is signed in: verify it")
      }
      return try await profile(for: account)
    }
  }

  /// The account's area if it has one that is not erased.
  func openOwned(_ account: VerifiedAccount) throws -> Area? {
    guard let id = try index.area(of: account.bytes) else { return nil }
    guard FileManager.default.fileExists(atPath: directory(of: id)) else {
      // Only an intent explains that: an erase that is being finished.
      if try index.hasIntents() { return nil }
      throw StoreError(
        .registryDisagrees,
        "the registry names an area for this account that is not there; see profilectl audit")
    }
    let area = try open(id)
    let (owner, state) = try area.environment.read { transaction in
      (try area.tables.owner(transaction), try area.tables.state(transaction))
    }
    if state == .erased { return nil }
    guard owner == account.bytes else {
      throw StoreError(
        .registryDisagrees,
        "the registry and an area disagree about the area's owner; see profilectl audit")
    }
    return area
  }

  private func provision(for account: VerifiedAccount) throws -> Area {
    guard account.clientTicket != nil else {
      throw StoreError(
        .proofRequired,
        "a fresh area needs the hub's word for its owner: verify the account online once")
    }
    let id = AreaID(uuid: UUID())
    let now = policy.now()
    try index.write { $0.setIntent(id, Intent(kind: .provision, account: account.bytes)) }
    try Files.makeDirectory((directory(of: id) as NSString).deletingLastPathComponent)
    try Area.create(id, directory: directory(of: id), limits: policy.limits, createdAt: now) {
      tables, transaction in
      try tables.setOwner(account.bytes, &transaction)
      if let client = account.clientTicket?.take() {
        try tables.setClient(ClientIdentity(id: client, isRegistered: true), &transaction)
      }
    }
    try index.write { writing in
      writing.set(id, AreaRow(state: .owned, owner: account.bytes, createdAt: now))
      writing.setIntent(id, nil)
    }
    return try open(id)
  }

  /// Who decided to keep the unowned data, and how much of it there was.
  static func decision(of account: VerifiedAccount, for area: Area) throws -> Data {
    var writer = ByteWriter()
    writer.write(area.id.uuid)
    writer.write(try area.lastOrder())
    writer.write(account.bytes)
    return Data(writer.bytes)
  }

  // MARK: Sessions

  /// Requires that the session says this account.
  @discardableResult
  package static func require(
    _ account: VerifiedAccount, in session: any AccountSession
  ) throws(StoreError) -> SignedInAccount {
    switch session.state {
    case .unknown: throw .sessionUnknown
    case .nobody:
      throw StoreError(.notSignedIn, "nobody is signed in: sign the account in first")
    case .account(let signedIn):
      guard signedIn.account == account.bytes else {
        throw StoreError(
          .anotherAccountSignedIn,
          "the session says another account than the call: use that account's profile")
      }
      return signedIn
    }
  }

  /// Notes a sign-in that has decided nothing about the unowned data, so that two guests' data
  /// never mix unasked.
  package func noticeSignIn(of account: VerifiedAccount) async throws {
    if case .account(let signedIn) = session.state {
      let isNew = noticedGeneration.withLock { noticed in
        defer { noticed = signedIn.generation }
        return noticed != signedIn.generation
      }
      if !isNew { return }
    }
    guard try index.snapshot().unowned != nil else { return }
    try await locked { [self] in
      guard try index.undecided() == nil, let id = try index.snapshot().unowned else { return }
      let area = try open(id)
      guard try !area.unownedSummary().isEmpty else { return }
      // Decided once for what is there: asked again only when there is more, or somebody else comes.
      guard try index.kept() != Self.decision(of: account, for: area) else { return }
      try index.write { $0.setUndecided(account.bytes) }
    }
  }
}

extension StoreError {
  static let sessionUnknown = StoreError(
    .sessionUnknown,
    "the session was not restored yet: call restore, signIn or signOut on it first")
}
