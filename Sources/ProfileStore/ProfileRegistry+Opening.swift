import Foundation
import LMDB

// Opening and provisioning the profiles of accounts.
extension ProfileRegistry {
  /// Opens the account's own area, or provisions a fresh one.
  ///
  /// Opening needs the session to say the account, or an account that the hub has just verified;
  /// provisioning needs the latter. Unowned data never stands in the way: it stays as it is, and
  /// ``unownedProfile()`` asks for a decision afterwards.
  ///
  /// An area that is open already is given where the caller runs, without waiting for anybody; what
  /// is compared is the same. See ``Configuration/openAreaCountMax``.
  /// - Parameter session: counts for this profile instead of the registry's.
  /// - Throws: `proofRequired` when a fresh area is needed and the hub was not asked;
  ///   `anotherAccountSignedIn`, `notSignedIn`, `sessionUnknown`; `registryDisagrees`; `suspended`;
  ///   `storage`.
  /// - Cost: some microseconds when it is open; else about that of opening an environment. A fresh
  ///   one is several flushes of the disk.
  public nonisolated(nonsending) func profile(
    for account: VerifiedAccount, session: (any AccountSession)? = nil
  ) async throws -> Profile {
    let nearest = session ?? self.session
    try Self.requireProofOrSession(of: account, in: nearest)
    let bytes = account.bytes
    if let area = try openAlready(bytes) {
      try await noticeSignIn(of: account, in: nearest)
      try Self.requireProofOrSession(of: account, in: nearest)
      return Profile(area: area, registry: self, session: session)
    }
    var area = try await opening { () -> Area? in
      do {
        return try openOwned(account)
      } catch {
        // Another process may just be finishing an erase. Asked again under the lock, whose error
        // is the one that counts.
        return nil
      }
    }
    if area == nil {
      area = try await locked { [self] in
        try settleIntents(of: account.bytes)
        return try openOwned(account) ?? provision(for: account)
      }
    }
    try await noticeSignIn(of: account, in: nearest)
    // The session may have changed while this waited.
    try Self.requireProofOrSession(of: account, in: nearest)
    guard let area else { throw StoreError.unknownAccount }
    openAreas.keep(area, of: bytes)
    return Profile(area: area, registry: self, session: session)
  }

  /// The account's area when it is among those kept open, compared as when it is opened: account =
  /// registry = owner in the area, not erased, and its file in its place.
  /// - Returns: nil when it has to be looked for on disk.
  private func openAlready(_ owner: Data) throws -> Area? {
    guard let area = openAreas.use(owner) else { return nil }
    let known = try index.place(of: owner)
    // Another process may have erased others that this one only keeps.
    if known.hasIntents { try dropErased() }
    do {
      if known.area == area.id, area.isInPlace(), let found = try own(area, owner) { return found }
    } catch {
      // It may just be erased. Asked again on disk, whose error is the one that counts.
    }
    openAreas.drop(owner)
    return nil
  }

  /// Lets go of kept areas that were erased, so that their files can go.
  private func dropErased() throws {
    let erased = try index.snapshot().intents.filter { $0.value.kind == .erase }
    openAreas.drop(Set(erased.keys))
  }

  private static func requireProofOrSession(
    of account: VerifiedAccount, in session: any AccountSession
  ) throws {
    if account.clientTicket == nil { try require(account, in: session) }
  }

  /// Opens the account's existing area for maintenance (retry, discard, adopt, pending numbers)
  /// without a session; reading its data and enqueueing still ask the session.
  /// - Throws: `unknownAccount` when the store has no area of that account.
  public func profileForMaintenance(of account: VerifiedAccount) async throws -> Profile {
    let area = try await locked { [self] in try openOwned(account) }
    guard let area else { throw StoreError.unknownAccount }
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
      let unknown = StoreError(
        .unknownAccount, "this store has no profile of the account that is signed in: verify it")
      guard let account = VerifiedAccount(storedBytes: signedIn.account, proof: .area) else {
        throw unknown
      }
      do {
        return try await profile(for: account)
      } catch let error as StoreError where error.code == .proofRequired {
        throw unknown
      }
    }
  }

  /// Opens the account's area if it has one that is not erased.
  func openOwned(_ account: VerifiedAccount) throws -> Area? {
    let bytes = account.bytes
    guard let id = try index.area(of: bytes) else { return nil }
    do {
      return try own(try open(id), bytes)
    } catch {
      // An erase that is being finished explains that the directory is gone.
      if !Files.exists(directory(of: id)), try index.intent(id)?.kind == .erase { return nil }
      throw error
    }
  }

  /// The area, if it says that it is the account's; nil when it says that it was erased.
  private func own(_ area: Area, _ account: Data) throws -> Area? {
    let (owner, state) = try area.readState { transaction in
      (try area.tables.owner(transaction), try area.tables.state(transaction))
    }
    if state == .erased { return nil }
    guard owner == account else {
      throw StoreError.disagrees("the registry and an area disagree about the area's owner")
    }
    return area
  }

  private func provision(for account: VerifiedAccount) throws -> Area {
    guard let ticket = account.clientTicket else {
      throw StoreError(
        .proofRequired,
        "a fresh area needs the hub's word for its owner: verify the account online once")
    }
    try requireNoHiddenArea(of: account.bytes)
    let client = ticket.take()
    do {
      return try provision(owner: account.bytes) { tables, transaction in
        try tables.setOwner(account.bytes, &transaction)
        if let client {
          try tables.setClient(ClientIdentity(id: client, isRegistered: true), &transaction)
        }
      }
    } catch {
      ticket.giveBack(client)
      throw error
    }
  }

  /// Makes an area: intent, area, row.
  func provision(
    owner: Data?, fill: (AreaTables, inout WriteTransaction) throws -> Void
  ) throws -> Area {
    let id = AreaID(uuid: UUID())
    let now = policy.now()
    try index.write { $0.setIntent(id, Intent(kind: .provision, account: owner)) }
    policy.onStep(.provisionIntended)
    try Area.create(
      id, directory: directory(of: id), limits: policy.limits, createdAt: now,
      made: { policy.onStep(.provisionMade) },
      fill: { tables, transaction in
        try tables.setNumber(
          .recordKeeping, UInt64(RecordKeepingMark(policy).rawValue), &transaction)
        try fill(tables, &transaction)
      })
    policy.onStep(.provisionPlaced)
    try index.write { writing in
      writing.set(
        id, AreaRow(state: owner == nil ? .unowned : .owned, owner: owner, createdAt: now))
      writing.setIntent(id, nil)
    }
    return try open(id)
  }

  /// Before an account could get a second area: asks every area of which the registry does not say
  /// that it is somebody's. One that it gives to another account fails closed for that account; to
  /// ask those, too, would open every area of the store for each new account. One that cannot be read
  /// is passed over where the registry says that it has no owner.
  func requireNoHiddenArea(of owner: Data) throws {
    let owned = try index.ownedAreas()
    for id in try areasOnDisk() where !owned.contains(id) {
      let note = try index.note(of: id)
      if note.intent?.kind == .erase { continue }
      let (other, state): (Data?, AreaState)
      do {
        let area = try open(id)
        (other, state) = try area.readState { transaction in
          (try area.tables.owner(transaction), try area.tables.state(transaction))
        }
      } catch {
        // It stays listed with its problem.
        guard note.row == nil else { continue }
        throw error
      }
      guard other != owner || state == .erased else {
        throw StoreError.disagrees(
          "there is an area of this account that the registry does not know")
      }
    }
  }
}
