import Foundation
import HubProtocol
import ProfileStore

extension PassRunner {
  /// Asks the app about each conflict that it was not asked about in this pass.
  func resolveConflicts(_ apply: Apply) async throws -> PassMachine.Event {
    var (sendsAgain, discards) = (false, false)
    guard let resolver else { return .resolved(sendsAgain: false, discards: false) }
    guard let hub else { throw SyncError.stateLost }
    for entry in try area.conflicts() where asked.insert(entry.mutation).inserted {
      guard let parked = entry.parked else { continue }
      let known = try await hubVersion(of: entry.record, parked)
      guard let resolution = try await decide(SyncConflict(entry, parked, hub: known), by: resolver)
      else { continue }
      guard
        try await area.settle(
          entry, resolution, seen: known, epoch: hub.epoch, policy: policy,
          requiring: sessionCheck)
      else { continue }
      report.resolved += 1
      switch resolution {
      case .keepHub: discards = true
      case .keepLocal, .merged: sendsAgain = true
      }
    }
    return .resolved(sendsAgain: sendsAgain, discards: discards)
  }

  private func decide(
    _ conflict: SyncConflict, by resolver: ConflictResolver
  ) async throws -> Resolution? {
    try await lend {
      do { return try await resolver.decide(conflict) } catch {
        hasAppThrown = true
        throw error
      }
    }
  }

  /// Runs a closure of the app: with the session looked at before and after, and no pass inside.
  func lend<R>(_ body: () async throws -> R) async throws -> R {
    try Task.checkCancellation()
    try requireSession()
    let pass = PassContext.Pass(area: area.id, session: session)
    defer { pass.end() }
    let result = try await PassContext.$passes.withValue(PassContext.passes + [pass]) {
      try await body()
    }
    try requireSession()
    return result
  }

  /// What the hub has, with its payload: as its verdict said, else asked for.
  private func hubVersion(of record: RecordID, _ parked: Parked) async throws -> HubVersion? {
    if let known = parked.current, known.version > 0, !known.isPayloadOmitted,
      try !area.knowsNewer(than: known.version, of: record)
    {
      return known
    }
    guard let now = try await hubRecord(record) else { return nil }
    return HubVersion(
      version: now.version, isDeleted: now.deleted, payload: now.payload, isPayloadOmitted: false)
  }

  /// The newest record at the hub.
  func hubRecord(_ id: RecordID) async throws -> WireRecord? {
    let response = try await ask(.record(id: id), .record)
    let answer = try AnswerBody.read(RecordAnswer.self, from: response)
    try requireOurs(response, hub: answer.hub, account: answer.account, epoch: answer.epoch)
    guard let record = answer.record else { return nil }
    if record.id != id { throw SyncError.badAnswer("it has another record") }
    if record.isPayloadOmitted { throw SyncError.badAnswer("its record has no payload") }
    return record
  }
}
