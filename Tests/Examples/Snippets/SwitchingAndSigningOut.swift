import Foundation
import Holdfast

func signOut(profile: Profile, session: AppSession) throws -> String? {
  let pending = try profile.pendingSummary()
  session.signOut()
  return pending.isEmpty ? nil : "\(pending.count) changes are sent when you sign in again."
}

func switchTo(
  registry: ProfileRegistry, session: AppSession, token: String
) async throws -> Profile {
  let account = try await registry.verify(token: token)
  let profile = try await registry.profile(for: account)
  session.signIn(account, token: token)
  return profile
}

func erase(registry: ProfileRegistry, session: AppSession, account: VerifiedAccount) async throws {
  session.signOut()
  do {
    try await registry.erase(account)
  } catch let error as StoreError where error.code == .pendingMutations {
    print("\(error.pending?.count ?? 0) changes were never sent")
    try await registry.erase(account, discardingPending: true)
  }
}

func eraseSetAside(registry: ProfileRegistry) async throws {
  for summary in try await registry.setAsideAreas() {
    try await registry.eraseUnowned(summary.area, discardingPending: true)
  }
}

func otherProfiles(registry: ProfileRegistry) async throws {
  for info in try await registry.profiles() where info.state == .owned {
    print(info.owner?.id.text ?? "", info.records, "records,", info.pending.count, "waiting")
  }
}
