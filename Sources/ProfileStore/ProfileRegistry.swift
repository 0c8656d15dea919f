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
  /// Where an app keeps its records. A store says it for good once it is made.
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
    /// Where the app keeps its records; in the area by default. The same in every process that opens
    /// the store.
    public var recordKeeping: RecordKeeping
    /// How many areas of accounts are kept open by last use, beside those whose profiles the app
    /// holds; 64 by default, 0 for none. An open one costs four descriptors and less than 100 KiB;
    /// opening it again takes about 0.1 ms.
    public var openAreaCountMax = 64
    /// This device's clock; it decides nothing but ages that a person sees.
    public var now: @Sendable () -> Date
    /// For crash tests; see ``OwnershipStep``.
    package var onStep: @Sendable (OwnershipStep) -> Void = { _ in }

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
  package let index: RegistryIndex
  /// What a later module attaches: the way to the hub.
  package let attachment = Mutex<(any Sendable)?>(nil)
  let signIns = Mutex(SignIns())
  /// Why an intent could not be settled, for the list of profiles.
  let unsettled = Mutex<[AreaID: StoreError]>([:])
  let openAreas: OpenAreas
  /// What changes the store: one after the other.
  private let queue = DispatchQueue(label: "holdfast.registry")

  private var path: String { directory.path }
  private var lockFile: String { path + "/store.lock" }

  /// Opens the store in a directory, made if there is none.
  ///
  /// What a crash left half done is finished or withdrawn; a registry that is missing while areas
  /// exist is rebuilt from them.
  /// - Throws: `notAStore` when the place is no directory or cannot be written; `newerFormat`;
  ///   `recordKeepingDiffers` when the store was made with another `recordKeeping`;
  ///   `registryDisagrees` when it cannot be rebuilt; `storage`.
  public init(
    directory: URL, session: any AccountSession, configuration: Configuration = Configuration()
  ) throws {
    self.directory = directory
    self.session = session
    var policy = StorePolicy(
      limits: configuration.limits, keepsRecords: configuration.recordKeeping == .area,
      now: configuration.now)
    policy.onStep = configuration.onStep
    self.policy = policy
    openAreas = OpenAreas(countMax: configuration.openAreaCountMax)
    // Else each open area would cost 2 MiB of memory that nobody uses.
    Environment.keepListsOutOfHeap()
    try Self.prepare(directory.path)
    index = try Self.openIndex(directory.path, configuration.limits)
    let wasFilled = try index.isFilled()
    if !wasFilled {
      let lock = try FileLock.exclusive(lockFile)
      // Another process may have filled it while this one waited.
      try withExtendedLifetime(lock) { if try !index.isFilled() { try rebuild() } }
    }
    if try index.needsAccounts() {
      let lock = try FileLock.exclusive(lockFile)
      try withExtendedLifetime(lock) { if try index.needsAccounts() { try index.indexAccounts() } }
    }
    guard let mark = try index.recordKeeping() else { throw StoreError.damaged("registry") }
    try requireRecordKeeping(mark)
    if wasFilled, let lock = try FileLock.ifFree(lockFile) {
      // Else another process is at work, and settles what it began; later calls look again.
      try withExtendedLifetime(lock) { try settleIntents() }
    }
  }

  /// Opens the registry. Whoever makes it holds the store's lock, so that one that is not whole is
  /// what a process left that was killed while it made it: as good as missing.
  private static func openIndex(
    _ path: String, _ limits: StoreLimits
  ) throws -> RegistryIndex {
    let registry = path + "/registry"
    let file = registry + "/data.mdb"
    if Files.isWholeEnvironment(file) {
      return try RegistryIndex(at: registry, access: .createOrWrite, limits: limits)
    }
    let lock = try FileLock.exclusive(path + "/store.lock")
    return try withExtendedLifetime(lock) {
      if !Files.isWholeEnvironment(file), Files.exists(file) { try Files.remove(file) }
      return try RegistryIndex(at: registry, access: .createOrWrite, limits: limits)
    }
  }

  /// One process that kept records elsewhere would take in what the others never see.
  func requireRecordKeeping(_ mark: RecordKeepingMark) throws(StoreError) {
    guard mark == RecordKeepingMark(policy) else {
      throw StoreError(
        .recordKeepingDiffers,
        "the store was made with `recordKeeping: .\(mark)`: open it with that in every process")
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
    do {
      for name in ["registry", "areas"] { try Files.makeDirectory(path + "/" + name) }
    } catch {
      throw StoreError(
        .notAStore,
        "the store's directory cannot be written, change its owner or permissions: "
          + error.message)
    }
    guard access(path, W_OK | X_OK) == 0 else {
      throw StoreError(
        .notAStore, "the store's directory cannot be written: change its owner or permissions")
    }
  }

  // MARK: Running

  /// Runs off the main thread what opens areas and waits for nobody: it takes about as long as a
  /// small read, and handing it to another thread would take as long again.
  func opening<R: Sendable>(_ body: () throws -> R) async throws -> R {
    // What is inside keeps a suspension waiting.
    try index.store.enter()
    defer { index.store.leave() }
    return try body()
  }

  /// Runs outside of the task pool what blocks on files or locks, one after the other.
  func onQueue<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    // What is inside keeps a suspension waiting.
    try index.store.enter()
    return try await withCheckedThrowingContinuation { continuation in
      queue.async { [self] in
        let result = Result { try body() }
        index.store.leave()
        continuation.resume(with: result)
      }
    }
  }

  /// Runs under the store-wide lock, after what others left half done was settled.
  package func locked<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await onQueue { [self] in
      let lock = try FileLock.exclusive(lockFile)
      return try withExtendedLifetime(lock) {
        try settleIntents()
        return try body()
      }
    }
  }

  /// The directory of an area: two levels, so that no directory grows without bound.
  package func directory(of area: AreaID) -> String {
    Self.directory(of: area, in: path)
  }

  package static func directory(of area: AreaID, in path: String) -> String {
    "\(path)/areas/\(area.description.prefix(2))/\(area)"
  }

  /// Opens an area that the registry names.
  /// - Throws: `registryDisagrees` when it is not there.
  package func open(_ area: AreaID) throws -> Area {
    let directory = directory(of: area)
    do {
      return try Area.open(
        area, directory: directory, limits: policy.limits, registry: index.store)
    } catch {
      guard Files.exists(directory) else {
        throw StoreError.disagrees("the registry names an area that is not there")
      }
      throw error
    }
  }

  /// The IDs of all areas whose directories are there whole.
  func areasOnDisk() throws -> [AreaID] {
    try Self.areas(in: path)
  }

  package static func areas(in path: String) throws -> [AreaID] {
    try names(in: path).compactMap { AreaID($0.name) }
  }

  /// What lies in the second level of the areas' directory.
  static func names(in path: String) throws -> [(name: String, path: String)] {
    let root = path + "/areas"
    guard Files.exists(root) else { return [] }
    // A file manager may leave files of its own here.
    let shards = try Files.names(in: root).filter { $0.utf8.count == 2 }
    return try shards.flatMap { shard in
      try Files.names(in: root + "/" + shard)
        .filter { $0.hasPrefix(shard) }
        .map { ($0, "\(root)/\(shard)/\($0)") }
    }
  }
}

extension StoreError {
  static let sessionUnknown = StoreError(
    .sessionUnknown,
    "the session was not restored yet: call restore, signIn or signOut on it first")
  static let unknownArea = StoreError(.unknownArea, "this store has no such area")
  static let unknownAccount = StoreError(
    .unknownAccount, "this store has no profile of that account")

  static func disagrees(_ what: String) -> StoreError {
    StoreError(.registryDisagrees, what + "; nothing was changed: see `profilectl list`")
  }
}
