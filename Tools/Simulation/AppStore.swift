import Foundation
import HubProtocol
import ProfileStore
import ProfileSync

/// The store of an app that keeps its records itself, as one value: what is saved together is saved
/// at once, and an earlier value is a backup.
struct AppStore: Sendable {
  /// Bytes of the account that the document belongs to; none: somebody who was signed out.
  var owner: Data
  /// What the app shows.
  var rows: [RecordID: Data] = [:]
  /// The hub's versions that were handed over, also those that a local edit hides.
  var hub: [RecordID: Data] = [:]
  /// The records of which a version of the hub was shown.
  var delivered: Set<RecordID> = []
  var position = BatchPosition.start
  /// The records of batches that were saved, and whose acceptance the area may have lost with a crash.
  var doubtful: Set<RecordID> = []
  /// The records of the last batch.
  var last: Set<RecordID> = []
  /// Saved with their rows and not yet known to be in the outbox.
  var unsent: [Mutation] = []

  init(owner: Data) { self.owner = owner }

  /// Saves a batch.
  mutating func save(_ changes: [Change], _ position: BatchPosition) {
    for change in changes {
      hub[change.record] = change.payload
      // The app's own edit is newer.
      guard change.localEdit == .none, !unsent.contains(where: { $0.record == change.record })
      else { continue }
      rows[change.record] = change.payload
      delivered.insert(change.record)
    }
    self.position = position
    last = Set(changes.map(\.record))
    doubtful.subtract(last)
  }

  /// The area says which position it has accepted: the last batch is to be delivered again, unless the
  /// hub loses it before.
  mutating func compare(with accepted: BatchPosition) {
    if position > accepted { doubtful.formUnion(last) }
  }

  /// Takes over the rows of somebody who was signed out, where nothing else is shown.
  mutating func carryOver(_ guest: AppStore) {
    for (record, payload) in guest.rows where rows[record] == nil && !delivered.contains(record) {
      rows[record] = payload
    }
  }

  /// Saves an edit with its row, before it is enqueued.
  mutating func edit(_ mutation: Mutation) {
    rows[mutation.record] = mutation.payload
    unsent.append(mutation)
  }

  /// It is in the outbox.
  mutating func sent(_ mutation: UUID) { unsent.removeAll { $0.id == mutation } }

  /// It was refused: the row is the hub's again.
  mutating func refused(_ mutation: Mutation) {
    sent(mutation.id)
    rows[mutation.record] = hub[mutation.record]
  }
}
