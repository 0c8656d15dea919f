import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync

// Changes: of whoever is signed in, of nobody, and of somebody who is not.
extension World {
  /// The account that a session says, by its number.
  func signedIn(_ life: Life) -> Int? {
    guard case .account(let signedIn) = life.session.state else { return nil }
    return account(signedIn.account)
  }

  /// An account as the app knows it from what it has stored.
  func verified(_ account: Int) throws -> VerifiedAccount {
    VerifiedAccount(
      hub: hub.id, id: try AccountID(people[account].id), proof: .area)
  }

  /// The profile of an account, as an app gets it, and holds it from then on.
  func profile(of account: Int, _ life: Life) async throws -> (Profile, VerifiedAccount) {
    let verified = try verified(account)
    let profile = try await life.store().profile(for: verified)
    hold(profile, life)
    return (profile, verified)
  }

  func hold(_ profile: Profile, _ life: Life) {
    if !life.isDead { life.profiles[profile.id] = profile }
  }

  func enqueue(_ step: Step, _ life: Life) {
    let account = signedIn(life)
    begin("enqueue of \(account.map { "\($0)" } ?? "nobody")", life) { [self] life in
      guard let account else {
        let profile = try await life.store().unownedProfile()
        hold(profile, life)
        let canary = guest(of: profile.id, on: life.device)
        return try await enqueue(
          mutation(step, canary, in: nil), .guest(canary), as: nil, into: profile, life)
      }
      let (profile, verified) = try await profile(of: account, life)
      let mutation = try mutation(step, people[account].canary, in: profile)
      if !life.device.keepsRecords {
        var app = life.device.apps[profile.id] ?? AppStore(owner: verified.bytes)
        app.edit(mutation)
        if isLiving(life) { life.device.apps[profile.id] = app }
      }
      return try await enqueue(mutation, .account(account), as: verified, into: profile, life)
    }
  }

  /// Enqueues and writes down what was answered.
  private func enqueue(
    _ mutation: Mutation, _ origin: Ledger.Origin, as account: VerifiedAccount?,
    into profile: Profile, _ life: Life
  ) async throws -> String {
    ledger.offer(mutation.id, origin, on: life.device.number)
    do {
      let receipt = try await profile.enqueue(mutation, account: account)
      guard isLiving(life) else {
        ledger.answer(mutation.id, .unknown)
        throw Dead()
      }
      accept(mutation, receipt, profile.id, life)
      return "\(mutation.kind) \(mutation.record.text) \(mutation.id) \(receipt.outcome)"
    } catch {
      ledger.answer(mutation.id, isLiving(life) ? .refused : .unknown)
      // For the account or the session it stays on the app's list.
      if isLiving(life), Failure.isOfContent(error) {
        life.device.apps[profile.id]?.refused(mutation)
      }
      throw error
    }
  }

  private func accept(
    _ mutation: Mutation, _ receipt: EnqueueReceipt, _ area: AreaID, _ life: Life
  ) {
    counts.mutations += 1
    ledger.answer(mutation.id, .accepted)
    if guests[area] != nil, !life.device.keepsRecords {
      life.device.apps[area, default: AppStore(owner: Data())].rows[mutation.record] =
        mutation.payload
    }
    if receipt.outcome == .cancelledOut { ledger.giveUp(mutation.id) }
    if receipt.outcome == .alreadySettled {
      // An older list, from a backup: what the hub has since is newer than that edit.
      life.device.apps[area]?.refused(mutation)
    } else {
      life.device.apps[area]?.sent(mutation.id)
    }
  }

  /// An app with a store of its own moves the rows of what was adopted into the account's.
  func carryOver(into profile: Profile, of account: VerifiedAccount, _ life: Life) throws {
    let device = life.device
    guard !device.keepsRecords, isLiving(life) else { return }
    var app = device.apps[profile.id] ?? AppStore(owner: account.bytes)
    // It was bound where it lay.
    if app.owner.isEmpty { app.owner = account.bytes }
    for receipt in try profile.adoptionReceipts() {
      if let guest = device.apps.removeValue(forKey: receipt.source) { app.carryOver(guest) }
    }
    app.compare(with: BatchPosition(try profile.area.standing().position))
    device.apps[profile.id] = app
  }

  /// What the app's own store has saved and not handed over, as at each launch.
  func enqueueUnsent(_ account: Int, _ life: Life) async throws -> Int {
    let (profile, verified) = try await profile(of: account, life)
    let unsent = life.device.apps[profile.id]?.unsent ?? []
    for mutation in unsent {
      do {
        _ = try await enqueue(mutation, .account(account), as: verified, into: profile, life)
      } catch let error as StoreError where Failure.isOfContent(error) {
        continue
      }
      try await profile.strikeOff([mutation.id], account: verified)
    }
    return unsent.count
  }

  /// A change of one record of a few, so that devices meet; half of their IDs name their owner.
  private func mutation(
    _ step: Step, _ canary: Canary, in profile: Profile?
  ) throws -> Mutation {
    let number = random.number(below: 12)
    let record: RecordID =
      number % 2 == 0 ? "note/\(number)" : "own/\(canary.text)/\(number)"
    let base = try base(of: record, in: profile)
    // An app with a store of its own saves the UUID with its row.
    let isGiven = profile.map { !$0.registry.policy.keepsRecords } ?? (step.c % 3 == 0)
    let id = isGiven ? random.uuid() : nil
    if random.happens(perThousand: 200) { return .delete(record, base: base, mutation: id) }
    return .put(record, payload(canary), base: base, mutation: id)
  }

  /// A payload that names its owner, mostly short.
  func payload(_ canary: Canary) -> Data {
    lastSerial += 1
    let padding = random.happens(perThousand: 30) ? 5_000 : random.number(below: 60)
    return Data(
      "\(canary.text) \(lastSerial) \(String(repeating: "x", count: padding))".utf8)
  }

  private func base(of record: RecordID, in profile: Profile?) throws -> Mutation.Base? {
    switch random.number(below: 10) {
    case 0...4: return nil
    case 5: return .mustNotExist
    case 6: return .version(UInt64(random.number(from: 1, through: 40)))
    default:
      guard let profile else { return nil }
      return try profile.record(record).map(\.base)
    }
  }

  /// Changes under an account that is not the session's, or into an area that is not the account's.
  func trespass(_ step: Step, _ life: Life) {
    guard let account = signedIn(life) else { return }
    let other = people[(account + 1 + step.a % (people.count - 1)) % people.count].number
    let held = life.profiles.values.sorted { $0.id.description < $1.id.description }
    begin("trespass of \(other) beside \(account)", life) { [self] life in
      let generation = generation(life)
      let profile: Profile
      if step.b % 2 == 0, !held.isEmpty {
        profile = held[step.c % held.count]
      } else {
        (profile, _) = try await self.profile(of: account, life)
      }
      let canary = people[other].canary
      let mutation = Mutation.put("own/\(canary.text)/0", payload(canary))
      let claimed = try verified(other)
      do {
        _ = try await enqueue(mutation, .account(other), as: claimed, into: profile, life)
      } catch let error as StoreError {
        return "refused: \(error.code)"
      }
      // Somebody else may have signed in meanwhile, and rightly.
      if generation == self.generation(life), signedIn(life) == account {
        violate([
          Violation(
            .refusing, "a change of account \(other) was stored while \(account) was signed in")
        ])
      }
      return "stored"
    }
  }

  private func generation(_ life: Life) -> UInt64? {
    guard case .account(let signedIn) = life.session.state else { return nil }
    return signedIn.generation
  }
}
