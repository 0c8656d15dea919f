import Foundation
import ProfileStore
import ProfileSync

// Signing in, adopting, declining, erasing.
extension World {
  /// Verifies a token, decides about what nobody owns, signs in, opens the profile.
  func signIn(_ step: Step, _ life: Life) {
    let account = step.a % people.count
    begin("sign in \(account)", life) { [self] life in
      let token = token(for: account)
      let store = try life.store()
      let verified = try await store.verify(token: token, clientName: "simulated")
      var decision = "nothing"
      if let unowned = try await store.unownedSummary() {
        switch step.b % 5 {
        case 0, 1:
          decision = "adopt"
          hold(try await adopt(unowned.area, by: verified, account, life), life)
        case 2:
          decision = "set aside"
          _ = try await store.setAsideUnowned(decidedBy: verified)
        case 3:
          decision = "keep"
          try await store.keepUnowned(decidedBy: verified)
        default: break
        }
      }
      guard isLiving(life) else { throw Dead() }
      counts.switches += 1
      life.session.signIn(verified, token: token)
      life.device.signedIn = verified.bytes
      let profile = try await store.profile(for: verified)
      hold(profile, life)
      return "area \(profile.id), unowned: \(decision)"
    }
  }

  private func adopt(
    _ area: AreaID, by verified: VerifiedAccount, _ account: Int, _ life: Life
  ) async throws -> Profile {
    let isNew = addSuitor(account, of: area)
    do {
      return try await life.store().adopt(area, by: verified)
    } catch {
      // It was told so: nothing of it may be seen with this account. An earlier attempt may have been
      // cut off.
      if isNew, isLiving(life) { removeSuitor(account, of: area) }
      throw error
    }
  }

  /// An area that was set aside is adopted, or an adoption withdrawn.
  func adoptByName(_ step: Step, _ life: Life) {
    let account = step.a % people.count
    begin("adopt by name for \(account)", life) { [self] life in
      let store = try life.store()
      let areas = try await store.setAsideAreas()
      guard !areas.isEmpty else { return "none" }
      let area = areas[step.b % areas.count].area
      if step.c % 4 == 0 {
        try await store.withdrawAdoption(of: area, by: try verified(account))
        return "withdrew \(area)"
      }
      let verified = try await store.verify(token: token(for: account), clientName: "simulated")
      _ = try await adopt(area, by: verified, account, life)
      return "adopted \(area)"
    }
  }

  /// Erases an account's profile on this device, or an area of nobody.
  func erase(_ step: Step, _ life: Life) {
    let isDiscarding = step.b % 2 == 0
    if step.a % 3 == 0 { return eraseUnowned(step, isDiscarding, life) }
    let account = step.a % people.count
    begin("erase \(account)", life) { [self] life in
      try await erase(account, isDiscarding: isDiscarding, life)
      return "erased"
    }
  }

  func erase(_ account: Int, isDiscarding: Bool, _ life: Life) async throws {
    let adopted = adopted(by: account)
    try await erasing(life, { $0 == .account(account) || adopted.contains($0) }) {
      try await life.store().erase(try verified(account), discardingPending: isDiscarding)
    }
  }

  /// The guests whose changes an account may have.
  func adopted(by account: Int) -> Set<Ledger.Origin> {
    Set(guests.values.filter { $0.suitors.contains(account) }.map { .guest($0.canary) })
  }

  private func eraseUnowned(_ step: Step, _ isDiscarding: Bool, _ life: Life) {
    begin("erase unowned", life) { [self] life in
      let areas = try await life.store().setAsideAreas()
      guard !areas.isEmpty else { return "none" }
      let area = areas[step.c % areas.count].area
      let canary = guest(of: area, on: life.device)
      try await erasing(life, { $0 == .guest(canary) }) {
        try await life.store().eraseUnowned(area, discardingPending: isDiscarding)
      }
      return "erased \(area)"
    }
  }

  /// What is erased is given up, unless the call says that it was not.
  func erasing(
    _ life: Life, _ isTheirs: (Ledger.Origin) -> Bool, _ body: () async throws -> Void
  ) async throws {
    let device = life.device
    device.erasing += 1
    defer { device.erasing -= 1 }
    let gone = ledger.giveUp(on: device.number, where: isTheirs)
    do {
      try await body()
      // What came in until it was erased.
      _ = ledger.giveUp(on: device.number, where: isTheirs)
    } catch {
      if isLiving(life) {
        for mutation in gone { ledger.takeBack(mutation) }
      } else {
        _ = ledger.giveUp(on: device.number, where: isTheirs)
      }
      throw error
    }
  }
}
