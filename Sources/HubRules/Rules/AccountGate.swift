package import Foundation
package import HubProtocol

/// Why an account's request is not served, as the store found it in the transaction that counts.
package enum AccountRefusal: Hashable, Sendable {
  case disabled
  case erased
  case epochChanged(epoch: UUID, lineage: [LineageEntry])
  case cursorExpired(minimumCursor: UInt64)
  /// A cursor lies above the high water, and the last such fork is too recent.
  case forkedTooRecently(retryAfterSeconds: Int64)
}

/// What a request that names an epoch and a cursor meets, in the order of the protocol's checks.
package enum GateOutcome: Hashable, Sendable {
  case pass
  case refused(AccountRefusal)
  /// The cursor lies above the high water: the account takes a new epoch, then the answer is
  /// `epoch_changed`. Some copy of the history knew more than this hub does.
  case mustFork
}

/// What a request says about where it stands.
package struct CursorClaim: Hashable, Sendable {
  package var epoch: UUID
  /// `after` of a pull, `cursor` of a push: it may not lie above the high water.
  package var cursor: UInt64
  /// `until` of a pull where there is one, else the cursor: it may not lie below the minimum. A scan
  /// from zero needs no tombstone older than its start.
  package var newestWanted: UInt64

  package init(epoch: UUID, cursor: UInt64, newestWanted: UInt64? = nil) {
    self.epoch = epoch
    self.cursor = cursor
    self.newestWanted = newestWanted ?? cursor
  }
}

extension AccountState {
  /// Whether the account is served at all.
  package var statusRefusal: AccountRefusal? {
    switch status {
    case .active: nil
    case .disabled: .disabled
    case .erased: .erased
    }
  }

  /// Disabled or erased, epoch, above the high water, below the minimum: the first that fails.
  package func gate(_ claim: CursorClaim) -> GateOutcome {
    if let refusal = statusRefusal { return .refused(refusal) }
    guard claim.epoch == epoch else {
      return .refused(.epochChanged(epoch: epoch, lineage: lineage))
    }
    guard claim.cursor <= highWater else { return .mustFork }
    guard claim.newestWanted >= minimumCursor else {
      return .refused(.cursorExpired(minimumCursor: minimumCursor))
    }
    return .pass
  }

  /// Begins the new epoch that a cursor above the high water calls for, at most once a minute.
  /// - Parameter now: seconds since 1970.
  /// - Returns: the answer; the state has changed exactly if it is `epochChanged`.
  package mutating func forkByCursor(to new: UUID, now: Int64) -> AccountRefusal {
    if let last = lastCursorForkAt {
      let elapsed = now - last
      // A clock that was set back must not lock the account out for longer than the interval.
      if elapsed >= 0, elapsed < AccountState.cursorForkIntervalSeconds {
        return .forkedTooRecently(
          retryAfterSeconds: AccountState.cursorForkIntervalSeconds - elapsed)
      }
    }
    lastCursorForkAt = now
    beginEpoch(new, forkedAt: highWater)
    return .epochChanged(epoch: epoch, lineage: lineage)
  }
}
