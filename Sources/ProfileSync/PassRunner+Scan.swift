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

  /// Fetching the next page overlaps marking and staging the last: one page ahead, no more.
  private func download(
    _ scan: ScanState, into scratch: Scratch
  ) async throws -> (place: UInt64, more: Bool) {
    var staging: Task<Void, any Error>?
    let leg: (place: UInt64, more: Bool)
    do {
      leg = try await download(scan, into: scratch, &staging)
    } catch let stopped {
      // Nobody may remove the scratch before. What stopped the download counts.
      _ = await staging?.result
      throw stopped
    }
    try await staging?.value
    try await scratch.finish()
    return leg
  }

  private func download(
    _ scan: ScanState, into scratch: Scratch, _ staging: inout Task<Void, any Error>?
  ) async throws -> (place: UInt64, more: Bool) {
    guard let hub else { throw SyncError.stateLost }
    var place = scan.place
    var byteCount = 0
    for _ in 0..<SyncLimits.legPageCountMax {
      let page = try await page(after: place, until: scan.until)
      try await staging?.value
      staging = Task { [area, epoch = hub.epoch, lineage = hub.lineage] in
        for part in page.parts {
          try area.mark(part, epoch: epoch, lineage: lineage)
          try await scratch.stage(part)
        }
      }
      place = page.next
      byteCount += page.contentByteCount
      show(.receiving, place, of: max(scan.until, place))
      if !page.more { return (scan.until, false) }
      if byteCount >= policy.limits.replayLegByteCountMax { break }
    }
    return (place, true)
  }

  /// With a closure each batch is committed by itself, once the app has saved it; else many pages
  /// share a commit.
  private func handOver(
    _ scan: ScanState, _ scratch: Scratch, place: UInt64, isLast: Bool, _ apply: Apply
  ) async throws {
    let pageCount = scratch.pageCount
    guard pageCount > 0 else {
      return try await commit([], position: nil, progress: .scan(place))
    }
    var number = 0
    while number < pageCount {
      let pages = try batch(of: scratch, from: number)
      number += pages.count
      let isLastOfLeg = number == pageCount
      // Every batch but the last of the last leg carries the position that the pass was given.
      let isVeryLast =
        try hasClosure && isLast && isLastOfLeg && !hasMoreTombstones(than: pages)
      let position = try await hand(
        pages, isReplay: scan.kind != .first, at: .replay(isLast: isVeryLast), apply)
      let end = isLastOfLeg ? place : pages.last.map { $0[$0.count - 1].version } ?? place
      try await commit(pages, position: position, progress: .scan(end))
    }
  }

  /// The staged pages that are committed together, in place.
  private func batch(of scratch: Scratch, from number: Int) throws -> [ChangePage] {
    var pages: [ChangePage] = []
    var batch = BatchSize(hasClosure: hasClosure)
    for number in number..<scratch.pageCount {
      let page = try scratch.page(number)
      guard batch.takes(page) else { break }
      pages.append(page)
    }
    return pages
  }

  private func hasMoreTombstones(than pages: [ChangePage]) throws -> Bool {
    var inHand: Set<RecordID> = []
    for page in pages {
      for index in 0..<page.count where !page[index].flags.contains(.isSkipped) {
        inHand.insert(RecordID(copying: page.id(page[index])))
      }
    }
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
      let page = ChangePage(changes)
      let position = try await hand(
        [page], isReplay: true, at: .replay(isLast: found.count == known.count), apply)
      // What the metadata says of them stays as it is.
      try await commit([page], position: position, progress: .none, isKnownAlready: true)
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
      if !lost.isEmpty { report.lostAtHub += try await area.noteLost(lost) }
      let deleted = known.filter {
        $0.metadata.version(in: scan.epoch, lineage: hub.lineage) != nil
      }
      guard !deleted.isEmpty else { continue }
      let changes = deleted.map {
        IncomingChange(
          record: $0.record, version: $0.metadata.version, payload: nil, isDeleted: true,
          isInferred: true)
      }
      let page = ChangePage(changes)
      let position = try await hand([page], isReplay: true, at: .ordinary, apply)
      try await commit([page], position: position, progress: .none)
    }
  }

  /// An app that was behind is so no longer, also if the replay had nothing for it: it gets a batch
  /// without changes, whose position it saves.
  private func takeAppAlong(_ apply: Apply) async throws {
    guard hasClosure, positions.isBehind else { return }
    let position = try await call(
      apply, BatchContents([]), isReplay: true, at: .replay(isLast: true))
    try await commit([], position: position, progress: .none)
  }
}
