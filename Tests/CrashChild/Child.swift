import CCrashSteps
import Foundation
import HubClient
import HubProtocol
import LMDB
import ProfileStore
import ProfileSync
import Synchronization

/// Writes a line with one call, so that a kill cannot cut it.
func say(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(1, bytes, bytes.count)
}

/// An error in words that a test can compare: its code, and that of its cause.
func describe(_ error: any Error) -> String {
  switch error {
  case let error as StoreError:
    "store \(error.code) \(error.cause.map { "\($0.code)" } ?? "-") \(error.message)"
  case let error as SyncError:
    "sync \(error.code)"
  case let error as LMDBError: "lmdb \(error.code)"
  default: "untyped \(type(of: error)) \(error)"
  }
}

/// What the command line says: a story, the store's directory, what happens at which step, and where
/// the hub is if the story needs one.
struct Child {
  struct BadWords: Error {}

  /// The hub of accounts that no hub has to be asked about.
  private static let hubID = UUID(uuid: (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))

  let story: String
  let directory: URL
  private let action: crash_steps_action
  private let place: UInt
  private let words: [String]

  /// - Parameter arguments: story, directory, `count|kill|fill`, number of the step, and what the
  ///   story needs besides.
  init(_ arguments: ArraySlice<String>) throws {
    let all = Array(arguments)
    guard all.count >= 4, let place = UInt(all[3]) else { throw BadWords() }
    story = all[0]
    directory = URL(filePath: all[1], directoryHint: .isDirectory)
    switch all[2] {
    case "count": action = crash_steps_count
    case "kill": action = crash_steps_kill
    case "fill": action = crash_steps_fill
    default: throw BadWords()
    }
    self.place = place
    words = Array(all.dropFirst(4))
  }

  func word(_ place: Int) throws -> String {
    guard place < words.count else { throw BadWords() }
    return words[place]
  }

  func number(_ place: Int) throws -> Int {
    guard let number = Int(try word(place)) else { throw BadWords() }
    return number
  }

  /// From here on each step counts.
  func begin() {
    // Beside the store: on its disk, and no part of it.
    let ballast = directory.deletingLastPathComponent().appending(path: "ballast").path
    crash_steps_begin(place, action, ballast)
  }

  /// Says that the story came to its end.
  func end() {
    _ = crash_steps_end()
    say("done")
  }

  func openStore(
    keeping recordKeeping: ProfileRegistry.RecordKeeping = .area, session: AppSession = AppSession()
  ) throws -> ProfileRegistry {
    if case .unknown = session.state { session.signOut() }
    var configuration = ProfileRegistry.Configuration(recordKeeping: recordKeeping)
    configuration.onStep = { crash_steps_reach($0.rawValue) }
    return try ProfileRegistry(
      directory: directory, session: session, configuration: configuration)
  }

  /// An account as a hub has just verified it.
  func verified(_ name: String) throws -> VerifiedAccount {
    VerifiedAccount(
      hub: Self.hubID, id: try AccountID(name), proof: .hub(ClientTicket(client: UUID())))
  }

  /// A profile of an account that is signed in from then on.
  func signIn(
    _ name: String, _ registry: ProfileRegistry
  ) async throws -> (account: VerifiedAccount, profile: Profile) {
    let account = try verified(name)
    let profile = try await registry.profile(for: account)
    guard let session = registry.session as? AppSession else { throw BadWords() }
    session.signIn(account, token: "token")
    return (account, profile)
  }

  /// The commits of an area are steps, too.
  func watch(_ profile: Profile) {
    profile.area.onCommit.withLock { hook in
      hook = { crash_steps_reach($0 == .commits ? "commits" : "committed") }
    }
  }

  /// Something that can be looked for in files.
  func canary(_ name: String, _ record: String) -> Data { Data("canary-\(name) \(record)".utf8) }
}
