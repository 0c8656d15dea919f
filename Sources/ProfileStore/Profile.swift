import Foundation
import HubProtocol
public import LMDB
import Synchronization

/// An open area, as the app holds it.
///
/// Data is read and changed only while the session says its owner (or, for the signed-out area,
/// while the registry's session says nobody). Maintenance calls (``retry(_:account:base:)``,
/// ``discard(_:account:)``, ``pendingSummary()``) need no session.
public final class Profile: Sendable {
  package let area: Area
  /// The store that it belongs to.
  public let registry: ProfileRegistry
  private let ownSession: (any AccountSession)?
  /// The sign-in whose reads the registry knows of; 0: none.
  private let seenGeneration = Atomic<UInt64>(0)
  /// The sign-in whose enqueues the registry has noticed; 0: none.
  private let noticedGeneration = Atomic<UInt64>(0)
  /// The owner, once an enqueue has found it: no area ever gets another one.
  private let foundOwner = AtomicLazyReference<FoundOwner>()

  private final class FoundOwner: Sendable {
    let account: Data
    init(_ account: Data) { self.account = account }
  }

  package init(area: Area, registry: ProfileRegistry, session: (any AccountSession)?) {
    self.area = area
    self.registry = registry
    ownSession = session
  }

  /// The area's ID.
  public var id: AreaID { area.id }

  /// The account that owns the area for ever, read from the area; nil while it is unowned.
  /// - Throws: `erased`, `storage`.
  public var owner: VerifiedAccount? {
    get throws {
      guard let bytes = try area.owner() else { return nil }
      guard let account = VerifiedAccount(storedBytes: bytes, proof: .area) else {
        throw StoreError.damaged("owner")
      }
      return account
    }
  }

  /// The session that counts here: a running pass's within its closure, this profile's, the
  /// registry's.
  package var session: any AccountSession {
    PassContext.running.last { $0.area == area.id }?.session ?? ownSession ?? registry.session
  }

  // MARK: Binding

  /// Binds the unowned area to an account for ever and returns the profile to use from now on.
  ///
  /// The same account again changes nothing. If the account has an area already, nothing is bound a
  /// second time: with unowned data adopted, its content moves into that area.
  /// - Parameters:
  ///   - account: as the hub has just verified it.
  ///   - adoptingUnownedData: the person agreed that the data on this device becomes the account's.
  ///   - saving: runs in the same transaction, so that the app saves the person's choice with it.
  /// - Throws: `ownedByAnotherAccount`; `unownedDataPresent`, with how much there is, unless
  ///   `adoptingUnownedData`; `proofRequired`; `alreadyAdopted`; what `saving` throws. Nothing has
  ///   changed then.
  @discardableResult
  public func bindAccount(
    _ account: VerifiedAccount, adoptingUnownedData: Bool = false, saving: BindingClosure? = nil
  ) async throws -> Profile {
    if let owner = try area.owner() {
      guard owner == account.bytes else { throw StoreError.foreignArea }
      return self
    }
    return try await registry.bind(
      id, to: account, adopting: adoptingUnownedData, saving: saving)
  }

  // MARK: Enqueueing

  /// Stores a change of this account in the outbox; when it returns, it is on disk.
  ///
  /// The account is checked against owner and session before storage is touched and again inside
  /// the transaction; a refusal leaves the outbox byte for byte as it was. Concurrent calls share a
  /// commit. Once begun it ignores cancellation.
  /// - Parameter account: whose change it is. nil only on a still-unowned area while nobody is
  ///   signed in.
  /// - Throws: `ownedByAnotherAccount`, `notBound`, `accountRequired`; `anotherAccountSignedIn`,
  ///   `notSignedIn`, `sessionUnknown`; `adoptionUndecided`, `moved`, `setAside`, `erased`;
  ///   `badRecordID`, `payloadTooLarge`, `badBase`, `mutationReused`; `outboxFull`; `storage`.
  @discardableResult
  public func enqueue(
    _ mutation: Mutation, account: VerifiedAccount?
  ) async throws -> EnqueueReceipt {
    let session = session
    try Area.validate(mutation, payloadByteCountMax: StoreLimits.payloadByteCountCeiling)
    try await requireEnqueuing(account?.bytes, session)
    let receipt = try await area.writeState { [self, account = account?.bytes] transaction in
      let insertion = try beginInsertion(account, transaction)
      let receipt = try area.insert(mutation, insertion, &transaction)
      try requireSaid(account, session)
      return receipt
    }
    area.signals.outbox.raise()
    return receipt
  }

  /// Stores several changes, all or none, in one transaction.
  /// - Parameters:
  ///   - account: as for ``enqueue(_:account:)-(Mutation,_)``.
  ///   - saving: runs in the same transaction after them, for the app's own tables in this area. It
  ///     may run again and must have no effect outside the transaction.
  @discardableResult
  public func enqueue(
    _ mutations: [Mutation], account: VerifiedAccount?,
    saving: (@Sendable (inout WriteTransaction) throws -> Void)? = nil
  ) async throws -> [EnqueueReceipt] {
    let session = session
    for mutation in mutations {
      try Area.validate(mutation, payloadByteCountMax: StoreLimits.payloadByteCountCeiling)
    }
    try await requireEnqueuing(account?.bytes, session)
    let receipts = try await area.writeState { [self, account = account?.bytes] transaction in
      let insertion = try beginInsertion(account, transaction)
      let receipts = try area.insert(mutations, insertion, &transaction)
      try saving?(&transaction)
      try requireSaid(account, session)
      return receipts
    }
    area.signals.outbox.raise()
    return receipts
  }

  /// What can be checked before storage is touched. That an area is an account's is found once.
  private func requireEnqueuing(_ account: Data?, _ session: any AccountSession) async throws {
    let state = session.state
    if case .unknown = state { throw StoreError.sessionUnknown }
    guard let account else {
      try area.read { try requireWritable(nil, session, $0) }
      return try await registry.noticeSeenSignIns()
    }
    if foundOwner.load()?.account != account {
      try area.read { try requireWritable(account, session, $0) }
      _ = foundOwner.storeIfNil(FoundOwner(account))
    }
    let generation = try ProfileRegistry.require(account, state).generation
    // 0 is no generation that was noticed.
    guard noticedGeneration.load(ordering: .relaxed) != generation &+ 1 else { return }
    try await registry.noticeSignIn(of: account, generation: generation)
    noticedGeneration.store(generation &+ 1, ordering: .relaxed)
  }

  /// Area and owner, as they are within the transaction.
  private func beginInsertion(
    _ account: Data?, _ transaction: borrowing WriteTransaction
  ) throws -> Area.Insertion {
    if let begun = Area.Insertion.remembered(transaction), begun.account == account,
      begun.limits == registry.policy.limits
    {
      return begun
    }
    try requireOwn(account, transaction)
    return try area.beginInsertion(account, registry.policy, transaction)
  }

  /// The session again, as late as it can be asked; owner and state are the transaction's.
  private func requireSaid(_ account: Data?, _ session: any AccountSession) throws {
    guard let account else { return try requireCurrentUnowned() }
    try ProfileRegistry.require(account, session.state)
  }

  /// The session is asked last, so that nothing comes between its answer and the commit.
  func requireWritable<T: Transaction & ~Copyable>(
    _ account: Data?, _ session: any AccountSession, _ transaction: borrowing T
  ) throws {
    try requireOwn(account, transaction)
    if let account { try ProfileRegistry.require(account, session.state) }
  }

  private func requireOwn<T: Transaction & ~Copyable>(
    _ account: Data?, _ transaction: borrowing T
  ) throws {
    try area.requireActive(transaction)
    guard let account else {
      if try area.tables.owner(transaction) != nil { throw StoreError.accountRequired }
      return try requireCurrentUnowned()
    }
    switch try area.tables.isOwned(by: account, transaction) {
    case nil: throw StoreError.notBound
    case false?: throw StoreError.foreignArea
    case true?: return
    }
  }

  /// Two guests' data must not mix, also not through a profile that was opened earlier.
  private func requireCurrentUnowned() throws {
    guard try registry.index.unowned() == id else {
      throw StoreError(
        .setAside, "this unowned area was set aside: ask unownedProfile() for the current one")
    }
    guard try registry.index.undecided() == nil else { throw StoreError.undecided(nil) }
    try requireNobody()
  }

  /// Only the registry's session decides *nobody*.
  private func requireNobody() throws(StoreError) {
    switch registry.session.state {
    case .unknown: throw .sessionUnknown
    case .nobody: return
    case .account:
      throw StoreError(
        .accountRequired,
        "somebody is signed in: bind the area to the account and pass the account")
    }
  }

  /// Reads are for whoever is signed in: a handle of somebody who signed out throws.
  func requireReadable<T: Transaction & ~Copyable>(_ transaction: borrowing T) throws {
    guard let owner = try area.tables.owner(transaction) else {
      if case .moved = try area.tables.state(transaction) { throw StoreError.movedArea }
      return try requireCurrentUnowned()
    }
    switch session.state {
    case .unknown: throw StoreError.sessionUnknown
    case .nobody:
      throw StoreError(.notSignedIn, "nobody is signed in: sign the account in first")
    case .account(let signedIn):
      guard signedIn.account == owner else {
        throw StoreError(
          .anotherAccountSignedIn, "another account is signed in: use that account's profile")
      }
      // 0 is no generation that was seen.
      let generation = signedIn.generation &+ 1
      guard seenGeneration.exchange(generation, ordering: .relaxed) != generation else { return }
      registry.signIns.withLock { $0.see(owner, signedIn.generation) }
    }
  }
}
