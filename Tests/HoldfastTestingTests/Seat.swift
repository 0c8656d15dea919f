import Foundation
import HoldfastTesting
import ProfileStore
import ProfileSync

/// A device with a hub in memory, a session on cue, and a store in a directory of its own.
struct Seat {
  let hub = MemoryHub()
  let session = CuedSession()
  let registry: ProfileRegistry
  private let directory = Directory()

  /// Removes itself when nothing holds it any more.
  private final class Directory: Sendable {
    let url = FileManager.default.temporaryDirectory.appending(
      path: "seat-\(UUID())", directoryHint: .isDirectory)
    // What cannot be removed lies in the system's own place for such things.
    deinit { try? FileManager.default.removeItem(at: url) }
  }

  init(keeping recordKeeping: ProfileRegistry.RecordKeeping = .area) throws {
    session.signOut()
    registry = try ProfileRegistry(
      directory: directory.url, session: session,
      configuration: .init(recordKeeping: recordKeeping))
    registry.connect(to: session.watching(hub))
  }

  /// Signs an account in and opens its area.
  func signIn(_ name: String) async throws -> (account: VerifiedAccount, profile: Profile) {
    let token = hub.token(for: name)
    let account = try await registry.verify(token: token)
    let profile = try await registry.profile(for: account)
    session.signIn(account, token: token)
    return (account, profile)
  }
}
