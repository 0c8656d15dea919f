import Foundation
import HubProtocol
import ProfileStore

/// What a pass brings at most at once.
enum SyncLimits {
  /// Records in a batch that is handed over.
  static let batchCountMax = 500
  /// Pages in one leg of a scan from zero. (Contract section 7.)
  static let legPageCountMax = 100
  /// Payload and ID bytes staged in one leg.
  static let legByteCountMax = 1 << 30
  /// Pages that a plain pull follows beyond the high water at its beginning.
  static let extraPageCountMax = 100
}

extension PassRunner {
  /// Pulls pages from the cursor; each is handed over and committed by itself.
  func pull(_ apply: Apply) async throws {
    guard let hub, var after = try area.facts().cursor?.sequence else { throw error(.badAnswer) }
    var extraPages = 0
    while true {
      let page = try await page(after: after, until: nil)
      let changes = page.records.map(Self.change)
      if !changes.isEmpty || page.next > after {
        try await deliver(
          changes, progress: .cursor(page.next), isReplay: false, position: nextPosition(), apply)
      }
      after = page.next
      show(.receiving, after, of: max(page.highWater, after))
      guard page.more else { return }
      if after >= hub.highWater {
        // Others write faster than this device reads: the next pass goes on.
        extraPages += 1
        if extraPages >= SyncLimits.extraPageCountMax { return }
      }
    }
  }

  private static func change(_ record: WireRecord) -> IncomingChange {
    IncomingChange(
      record: record.id, version: record.version, payload: record.payload,
      isDeleted: record.deleted)
  }

  private func page(after: UInt64, until: UInt64?) async throws -> ChangesPage {
    guard let hub else { throw error(.badAnswer) }
    let query = ChangesQuery(
      after: after, epoch: hub.epoch, limit: min(hub.limits.pullRecords, 500), until: until)
    let page = try read(ChangesPage.self, from: try await ask(.changes(query), .pull))
    try requireOurs(hub: page.hub, account: page.account, epoch: page.epoch)
    if let fault = PageCheck.fault(in: page, asked: query) { throw badAnswer(fault) }
    report.pages += 1
    return page
  }

  /// Stages the pages of one leg and hands them over.
  /// - Returns: whether there is more up to the scan's end.
  func bringLeg(_ apply: Apply) async throws -> Bool {
    guard let scan = try area.facts().scan else { throw error(.badAnswer) }
    let scratch = try Scratch(
      area: area, account: facts.owner, epoch: scan.epoch, until: scan.until, place: scan.place,
      byteCountMax: SyncLimits.legByteCountMax * 2)
    do {
      let (place, more) = try await download(scan, into: scratch)
      try await handOver(scan, scratch, place: place, isLast: !more, apply)
      try scratch.remove()
      return more
    } catch {
      try scratch.remove()
      throw error
    }
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
      if byteCount >= SyncLimits.legByteCountMax { break }
    }
    return (place, true)
  }

  /// Delivery begins when the leg is staged whole. Every batch but the last of the last leg carries
  /// the position that the pass was given.
  private func handOver(
    _ scan: ScanState, _ scratch: Scratch, place: UInt64, isLast: Bool, _ apply: Apply
  ) async throws {
    let isReplay = scan.kind != .first
    let given = currentPosition
    var changes = try scratch.batch(after: nil, limit: SyncLimits.batchCountMax)
    while !changes.isEmpty {
      let end = changes[changes.count - 1].version
      let next = try scratch.batch(after: end, limit: SyncLimits.batchCountMax)
      var isVeryLast = isLast && next.isEmpty
      if isVeryLast { isVeryLast = try !hasMoreTombstones(than: changes) }
      try await deliver(
        changes, progress: .scan(next.isEmpty ? place : end), isReplay: isReplay,
        position: isVeryLast ? given + 1 : given, apply)
      changes = next
    }
    try await deliver(
      [], progress: .scan(place), isReplay: isReplay, position: given, apply)
  }

  private func hasMoreTombstones(than changes: [IncomingChange]) throws -> Bool {
    let inHand = Set(changes.map(\.record))
    return try area.notBrought(
      after: nil, areDeleted: true, limit: inHand.count + 1
    ).contains { !inHand.contains($0.record) }
  }

  /// Delivers what metadata knows and the scan did not bring, and ends the scan.
  func finishScan(_ apply: Apply) async throws {
    guard let scan = try area.facts().scan else { throw error(.badAnswer) }
    try await deliverTombstones(scan, apply)
    if scan.isForced { try await deliverInferred(scan, apply) }
    try await area.finishScan(scan)
  }

  private func deliverTombstones(_ scan: ScanState, _ apply: Apply) async throws {
    let given = currentPosition
    while true {
      let found = try area.notBrought(
        after: nil, areDeleted: true, limit: SyncLimits.batchCountMax + 1)
      let known = found.prefix(SyncLimits.batchCountMax)
      guard !known.isEmpty else { return }
      let changes = known.map {
        IncomingChange(
          record: $0.record, version: $0.metadata.version, payload: nil, isDeleted: true)
      }
      // What the metadata says of them stays as it is.
      let isLast = found.count == known.count
      try await deliver(
        changes, progress: .none, isReplay: true, position: isLast ? given + 1 : given,
        commits: false, apply)
      try await area.commit(
        [], epoch: scan.epoch, lineage: hub?.lineage ?? [], progress: .none,
        position: currentPosition, policy: policy, alsoBrought: changes.map(\.record))
    }
  }

  private func deliverInferred(_ scan: ScanState, _ apply: Apply) async throws {
    let lineage = hub?.lineage ?? []
    while true {
      let known = try area.notBrought(
        after: nil, areDeleted: false, limit: SyncLimits.batchCountMax)
      guard !known.isEmpty else { return }
      // Known above the fork: the hub has lost it, nobody has deleted it.
      let lost = known.filter {
        $0.metadata.version(in: scan.epoch, lineage: lineage) == nil
      }
      if !lost.isEmpty {
        try await area.noteLost(lost)
        report.lostAtHub += lost.count
      }
      let deleted = known.filter {
        $0.metadata.version(in: scan.epoch, lineage: lineage) != nil
      }
      if !deleted.isEmpty {
        let changes = deleted.map {
          IncomingChange(
            record: $0.record, version: $0.metadata.version, payload: nil, isDeleted: true,
            isInferred: true)
        }
        try await deliver(
          changes, progress: .none, isReplay: true, position: nextPosition(), apply)
      }
    }
  }
}
