package import Foundation
package import HubProtocol

/// Whether an account is served.
package enum AccountStatus: UInt8, Sendable, Hashable {
  case active = 0
  case disabled = 1
  case erased = 2
}

/// What the hub keeps of an account beside its records: the value on which every rule decides.
package struct AccountState: Hashable, Sendable {
  package var status: AccountStatus
  package var epoch: UUID
  /// The epochs that were left, oldest first, without the current one.
  package var lineage: [LineageEntry]
  /// The last sequence given; 0 before the first.
  package var highWater: UInt64
  /// Tombstones below it are purged.
  package var minimumCursor: UInt64
  /// Results below it are purged.
  package var idempotencyFloor: UInt64
  /// When a cursor above the high water last made a new epoch, seconds since 1970.
  package var lastCursorForkAt: Int64?

  /// The highest sequence: what JSON carries exactly.
  package static let sequenceMax: UInt64 = 1 << 53 - 1
  /// The longest lineage; the oldest entries go, which clients read as `forkedAt` 0.
  package static let lineageCountMax = 256
  /// The shortest time between two forks of one account by a cursor, in seconds.
  package static let cursorForkIntervalSeconds: Int64 = 60

  /// The state of an account that nobody has used yet.
  package init(epoch: UUID) {
    status = .active
    self.epoch = epoch
    lineage = []
    highWater = 0
    minimumCursor = 0
    idempotencyFloor = 0
    lastCursorForkAt = nil
  }

  /// Begins a new epoch: up to `forkedAt`, history stays what it was.
  ///
  /// A fork lowers every older `forkedAt` above it, since what was shared with that epoch is now
  /// shared only up to here.
  package mutating func beginEpoch(_ new: UUID, forkedAt: UInt64) {
    for index in lineage.indices {
      lineage[index].forkedAt = min(lineage[index].forkedAt, forkedAt)
    }
    lineage.append(LineageEntry(epoch: epoch, forkedAt: forkedAt))
    if lineage.count > AccountState.lineageCountMax {
      lineage.removeFirst(lineage.count - AccountState.lineageCountMax)
    }
    epoch = new
  }

  /// Raises the cursor below which tombstones are gone; it never exceeds the high water.
  package mutating func raiseMinimumCursor(to sequence: UInt64) {
    minimumCursor = max(minimumCursor, min(sequence, highWater))
  }

  /// Raises the sequence below which results are gone; it never exceeds the high water.
  package mutating func raiseIdempotencyFloor(to sequence: UInt64) {
    idempotencyFloor = max(idempotencyFloor, min(sequence, highWater))
  }

  /// What an administrator's erasure leaves: the epoch and lineage, so that none is used again.
  package mutating func erase() {
    status = .erased
    highWater = 0
    minimumCursor = 0
    idempotencyFloor = 0
  }

  /// Makes an erased account again: a new epoch that shares nothing with the past.
  package mutating func recreate(_ new: UUID) {
    status = .active
    highWater = 0
    minimumCursor = 0
    idempotencyFloor = 0
    beginEpoch(new, forkedAt: 0)
  }
}
