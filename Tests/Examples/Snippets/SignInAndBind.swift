import Foundation
import Holdfast

func beforeSigningIn(registry: ProfileRegistry, session: AppSession) async throws {
  session.restore(account: nil, token: nil)
  let guest = try await registry.unownedProfile()
  try await guest.enqueue(.put("note/1", Data("Buy bread".utf8)), account: nil)
}

func question(registry: ProfileRegistry, token: String) async throws -> String? {
  let account = try await registry.verify(token: token)
  guard let unowned = try await registry.unownedSummary() else { return nil }
  return "Add \(unowned.records) notes on this device to \(account.id.text)?"
}

func adopt(
  registry: ProfileRegistry, session: AppSession, account: VerifiedAccount, token: String
) async throws -> Profile {
  let guest = try await registry.unownedProfile()
  let profile = try await guest.bindAccount(account, adoptingUnownedData: true)
  session.signIn(account, token: token)
  return profile
}

func decline(
  registry: ProfileRegistry, session: AppSession, account: VerifiedAccount, token: String
) async throws -> Profile {
  try await registry.setAsideUnowned(decidedBy: account)
  let profile = try await registry.profile(for: account)
  session.signIn(account, token: token)
  return profile
}

func keep(
  registry: ProfileRegistry, session: AppSession, account: VerifiedAccount, token: String
) async throws -> Profile {
  try await registry.keepUnowned(decidedBy: account)
  let profile = try await registry.profile(for: account)
  session.signIn(account, token: token)
  return profile
}

func adoptLater(
  registry: ProfileRegistry, account: VerifiedAccount
) async throws -> Profile? {
  guard let summary = try await registry.setAsideAreas().last else { return nil }
  return try await registry.adopt(summary.area, by: account)
}

func savingTheChoice(guest: Profile, account: VerifiedAccount) async throws -> Profile {
  return try await guest.bindAccount(account, adoptingUnownedData: true) { transaction, binding in
    let choices = try binding.table("choices", key: TextCodec.self, value: TextCodec.self)
    try transaction.put("adopted", for: "guest notes", in: choices)
    // Where the account has an area already, the app carries its own tables over from the guest's.
    guard let source = binding.source else { return }
    let old = try source.table("choices", key: TextCodec.self, value: TextCodec.self)
    if let theme = try source.read({ try $0.value(of: "theme", in: old) }) {
      _ = try transaction.putIfAbsent(theme, for: "theme", in: choices)
    }
  }
}
