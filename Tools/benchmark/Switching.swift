import CBench
import Foundation
import HubProtocol
import LMDB
import Measuring
import ProfileStore

/// R6: signing another account in and opening its profile, among many that the registry knows.
///
/// Some of the known accounts have an area on this disk and are switched to; the others are rows of the
/// registry only, which is what a switch has to do with them.
final class Switching {
  private static let areasByDefault = 256
  private static let knownByDefault = 10_000
  private static let openCount = 32
  private static let openSwitches = 4_000

  private let context: Context
  private let directory: String
  private let copies: String
  private let accounts: [VerifiedAccount]
  private let ids: [AreaID]
  private let paths: PathList
  private let few: KnownAccounts
  private let many: KnownAccounts

  init(_ context: Context) throws {
    self.context = context
    directory = try context.freshDirectory()
    copies = try context.freshDirectory()
    let scale = min(1, Double(context.documents.count) / 50_000)
    let areaCount = max(8, Int(Double(Self.areasByDefault) * scale))
    let hub = UUID()
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(
      directory: URL(filePath: directory, directoryHint: .isDirectory), session: session)
    let proven = try (0..<areaCount).map { number in
      SignedInStore.account(try AccountID("switched-\(number)"), hub: hub)
    }
    let made = try blocking {
      var made: [(AreaID, String)] = []
      for account in proven {
        let profile = try await registry.profile(for: account)
        made.append((profile.id, profile.area.directory))
      }
      return made
    }
    ids = made.map(\.0)
    // From here on the session alone opens them, as on any other day.
    accounts = proven.map { VerifiedAccount(hub: hub, id: $0.id, proof: .area) }
    paths = PathList(made.indices.map { [copies] in "\(copies)/\($0)" })
    for (index, area) in made.enumerated() {
      try DataCopy.make(of: area.1 + "/data.mdb", in: paths.paths[index])
    }
    _ = try KnownAccounts(
      in: registry, count: max(0, Int(Double(Self.knownByDefault) * scale) - areaCount))
    few = try KnownAccounts(context, count: 10)
    many = try KnownAccounts(context, count: Int(100_000 * scale))
    // What an engine does to a store once and for all is no part of opening it.
    _ = try closedC()
    _ = try closed()
  }

  func remove() throws {
    try context.remove(directory)
    try context.remove(copies)
  }

  func groups() -> [Group] {
    [
      Group(
        .switching, Metric.switchClosed.name, pairedRounds: 11,
        [Subject(.c) { [self] in try closedC() }, Subject(.holdfast) { [self] in try closed() }]),
      Group(
        .switching, Metric.switchOpen.name, pairedRounds: 11,
        [Subject(.holdfast) { [self] in try open() }]),
      Group(
        .switching, "lookups", pairedRounds: 21,
        [
          Subject(.holdfast) { [self] in [(.lookupFew, try few.microseconds())] },
          Subject(.holdfast) { [self] in [(.lookupMany, try many.microseconds())] },
        ]),
    ]
  }

  // MARK: - Closed

  /// Opens each environment, reads who owns it and closes it.
  private func closedC() throws -> [(Metric, Double)] {
    var times = [UInt64](repeating: 0, count: paths.count)
    let code = cbench_lmdb_owners(paths.pointers, paths.count, Context.mapByteCount, &times)
    guard code == 0 else {
      throw BenchFailure(sentence: "c: owners: \(String(cString: cbench_lmdb_message(code)))")
    }
    return [(.switchClosed, Self.microseconds(times))]
  }

  /// Opens each profile for the first time in a fresh registry. The one before is given up meanwhile.
  private func closed() throws -> [(Metric, Double)] {
    let (registry, session) = try openRegistry()
    let (times, commits) = try blocking { [accounts, ids] in
      var times: [UInt64] = []
      let registryCommits = registry.index.environment.commitCount
      var commits: UInt64 = 0
      var current: Profile?
      for (account, id) in zip(accounts, ids) {
        let start = cbench_now()
        session.signIn(account, token: "token")
        current = try await registry.profile(for: account)
        times.append(cbench_now() - start)
        guard let current, current.id == id else {
          throw Disagreement(sentence: "holdfast: another account's profile was opened")
        }
        commits += current.area.environment.commitCount
      }
      return (times, commits + registry.index.environment.commitCount - registryCommits)
    }
    return [
      (.switchClosed, Self.microseconds(times)),
      (.switchCommits, Double(commits) / Double(times.count)),
    ]
  }

  private func openRegistry() throws -> (ProfileRegistry, AppSession) {
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(
      directory: URL(filePath: directory, directoryHint: .isDirectory), session: session)
    return (registry, session)
  }

  // MARK: - Open

  /// Switches among profiles that somebody holds.
  private func open() throws -> [(Metric, Double)] {
    let (registry, session) = try openRegistry()
    let times = try blocking { [accounts] in
      var held: [Profile] = []
      for account in accounts.prefix(Self.openCount) {
        session.signIn(account, token: "token")
        held.append(try await registry.profile(for: account))
      }
      var times: [UInt64] = []
      for number in 0..<Self.openSwitches {
        let place = number % held.count
        let start = cbench_now()
        session.signIn(accounts[place], token: "token")
        let profile = try await registry.profile(for: accounts[place])
        times.append(cbench_now() - start)
        guard profile.id == held[place].id else {
          throw Disagreement(sentence: "holdfast: another account's profile was opened")
        }
      }
      return times
    }
    return [(.switchOpen, Self.microseconds(times))]
  }

  private static func microseconds(_ times: [UInt64]) -> Double {
    Summary(times.map { Double($0) }).map { $0.median / 1_000 } ?? 0
  }
}

/// Accounts of which a registry knows; their areas are on no disk.
struct KnownAccounts {
  private static let lookups = 20_000

  private let registry: ProfileRegistry
  private let asked: [(owner: Data, area: AreaID)]

  /// A registry of its own.
  init(_ context: Context, count: Int) throws {
    let session = AppSession()
    session.signOut()
    let directory = URL(filePath: try context.freshDirectory(), directoryHint: .isDirectory)
    try self.init(
      in: ProfileRegistry(directory: directory, session: session), count: count)
  }

  /// Adds rows to a registry, in one transaction.
  init(in registry: ProfileRegistry, count: Int) throws {
    self.registry = registry
    let hub = UUID()
    let rows = try (0..<count).map { number in
      let account = SignedInStore.account(try AccountID("known-\(number)"), hub: hub)
      return (owner: account.bytes, area: AreaID(uuid: UUID()))
    }
    let now = Date()
    try registry.index.write { writing in
      for row in rows {
        writing.set(row.area, AreaRow(state: .owned, owner: row.owner, createdAt: now))
      }
    }
    var random = SplitMix64(seed: Documents.seed + 6)
    // Each question lies in memory of its own, however few accounts there are.
    asked =
      count == 0
      ? []
      : (0..<Self.lookups).map { _ in
        let row = rows[random.next(below: count)]
        return (Data(Array(row.owner)), row.area)
      }
  }

  /// How long it takes to find the area of an account.
  func microseconds() throws -> Double {
    let start = cbench_now()
    for (owner, area) in asked {
      guard try registry.index.area(of: owner) == area else {
        throw Disagreement(sentence: "holdfast: the registry found another area")
      }
    }
    return Double(cbench_now() - start) / 1_000 / Double(asked.count)
  }
}
