import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore

// Conflicts, refusals, and what the hub has lost.
extension World {
  func decide(_ step: Step, _ life: Life) {
    guard let account = signedIn(life) else { return }
    begin("decide for \(account)", life) { [self] life in
      let (profile, verified) = try await profile(of: account, life)
      let parked = try profile.parked()
      guard !parked.isEmpty else { return "none" }
      let entry = parked[step.a % parked.count]
      return try await decide(entry, step.b % 6, profile, verified, account, life)
    }
  }

  /// Decides about one parked mutation; `way` is 0 to 5.
  func decide(
    _ entry: OutboxEntry, _ way: Int, _ profile: Profile, _ verified: VerifiedAccount,
    _ account: Int, _ life: Life
  ) async throws -> String {
    let seen = entry.parked?.current.map(\.version)
    switch way {
    case 0:
      return try await givingUp([entry.mutation], life) {
        let new = try await profile.retry(entry.mutation, account: verified)
        return "retried as \(new)"
      }
    case 1:
      return try await givingUp([entry.mutation], life) {
        try await profile.discard(entry.mutation, account: verified)
        return "discarded"
      }
    case 2:
      return try await resolve(entry, seen, .keepHub, profile, verified, life)
    case 3:
      return try await resolve(entry, seen, .keepLocal, profile, verified, life)
    case 4:
      let merged = payload(people[account].canary)
      return try await resolve(entry, seen, .merged(merged), profile, verified, life)
    default:
      let earlier = try profile.outbox().filter {
        $0.record == entry.record && $0.order <= entry.order
      }
      let put = Mutation.put(
        entry.record, payload(people[account].canary), mutation: random.uuid(),
        replacing: entry.mutation)
      return try await givingUp(earlier.map(\.mutation), life) {
        let receipt = try await profile.enqueue(put, account: verified)
        return "replaced by \(put.id), \(receipt.outcome)"
      }
    }
  }

  private func resolve(
    _ entry: OutboxEntry, _ seen: UInt64?, _ resolution: Resolution, _ profile: Profile,
    _ verified: VerifiedAccount, _ life: Life
  ) async throws -> String {
    try await givingUp([entry.mutation], life) {
      try await profile.resolve(
        entry.mutation, seen: seen, account: verified, resolution)
      return "resolved"
    }
  }

  /// Mutations that go with a decision, unless the call says that it was not taken.
  private func givingUp(
    _ mutations: [UUID], _ life: Life, _ body: () async throws -> String
  ) async throws -> String {
    for mutation in mutations { ledger.giveUp(mutation) }
    do {
      return try await body()
    } catch {
      if isLiving(life) { for mutation in mutations { ledger.takeBack(mutation) } }
      throw error
    }
  }

  /// What the hub has lost with an epoch goes up again.
  func sendAgain(_ step: Step, _ life: Life) {
    guard let account = signedIn(life) else { return }
    begin("send again for \(account)", life) { [self] life in
      let (profile, verified) = try await profile(of: account, life)
      if step.a % 2 == 0, life.device.keepsRecords {
        let lost = try profile.lostAtHub()
        try await profile.sendAgain(lost: lost, account: verified)
        return "\(lost.count) records"
      }
      let lost = try profile.acknowledgedButLost().map(\.entry.mutation)
      try await profile.sendAgain(acknowledged: lost, account: verified)
      return "\(lost.count) mutations"
    }
  }
}
