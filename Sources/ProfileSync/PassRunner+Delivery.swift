import Foundation
import HubProtocol
import ProfileStore

/// A batch that the app has saved, and that is to be committed now.
struct HandedBatch {
  /// What was handed over.
  var wanted: [IncomingChange]
  /// Records that came in an older version than is known: not handed over, but there at the hub.
  var outdated: [RecordID]
  /// What the area is to store; nil: as it is.
  var position: UInt64?
}

extension PassRunner {
  /// Hands changes to the app, but for those that are older than known. When it returns, the app has
  /// saved them and the session was looked at again; then the caller commits.
  func hand(
    _ changes: [IncomingChange], isReplay: Bool, at place: BatchPositions.Place, _ apply: Apply
  ) async throws -> HandedBatch {
    let (selected, contents) = try select(changes)
    var handed = selected
    if hasClosure, !contents.isEmpty {
      handed.position = try await call(apply, contents, isReplay: isReplay, at: place)
    }
    report.delivered += contents.count
    report.outdated += changes.count - contents.count
    return handed
  }

  /// - Returns: the position that the area is to store.
  func call(
    _ apply: Apply, _ contents: [Change], isReplay: Bool, at place: BatchPositions.Place
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
      try await apply(batch)
    }
    try requireSession()
    return positions.accept(position)
  }

  /// Metadata, the records of managed mode and the progress, in one transaction, which looks at the
  /// session once more.
  func commit(
    _ changes: [IncomingChange], of handed: HandedBatch, brought: [RecordID] = [],
    progress: PassProgress
  ) async throws {
    guard let hub else { throw SyncError.stateLost }
    try await area.commit(
      changes, epoch: hub.epoch, lineage: hub.lineage, progress: progress,
      position: handed.position, policy: policy, alsoBrought: handed.outdated + brought,
      requiring: sessionCheck)
  }

  /// Leaves out what is older than known, and says which records have a local edit.
  private func select(_ changes: [IncomingChange]) throws -> (HandedBatch, [Change]) {
    guard let hub else { throw SyncError.stateLost }
    return try area.read { transaction in
      var batch = HandedBatch(wanted: [], outdated: [], position: nil)
      var contents: [Change] = []
      let hasEdits = try !area.pendingSummary(transaction).isEmpty
      for change in changes {
        if !change.isInferred,
          let known = try area.known(
            newerThan: change, epoch: hub.epoch, lineage: hub.lineage, transaction)
        {
          // A tombstone that is known counts as not brought: a replay delivers it at its end.
          if !known.isDeleted { batch.outdated.append(change.record) }
          continue
        }
        var edit = LocalEdit.none
        if hasEdits {
          let local = try area.localEdit(of: change.record, transaction)
          edit = local.isParked ? .parked : local.isPending ? .pending : .none
        }
        batch.wanted.append(change)
        contents.append(
          Change(
            record: change.record, version: change.version, payload: change.payload,
            isDeleted: change.isDeleted, isInferred: change.isInferred, localEdit: edit))
      }
      return (batch, contents)
    }
  }

  /// Hands over the hub's versions of records whose parked mutation the app has discarded; only then
  /// does the mutation go.
  func deliverDiscards(_ apply: Apply) async throws {
    for entry in try area.discarding() {
      guard let hub else { throw SyncError.stateLost }
      let response = try await ask(.record(id: entry.record), .record)
      let answer = try AnswerBody.read(RecordAnswer.self, from: response)
      try requireOurs(
        response, hub: answer.hub, account: answer.account, epoch: answer.epoch)
      if let record = answer.record, record.id != entry.record {
        throw SyncError.badAnswer("it has another record")
      }
      let change =
        answer.record.map(IncomingChange.init)
        ?? IncomingChange(
          record: entry.record, version: 0, payload: nil, isDeleted: true, isInferred: true)
      let handed = try await hand([change], isReplay: false, at: .ordinary, apply)
      // An answer that is older than what is known would not be the hub's version.
      guard !handed.wanted.isEmpty else { continue }
      try await area.finishDiscard(
        of: entry, change: change.isInferred ? nil : change, epoch: hub.epoch,
        lineage: hub.lineage, position: handed.position, policy: policy, requiring: sessionCheck)
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
