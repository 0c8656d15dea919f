import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Marks what is older than the area knows; see `Area.mark`.
  func mark(_ pages: [ChangePage]) throws {
    guard let hub else { throw SyncError.stateLost }
    for page in pages { try area.mark(page, epoch: hub.epoch, lineage: hub.lineage) }
  }

  /// Hands the changes of pages that were marked to the app, but for those that are outdated. When it
  /// returns, the app has saved them and the session was looked at again; then the caller commits.
  /// - Returns: the position that the area is to store; nil: as it is.
  func hand(
    _ pages: [ChangePage], isReplay: Bool, at place: BatchPositions.Place, _ apply: Apply
  ) async throws -> UInt64? {
    var position: UInt64?
    if hasClosure {
      // Edits are looked for now, not when the page came: an app that is not told of one would put an
      // older version over its newer edit.
      let contents = BatchContents(pages, edits: try area.localEdits(in: pages))
      if contents.count > 0 {
        position = try await call(apply, contents, isReplay: isReplay, at: place)
      }
    }
    count(pages)
    return position
  }

  func count(_ pages: [ChangePage]) {
    let counts = BatchContents.counts(of: pages)
    report.delivered += counts.delivered
    report.outdated += counts.outdated
  }

  /// - Returns: the position that the area is to store.
  func call(
    _ apply: Apply, _ contents: BatchContents, isReplay: Bool, at place: BatchPositions.Place
  ) async throws -> UInt64? {
    try Task.checkCancellation()
    try requireSession()
    let position = positions.position(at: place)
    let pass = PassContext.Pass(area: area.id, session: session)
    defer { pass.end() }
    try await PassContext.$passes.withValue(PassContext.passes + [pass]) {
      let batch = ChangeBatch(
        position: BatchPosition(position), isReplay: isReplay, owner: facts.owner,
        contents: contents, area: area)
      do { try await apply(batch) } catch {
        hasAppThrown = true
        throw error
      }
    }
    try requireSession()
    return positions.accept(position)
  }

  /// Metadata, the records of managed mode and the progress, in one transaction, which looks at the
  /// session once more.
  func commit(
    _ pages: [ChangePage], position: UInt64?, progress: PassProgress, isKnownAlready: Bool = false
  ) async throws {
    guard let hub else { throw SyncError.stateLost }
    try await area.commit(
      pages: pages, epoch: hub.epoch, lineage: hub.lineage, progress: progress,
      position: position, policy: policy, isKnownAlready: isKnownAlready, requiring: sessionCheck)
  }

  /// Hands over the hub's versions of records whose parked mutation the app has discarded; only then
  /// does the mutation go.
  func deliverDiscards(_ apply: Apply) async throws {
    for entry in try area.discarding() {
      guard let hub else { throw SyncError.stateLost }
      let change =
        try await hubRecord(entry.record).map(IncomingChange.init)
        ?? IncomingChange(
          record: entry.record, version: 0, payload: nil, isDeleted: true, isInferred: true)
      let page = ChangePage([change])
      try mark([page])
      // An answer that is older than what is known would not be the hub's version.
      guard BatchContents.counts(of: [page]).delivered > 0 else {
        report.outdated += 1
        continue
      }
      let position = try await hand([page], isReplay: false, at: .ordinary, apply)
      try await area.finishDiscard(
        of: entry, change: change.isInferred ? nil : change, epoch: hub.epoch,
        lineage: hub.lineage, position: position, policy: policy, requiring: sessionCheck)
    }
  }
}

extension IncomingChange {
  init(_ record: WireRecord) {
    self.init(
      record: record.id, version: record.version, payload: record.payload,
      isDeleted: record.deleted)
  }
}
