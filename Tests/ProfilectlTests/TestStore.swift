import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Testing

/// A store in a directory of its own, as an app in this process makes it; removed afterwards.
final class TestStore {
  static let hub = uuid("11111111-1111-4111-8111-111111111111")
  static let epoch = uuid("22222222-2222-4222-8222-222222222222")
  static let now = Date(timeIntervalSince1970: 1_767_322_245)

  let session = AppSession()
  let registry: ProfileRegistry
  private let root: TemporaryDirectory

  /// - Parameter onStep: what happens between two durable steps, with the store's directory.
  init(onStep: @escaping @Sendable (OwnershipStep, URL) -> Void = { _, _ in }) throws {
    root = try TemporaryDirectory()
    let directory = root.url
    var configuration = ProfileRegistry.Configuration()
    configuration.now = { Self.now }
    configuration.onStep = { onStep($0, directory) }
    registry = try ProfileRegistry(
      directory: directory, session: session, configuration: configuration)
  }

  var directory: URL { root.url }

  static func uuid(_ text: String) -> UUID {
    guard let uuid = UUID(uuidString: text) else { preconditionFailure("\(text) is no UUID") }
    return uuid
  }

  static func account(_ id: String) throws -> VerifiedAccount {
    VerifiedAccount(
      hub: hub, id: try AccountID(id), proof: .hub(ClientTicket(client: UUID())))
  }

  /// The account's profile, and the account signed in.
  func profile(of account: VerifiedAccount) async throws -> Profile {
    let profile = try await registry.profile(for: account)
    session.signIn(account, token: "token")
    return profile
  }

  /// Settles mutations as a hub would answer.
  func settle(_ settlements: [(UUID, Settlement)], of profile: Profile) async throws {
    let orders = Dictionary(
      uniqueKeysWithValues: try profile.outbox().map { ($0.mutation, $0.order) })
    try await profile.area.settle(
      settlements.map { (order: orders[$0.0] ?? 0, mutation: $0.0, settlement: $0.1) },
      epoch: Self.epoch, highWater: 40, policy: registry.policy)
  }

  func path(of area: AreaID) -> String {
    "areas/\(area.description.prefix(2))/\(area)"
  }

  /// Runs the tool in a process of its own, on the store that is open here.
  func runProgram(
    _ words: [String], outputWithoutReader lost: Pipe? = nil
  ) async throws -> ToolRun {
    try await ToolRun.inOwnProcess(directory, words, outputWithoutReader: lost)
  }

  /// The store's files as they are now, elsewhere and open nowhere; lock files stay behind, since
  /// reading them here would drop this process's locks.
  func copied() throws -> StoreCopy {
    try StoreCopy(of: directory)
  }
}

/// A copy of a store that no process has open; removed afterwards.
final class StoreCopy: Sendable {
  let root: TemporaryDirectory

  init(of original: URL) throws {
    root = try TemporaryDirectory()
    let directory = root.url
    let items = try FileTree(original).items
    for name in items.keys.sorted() where !name.hasSuffix(".lock") && !name.hasSuffix("lock.mdb") {
      let target = directory.appending(path: name)
      if items[name]?.content == nil {
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
      } else {
        try FileManager.default.copyItem(at: original.appending(path: name), to: target)
      }
    }
  }

  var directory: URL { root.url }

  /// Runs the tool in this process.
  func run(_ words: [String], terminalOf columns: Int? = nil) async -> ToolRun {
    await ToolRun.inProcess(directory, words, terminalOf: columns)
  }

  /// Runs the tool in a process of its own.
  func runProgram(_ words: [String]) async throws -> ToolRun {
    try await ToolRun.inOwnProcess(directory, words)
  }

  func file(_ name: String) -> URL { directory.appending(path: name) }

  /// Changes a value of an environment behind the store's back.
  func put(_ value: [UInt8], for key: String, in environment: String) throws {
    let environment = try Environment.open(at: file(environment).path)
    let values = try environment.table("values", key: TextCodec.self, value: BytesCodec.self)
    try environment.writeBlocking { try $0.put(value, for: key, in: values) }
    try environment.close()
    // The copy shall be one again that nobody has opened.
    try FileManager.default.removeItem(atPath: environment.path + "/lock.mdb")
  }
}
