import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore

// Who may have whose bytes.
extension World {
  /// The canary of a signed-out area, given when it is first seen.
  func guest(of area: AreaID, on device: Device) -> Canary {
    if let guest = guests[area] { return guest.canary }
    let free = Canary.countMax - Canary.firstGuest
    // A world with more of them than there are canaries has several with one.
    let canary = Canary(Canary.firstGuest + guests.count % free)
    guests[area] = Guest(canary: canary, device: device.number, area: area)
    note("area \(area) of device \(device.number) has canary \(canary.number)")
    return canary
  }

  /// An account is about to adopt an area.
  /// - Returns: whether it has not tried before.
  func addSuitor(_ account: Int, of area: AreaID) -> Bool {
    guests[area]?.suitors.insert(account).inserted ?? false
  }

  /// It was told that it has not adopted it.
  func removeSuitor(_ account: Int, of area: AreaID) { guests[area]?.suitors.remove(account) }

  /// Whether what was written signed out may have become an account's.
  func mayBe(_ canary: Canary, of account: Int) -> Bool {
    guests.values.contains { $0.canary == canary && $0.suitors.contains(account) }
  }

  /// What an account's places may have.
  func allowed(_ account: Int) -> CanarySet {
    var allowed = CanarySet([people[account].canary])
    for guest in guests.values where guest.suitors.contains(account) {
      if guest.adopter == nil || guest.adopter == account { allowed.insert(guest.canary) }
    }
    return allowed
  }

  /// Looks at bytes of a place of an account. Who has something of a guest there has adopted it, for
  /// ever.
  func isolation(_ found: CanarySet, account: Int, place: String) -> [Violation] {
    let violations = Checks.isolation(found: found, allowed: allowed(account), place: place)
    for (area, guest) in guests
    where guest.adopter == nil && guest.suitors.contains(account) && found.contains(guest.canary) {
      guests[area]?.adopter = account
    }
    return violations
  }

  /// The account with those bytes.
  func account(_ bytes: Data) -> Int? {
    people.first { Data($0.id.utf8) == bytes.dropFirst(16) }?.number
  }

  /// What the hub has of an account.
  func look(atHubSpaceOf account: Int) {
    var found = CanarySet()
    for record in hub.records(of: people[account].id) {
      found.formUnion(machine.canaries(in: record.record.bytes))
      if let payload = record.payload { found.formUnion(machine.canaries(in: payload)) }
    }
    violate(isolation(found, account: account, place: "the hub's space of account \(account)"))
  }
}
