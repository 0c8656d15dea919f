import Foundation
import Holdfast

/// Opens the profile of the account that was signed in here before, without the network; the first
/// time the hub is asked whose token it is.
func openSignedIn(
  _ hub: URL, _ token: String, _ folder: URL
) async throws -> (profile: Profile, account: VerifiedAccount) {
  let session = AppSession()
  let registry = try ProfileRegistry(directory: folder, session: session, hub: hub)
  let saved = folder.appending(path: "signed-in")
  if FileManager.default.fileExists(atPath: saved.path) {
    session.restore(account: try Data(contentsOf: saved), token: token)
  } else {
    let account = try await registry.verify(token: token)
    _ = try await registry.profile(for: account)
    session.signIn(account, token: token)
    try account.bytes.write(to: saved, options: .atomic)
  }
  let profile = try await registry.currentProfile()
  guard let account = try profile.owner else { preconditionFailure("a signed-in profile is owned") }
  return (profile, account)
}
