import Foundation
import HubProtocol
import ProfileStore

// Scans from zero: the first pull of an area, one that the hub or a new epoch forces, and replays.
// (Contract section 6.)
extension PassRunner {
  /// Stages the pages of one leg and hands them over once it is there whole.
  /// - Returns: whether there is more up to the scan's end.
  func bringLeg(_ apply: Apply) async throws -> Bool {
    let scan = try scan()
    let scratch = try Scratch(
      area: area, account: facts.owner, epoch: scan.epoch, until: scan.until, place: scan.place,
      byteCountMax: policy.limits.replayLegByteCountMax)
    let more: Bool
    do {
      let leg = try await download(scan, into: scratch)
      more = leg.more
      try await handOver(scan, scratch, place: leg.place, isLast: !leg.more, apply)
    } catch let stopped {
      // What stopped the leg counts. Files that could not be removed go at the next pass.
      do { try scratch.remove() } catch { throw stopped }
      throw stopped
    }
    try scratch.remove()
    return more
  }

  private func download(
    _ scan: ScanState, into scratch: Scratch
  ) async throws -> (place: UInt64, more: Bool) {
    var place = scan.place
    var byteCount = 0
    for _ in 0..<SyncLimits.legPageCountMax {
      let page = try await page(after: place, until: scan.until)
      try await scratch.stage(page.records)
      place = page.next
      byteCount += page.records.reduce(0) { $0 + ($1.payload?.count ?? 0) + $1.id.bytes.count }
      show(.receiving, place, of: max(scan.until, place))
      if !page.more { return (scan.until, false) }
      if byteCount >= policy.limits.replayLegByteCountMax { break }
    }
    return (place, true)
  }

  /// Every batch but the last of the last leg carries the position that the pass was given.
  private func handOver(
    _ scan: ScanState, _ scratch: Scratch, place: UInt64, isLast: Bool, _ apply: Apply
  ) async throws {
    let isReplay = scan.kind != .first
    func batch(after version: UInt64?) throws -> [IncomingChange] {
      try scratch.batch(
        after: version, limit: SyncLimits.batchCountMax, byteCountMax: SyncLimits.batchByteCountMax)
    }
    var changes = try batch(after: nil)
    guard !changes.isEmpty else {
      let nothing = HandedBatch(wanted: [], outdated: [], position: nil)
      return try await commit([], of: nothing, progress: .scan(place))
    }
    while !changes.isEmpty {
      let end = changes[changes.count - 1].version
      let next = try batch(after: end)
      var isVeryLast = isLast && next.isEmpty
      if isVeryLast { isVeryLast = try !hasMoreTombstones(than: changes) }
      let handed = try await hand(
        changes, isReplay: isReplay, at: .replay(isLast: isVeryLast), apply)
      try await commit(
        handed.wanted, of: handed, progress: .scan(next.isEmpty ? place : end))
      changes = next
    }
  }

  private func hasMoreTombstones(than changes: [IncomingChange]) throws -> Bool {
    let inHand = Set(changes.map(\.record))
    return try area.notBrought(
      after: nil, areDeleted: true, limit: inHand.count + 1
    ).contains { !inHand.contains($0.record) }
  }

  /// Delivers what metadata knows and the scan did not bring, and ends the scan.
  func finishScan(_ apply: Apply) async throws {
    let scan = try scan()
    try await deliverTombstones(apply)
    if scan.isForced { try await deliverInferred(scan, apply) }
    try await takeAppAlong(apply)
    try await area.finishScan(scan)
  }

  private func deliverTombstones(_ apply: Apply) async throws {
    var after: RecordID?
    while true {
      let found = try area.notBrought(
        after: after, areDeleted: true, limit: SyncLimits.batchCountMax + 1)
      let known = found.prefix(SyncLimits.batchCountMax)
      guard let last = known.last else { return }
      after = last.record
      let changes = known.map {
        IncomingChange(
          record: $0.record, version: $0.metadata.version, payload: nil, isDeleted: true)
      }
      let handed = try await hand(
        changes, isReplay: true, at: .replay(isLast: found.count == known.count), apply)
      // What the metadata says of them stays as it is.
      try await commit([], of: handed, brought: changes.map(\.record), progress: .none)
    }
  }

  private func deliverInferred(_ scan: ScanState, _ apply: Apply) async throws {
    guard let hub else { throw SyncError.stateLost }
    var after: RecordID?
    while true {
      let known = try area.notBrought(
        after: after, areDeleted: false, limit: SyncLimits.batchCountMax)
      guard let last = known.last else { return }
      after = last.record
      // Known above the fork: the hub has lost it, nobody has deleted it.
      let lost = known.filter {
        $0.metadata.version(in: scan.epoch, lineage: hub.lineage) == nil
      }
      if !lost.isEmpty {
        try await area.noteLost(lost)
        report.lostAtHub += lost.count
      }
      let deleted = known.filter {
        $0.metadata.version(in: scan.epoch, lineage: hub.lineage) != nil
      }
      guard !deleted.isEmpty else { continue }
      let changes = deleted.map {
        IncomingChange(
          record: $0.record, version: $0.metadata.version, payload: nil, isDeleted: true,
          isInferred: true)
      }
      let handed = try await hand(changes, isReplay: true, at: .ordinary, apply)
      try await commit(handed.wanted, of: handed, progress: .none)
    }
  }

  /// An app that was behind is so no longer, also if the replay had nothing for it: it gets a batch
  /// without changes, whose position it saves.
  private func takeAppAlong(_ apply: Apply) async throws {
    guard hasClosure, positions.isBehind else { return }
    let position = try await call(apply, [], isReplay: true, at: .replay(isLast: true))
    let nothing = HandedBatch(wanted: [], outdated: [], position: position)
    try await commit([], of: nothing, progress: .none)
  }
}
