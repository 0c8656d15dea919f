import Foundation
import Holdfast

func simplestApp(folder: URL, hub: URL, token: String) async throws {
  let session = AppSession()
  let registry = try ProfileRegistry(directory: folder, session: session, hub: hub)
  let account = try await registry.verify(token: token)
  let profile = try await registry.profile(for: account)
  session.signIn(account, token: token)
  try await profile.enqueue(.put("note/1", Data("Buy bread".utf8)), account: account)
  try await profile.synchronize(account: account)
  for record in try profile.records() { print(record.id.text, record.payload.count) }
}

func nextLaunch(
  folder: URL, hub: URL, savedAccount: Data?, savedToken: String?
) async throws -> Profile {
  let session = AppSession()
  let registry = try ProfileRegistry(directory: folder, session: session, hub: hub)
  session.restore(account: savedAccount, token: savedToken)
  let profile = try await registry.currentProfile()
  return profile
}
