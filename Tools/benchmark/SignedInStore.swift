import CBench
import Foundation
import HubProtocol
import LMDB
import Measuring
import ProfileStore
import ProfileSync
import Synchronization

/// A store of profiles with one account signed in, as an app has it.
final class SignedInStore: Sendable {
  let registry: ProfileRegistry
  let session: AppSession
  let account: VerifiedAccount
  let profile: Profile

  private init(
    _ registry: ProfileRegistry, _ session: AppSession, _ account: VerifiedAccount,
    _ profile: Profile
  ) {
    self.registry = registry
    self.session = session
    self.account = account
    self.profile = profile
  }

  /// Makes a store with a fresh area for the account.
  /// - Parameter transport: the way to the account's hub; none for what needs no hub.
  static func make(
    in directory: String, _ account: VerifiedAccount,
    keeping: ProfileRegistry.RecordKeeping = .area, transport: (any HubTransport)? = nil
  ) throws -> SignedInStore {
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(
      directory: URL(filePath: directory, directoryHint: .isDirectory), session: session,
      configuration: .init(recordKeeping: keeping))
    if let transport { registry.connect(to: transport) }
    session.signIn(account, token: "token")
    let profile = try blocking { try await registry.profile(for: account) }
    return SignedInStore(registry, session, account, profile)
  }

  /// Makes a store with a fresh area for whoever a token names, as its hub says.
  static func make(
    in directory: String, token: String, transport: any HubTransport,
    keeping: ProfileRegistry.RecordKeeping = .area
  ) throws -> SignedInStore {
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(
      directory: URL(filePath: directory, directoryHint: .isDirectory), session: session,
      configuration: .init(recordKeeping: keeping))
    registry.connect(to: transport)
    let (account, profile) = try blocking {
      let account = try await registry.verify(token: token, clientName: "bench")
      session.signIn(account, token: token)
      return (account, try await registry.profile(for: account))
    }
    return SignedInStore(registry, session, account, profile)
  }

  /// An account as a hub would have verified it, with a client that is registered there.
  static func account(_ id: AccountID, hub: UUID) -> VerifiedAccount {
    VerifiedAccount(hub: hub, id: id, proof: .hub(ClientTicket(client: UUID())))
  }

  /// The same for a hub in memory.
  static func make(
    in directory: String, _ hub: PreparedHub, keeping: ProfileRegistry.RecordKeeping = .area
  ) throws -> SignedInStore {
    try make(in: directory, account(hub.account, hub: hub.id), keeping: keeping, transport: hub)
  }

  var environment: LMDB.Environment { profile.area.environment }
  var commitCount: UInt64 { environment.commitCount }
  var dataFile: String { profile.area.directory + "/data.mdb" }

  /// One pass of an app that keeps its records in the area.
  /// - Returns: the changes that were applied, the time, and the durable commits.
  func pass(replaying: Bool = false) throws -> Pass {
    var pass = Pass()
    let commits = commitCount
    let start = cbench_now()
    let report = try blocking { [profile, account] in
      try await profile.synchronize(account: account, replayFromStart: replaying)
    }
    pass.nanoseconds = cbench_now() - start
    pass.operations = report.delivered
    pass.commits = Int(commitCount - commits)
    return pass
  }

  /// One pass of an app that keeps its records there; a store of the app's own takes no time.
  func pushPass(_ keeping: ProfileRegistry.RecordKeeping) throws {
    guard keeping == .app else { return _ = try pass() }
    _ = try blocking { [profile, account] in
      try await profile.synchronize(account: account) { batch in
        _ = try batch.changes(localOwner: account.bytes)
      }
    }
  }

  /// Touches every record of the area.
  func seen() throws -> Pass {
    var pass = Pass()
    for record in try profile.records() {
      pass.digest ^= record.payload.withUnsafeBytes { cbench_touch($0.baseAddress, $0.count) }
      pass.operations += 1
    }
    return pass
  }
}

/// Runs a task from a thread that may block, and returns what it returns.
func blocking<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
  let result = Mutex<R?>(nil)
  try runBlocking {
    let value = try await body()
    result.withLock { $0 = value }
  }
  guard let value = result.withLock({ $0 }) else {
    preconditionFailure("a task ended without a result")
  }
  return value
}
