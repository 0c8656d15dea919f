package import Foundation
package import ProfileStore

/// What a pass was called for.
package enum PassGoal: Hashable, Sendable {
  /// Send, then pull.
  case ordinary
  /// From zero, again from its beginning.
  case replay
  /// The next leg of a replay.
  case continuing(scan: UUID)
}

/// One step of a pass: something that the runner does outside every lock and transaction.
package enum PassStep: Hashable, Sendable {
  /// `GET /v1/session` with a nonce.
  case verify
  /// `PUT /v1/clients/{client}`.
  case register
  /// Writes that a scan from zero has begun.
  case begin(ScanState.Kind, epoch: UUID, until: UInt64)
  /// Hands over the hub's versions of discarded mutations' records.
  case discards
  /// Asks the app what becomes of each conflict.
  case resolve
  /// Sends the outbox in batches.
  case push
  /// Brings one leg of the scan, and delivers it.
  case leg
  /// The legs are done: raises the cursor.
  case finishLegs
  /// Pulls pages from the cursor.
  case pull
  /// Delivers what the scan did not bring, and ends it.
  case finishScan
}
