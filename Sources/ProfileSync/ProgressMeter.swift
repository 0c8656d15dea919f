/// How much of a whole pass is done. A value.
///
/// Mutations and sequence numbers count alike: each is about one record on its way.
package struct ProgressMeter: Hashable, Sendable {
  private var sent: UInt64 = 0
  private var toSend: UInt64
  private var received: UInt64 = 0
  private var toReceive: UInt64 = 0
  /// The place at which receiving begins.
  private var start: UInt64
  private var shown = 0.0

  /// - Parameters:
  ///   - count: mutations that wait.
  ///   - cursor: where the pull begins.
  package init(sending count: UInt64, from cursor: UInt64) {
    toSend = count
    start = cursor
  }

  /// The hub has said where it stands.
  package mutating func expect(highWater: UInt64) {
    toReceive = highWater > start ? highWater - start : 0
  }

  /// - Parameters:
  ///   - completed: in mutations, or in sequence numbers, which are places.
  ///   - total: likewise.
  package mutating func advance(
    _ phase: SyncProgress.Phase, _ completed: UInt64, of total: UInt64
  ) -> SyncProgress {
    switch phase {
    case .sending:
      sent = completed
      toSend = max(total, completed)
    case .receiving:
      // A scan from zero begins below the cursor.
      if completed < start { start = 0 }
      received = completed - start
      toReceive = max(total, completed) - start
    }
    let all = toSend + toReceive
    if all > 0 { shown = max(shown, min(1, Double(sent + received) / Double(all))) }
    return SyncProgress(
      phase: phase, completed: completed, total: total, fractionCompleted: shown)
  }
}
