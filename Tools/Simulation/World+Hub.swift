import Foundation
import HoldfastTesting

// The hub's operator.
extension World {
  func operate(_ step: Step) {
    let person = people[step.b % people.count]
    counts.faults += 1
    switch step.a % 6 {
    case 0:
      backups.append((hub.backUp(), people.map { hub.highWater(of: $0.id) }))
      note("hub: backup \(backups.count)")
    case 1:
      guard let backup = backups.last else { return }
      hub.restore(backup.content)
      for person in people {
        ledger.lose(above: backup.highWaters[person.number], of: person.number)
      }
      note("hub: restored")
    case 2:
      hub.beginEpoch(of: person.id)
      note("hub: new epoch of \(person.number)")
    case 3:
      hub.purgeTombstones(of: person.id)
      note("hub: tombstones of \(person.number) purged")
    case 4:
      hub.revokeTokens(of: person.id)
      note("hub: tokens of \(person.number) taken back")
    default:
      hub.erase(person.id)
      if step.c % 2 == 0 { hub.recreate(person.id) }
      ledger.lose(above: 0, of: person.number)
      note("hub: \(person.number) erased")
    }
  }
}
