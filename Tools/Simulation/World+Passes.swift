import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync

// Passes and replays, with the app's part in them.
extension World {
  func pass(_ step: Step, _ life: Life) {
    guard let account = signedIn(life) else { return }
    begin("pass of \(account)", life) { [self] life in
      let (profile, verified) = try await profile(of: account, life)
      do {
        return text(try await synchronize(profile, verified, account, life))
      } catch let error as SyncError
        where error.code == .epochChanged || error.code == .appStoreBehind
      {
        // Half of the apps do at once what the error asks for.
        guard step.a % 2 == 0 else { throw error }
        return "\(error.code), then \(try await replayAll(profile, verified, account, life))"
      }
    }
  }

  func replay(_ step: Step, _ life: Life) {
    guard let account = signedIn(life) else { return }
    begin("replay of \(account)", life) { [self] life in
      let (profile, verified) = try await profile(of: account, life)
      return try await replayAll(profile, verified, account, life)
    }
  }

  /// A replay and all its legs.
  func replayAll(
    _ profile: Profile, _ verified: VerifiedAccount, _ account: Int, _ life: Life
  ) async throws -> String {
    var report = try await synchronize(profile, verified, account, life, replaying: true)
    var texts = [text(report)]
    while let continuation = report.continuation {
      report = try await synchronize(
        profile, verified, account, life, continuing: continuation)
      texts.append(text(report))
    }
    return texts.joined(separator: "; ")
  }

  private func text(_ report: SyncReport) -> String {
    "sent \(report.sent) acknowledged \(report.acknowledged) parked \(report.parked) "
      + "pages \(report.pages) delivered \(report.delivered) lost \(report.lostAtHub)"
      + (report.isComplete ? "" : " and has more")
  }

  nonisolated(nonsending) func synchronize(
    _ profile: Profile, _ verified: VerifiedAccount, _ account: Int, _ life: Life,
    replaying: Bool = false, continuing continuation: ReplayContinuation? = nil
  ) async throws -> SyncReport {
    try carryOver(into: profile, of: verified, life)
    let resolver = random.happens(perThousand: 300) ? resolver(account, life) : nil
    if life.device.keepsRecords {
      if let continuation {
        return try await profile.synchronize(
          account: verified, continuing: continuation, resolve: resolver)
      }
      return try await profile.synchronize(
        account: verified, replayFromStart: replaying, resolve: resolver)
    }
    let position = life.device.apps[profile.id]?.position ?? .start
    if let continuation {
      return try await profile.synchronize(
        account: verified, continuing: continuation, resolve: resolver
      ) { try await apply($0, account, verified.bytes, profile.id, life) }
    }
    return try await profile.synchronize(
      account: verified, replayFromStart: replaying, appPosition: position, resolve: resolver
    ) { try await apply($0, account, verified.bytes, profile.id, life) }
  }

  /// The app saves a batch: in one step, after or before some time, or not at all.
  private nonisolated(nonsending) func apply(
    _ batch: borrowing ChangeBatch, _ account: Int, _ owner: Data, _ area: AreaID, _ life: Life
  ) async throws {
    if !isSettling, random.happens(perThousand: 60) { throw AppFailure() }
    for _ in 0..<random.number(below: 3) { await Task.yield() }
    try Task.checkCancellation()
    guard isLiving(life) else { throw Dead() }
    var app = life.device.apps[area] ?? AppStore(owner: owner)
    let changes = try batch.changes(localOwner: app.owner).copies()
    var found = CanarySet()
    for change in changes {
      found.formUnion(machine.canaries(in: change.record.bytes))
      if let payload = change.payload { found.formUnion(machine.canaries(in: payload)) }
    }
    violate(isolation(found, account: account, place: "a batch for account \(account)"))
    app.save(changes, batch.position)
    let names = changes.map { "\($0.record.text)@\($0.version)" }.joined(separator: " ")
    note("app of \(account) on \(life.device.number) saves \(batch.position.number): \(names)")
    life.device.apps[area] = app
    if !isSettling, random.happens(perThousand: 60) { throw AppFailure() }
    for _ in 0..<random.number(below: 3) { await Task.yield() }
  }

  private func resolver(_ account: Int, _ life: Life) -> ConflictResolver {
    ConflictResolver { [self] conflict in
      await Task.yield()
      guard isLiving(life) else { throw Dead() }
      switch random.number(below: 4) {
      case 0: return nil
      case 1:
        ledger.giveUp(conflict.mutation)
        return .keepHub
      case 2:
        ledger.giveUp(conflict.mutation)
        return .keepLocal
      default:
        ledger.giveUp(conflict.mutation)
        return .merged(payload(people[account].canary))
      }
    }
  }

  /// Keeping synchronized begins, or ends.
  func keep(_ step: Step, _ life: Life) {
    guard let account = signedIn(life) else { return }
    if let number = life.keeping[account] {
      note("cancel \(number)")
      life.tasks[number]?.cancel()
      return
    }
    life.keeping[account] = begin("keep of \(account)", life) { [self] life in
      defer { life.keeping[account] = nil }
      let (profile, verified) = try await profile(of: account, life)
      try carryOver(into: profile, of: verified, life)
      let pace = SyncPace(stopping: step.a % 2 == 0 ? .throwing : .reporting)
      if life.device.keepsRecords {
        try await profile.keepSynchronized(account: verified, pace: pace)
      } else {
        try await profile.keepSynchronized(
          account: verified, appPosition: life.device.apps[profile.id]?.position ?? .start,
          pace: pace
        ) { try await apply($0, account, verified.bytes, profile.id, life) }
      }
      return "ended"
    }
  }
}
