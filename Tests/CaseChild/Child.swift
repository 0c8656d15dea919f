import Foundation
import HubClient
import ProfileStore
import ProfileSync

/// Writes a line with one call, so that a kill cannot cut it.
func say(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(1, bytes, bytes.count)
}

/// Ends this process as nothing else does: at once, with nothing put away.
func endHere() -> Never {
  kill(getpid(), SIGKILL)
  while true { pause() }
}

/// What the command line says: a task, the hub's address, the store's directory, a token, and what the
/// task needs besides.
struct Child {
  struct BadWords: Error {}

  let task: String
  let hub: URL
  let directory: URL
  let token: String
  private let words: [String]

  init(_ arguments: ArraySlice<String>) throws {
    let all = Array(arguments)
    guard all.count >= 4, let hub = URL(string: all[1]) else { throw BadWords() }
    task = all[0]
    self.hub = hub
    directory = URL(filePath: all[2], directoryHint: .isDirectory)
    token = all[3]
    words = Array(all.dropFirst(4))
  }

  func word(_ place: Int) -> String? { place < words.count ? words[place] : nil }

  func number(_ place: Int) throws -> Int {
    guard let number = word(place).flatMap({ Int($0) }) else { throw BadWords() }
    return number
  }

  /// Opens the store and signs the account of the token in.
  func openStore(
    keeping recordKeeping: ProfileRegistry.RecordKeeping = .area,
    onStep: @escaping @Sendable (OwnershipStep) -> Void = { _ in },
    over transport: (any HubTransport)? = nil
  ) async throws -> (registry: ProfileRegistry, account: VerifiedAccount) {
    let session = AppSession()
    session.signOut()
    var configuration = ProfileRegistry.Configuration(recordKeeping: recordKeeping)
    configuration.onStep = onStep
    let registry = try ProfileRegistry(
      directory: directory, session: session, configuration: configuration)
    registry.connect(to: try transport ?? HubConnection(url: hub))
    let account = try await registry.verify(token: token, clientName: "child")
    session.signIn(account, token: token)
    return (registry, account)
  }

  /// The same, and the account's profile.
  func signIn(
    keeping recordKeeping: ProfileRegistry.RecordKeeping = .area,
    over transport: (any HubTransport)? = nil
  ) async throws -> (account: VerifiedAccount, profile: Profile) {
    let (registry, account) = try await openStore(keeping: recordKeeping, over: transport)
    return (account, try await registry.profile(for: account))
  }
}
