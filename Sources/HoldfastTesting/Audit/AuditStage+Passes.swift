import Foundation
import HubProtocol
import ProfileStore
import ProfileSync

extension AuditStage {
  /// The app's closure, as a pass of somebody's account calls it.
  func apply(_ batch: borrowing ChangeBatch, _ person: Person = .ada) async throws {
    try await apply(batch, at: try place(person))
  }

  func apply(_ batch: borrowing ChangeBatch, at place: AuditedApp.Place) async throws {
    do { try await app.applyChanges(batch, place) } catch {
      closureError = error
      throw error
    }
  }

  /// One pass, with something around the app's closure.
  /// - Parameter position: what is given as the app's; nil: none.
  /// - Returns: what stopped it; nil: nothing did.
  func pass(
    _ person: Person = .ada, replayFromStart: Bool = false, from position: BatchPosition? = nil,
    _ closure: (borrowing ChangeBatch) async throws -> Void
  ) async throws -> (any Error)? {
    closureError = nil
    let place = try place(person)
    do {
      try await place.profile.synchronize(
        account: place.account, replayFromStart: replayFromStart, appPosition: position,
        applyChanges: closure)
      return nil
    } catch let deviation as AuditDeviation {
      throw deviation
    } catch {
      return error
    }
  }

  /// A pass in which nothing happens beside.
  func bring(
    _ person: Person = .ada, replayFromStart: Bool = false, from position: BatchPosition? = nil
  ) async throws {
    let stopped = try await pass(person, replayFromStart: replayFromStart, from: position) {
      try await apply($0, person)
    }
    if let stopped { throw failure(stopped) }
  }

  /// A pass that fails to commit what the app has saved.
  func bringWithoutCommit() async throws {
    let stopped = try await pass { batch in
      try await apply(batch)
      throw Interruption()
    }
    if let stopped, !(stopped is Interruption) { throw failure(stopped) }
  }

  /// What a pass that ought to have come to its end says of the app; or the error itself, where it is
  /// none of the app's.
  func failure(_ stopped: any Error) -> any Error {
    guard let closureError else { return stopped }
    return AuditDeviation(
      expected: "the closure saves the batch and returns",
      observed: "it threw \(Self.name(of: closureError))")
  }

  /// Somebody has records 1 to 3 on another device, and this one has brought them.
  func begin() async throws {
    try await switchTo(.ada)
    try await put(1, 2, 3)
    try await bring()
    try await expectHub("after the first pass")
  }

  // MARK: Edits

  /// A person changes a record on this device, or, with nil, deletes it.
  func edit(_ number: Int, _ payload: Data?) async throws {
    let place = try place(.ada)
    if let edit = app.edit {
      do { try await edit(id(number), payload, place) } catch {
        throw AuditDeviation(
          expected: "an edit of a person is saved and enqueued",
          observed: "`edit` threw \(Self.name(of: error))")
      }
    } else {
      let mutation: Mutation = payload.map { .put(id(number), $0) } ?? .delete(id(number))
      try await place.profile.enqueue(mutation, account: place.account)
    }
    guard try place.profile.pendingSummary().count > 0 else {
      throw Missing(reason: "the app's `edit` has put nothing into the outbox")
    }
  }

  /// Sends what waits and gives up what the hub does not take, until app and hub are the same.
  func settle() async throws {
    let place = try place(.ada)
    for _ in 0..<4 where try !place.profile.pendingSummary().isEmpty {
      try await bring()
      try await giveUpParked()
    }
    try await bring()
    try await expectHub("when nothing waits any more")
  }

  /// The person gives up what the hub has refused.
  func giveUpParked() async throws {
    let place = try place(.ada)
    for parked in try place.profile.parked() {
      try await place.profile.discard(parked.mutation, account: place.account)
    }
  }

  // MARK: What the app shows

  /// What the app's own store shows of somebody's.
  func contents(_ person: Person = .ada) async throws -> [RecordID: Data] {
    do { return try await app.contents(try place(person)) } catch {
      throw AuditDeviation(
        expected: "the app's store can be read",
        observed: "`contents` threw \(Self.name(of: error))")
    }
  }

  /// Expects the app to show what the hub has, and nothing else.
  func expectHub(_ moment: String, of person: Person = .ada) async throws {
    let wanted = hubRecords(person)
    let differences = differences(try await contents(person), from: wanted)
    guard !differences.isEmpty else { return }
    throw AuditDeviation(
      expected: "\(moment), the app shows what the hub has of \(person)",
      observed: differences.joined(separator: "; "))
  }

  /// Expects the app to show what it showed before.
  func expectUnchanged(
    _ person: Person = .ada, since before: [RecordID: Data], _ expected: String
  ) async throws {
    let differences = differences(try await contents(person), from: before)
    guard !differences.isEmpty else { return }
    throw AuditDeviation(
      expected: expected, observed: "of \(person): " + differences.joined(separator: "; "))
  }

  /// Expects a record whose edit waits to be shown as the person has left it. Where the audit has
  /// enqueued the edit by itself the app has not heard of it: then its row stays as it was.
  func expectEdit(
    _ number: Int, _ edit: Data?, before: [RecordID: Data], _ expected: String
  ) async throws {
    let wanted = app.edit == nil ? before[id(number)] : edit
    let shown = try await contents()[id(number)]
    let isKept =
      switch (wanted, shown) {
      case (nil, nil): true
      case (let wanted?, let shown?): options.isSame(wanted, shown)
      default: false
      }
    guard !isKept else { return }
    throw AuditDeviation(
      expected: expected,
      observed: shown == nil
        ? "record \(id(number).text) is gone"
        : "record \(id(number).text) is shown with another payload than the edit's")
  }

  private func differences(
    _ shown: [RecordID: Data], from wanted: [RecordID: Data]
  ) -> [String] {
    var differences: [String] = []
    for (id, payload) in wanted.sorted(by: { $0.key < $1.key }) {
      // Two IDs that look alike are told apart by their lengths.
      let isPlain = id.bytes.allSatisfy { $0 < 0x80 }
      let name = "record \(id.text)" + (isPlain ? "" : " (\(id.bytes.count) bytes)")
      guard let own = shown[id] else {
        differences.append("\(name) is missing")
        continue
      }
      if !options.isSame(payload, own) { differences.append("\(name) has another payload") }
    }
    let others = shown.keys.count { wanted[$0] == nil }
    if others > 0 { differences.append("records that should not be there: \(others)") }
    let more = differences.count - Self.differenceCountMax
    return differences.prefix(Self.differenceCountMax) + (more > 0 ? ["and \(more) more"] : [])
  }

  /// What a finding names of the differences.
  private static let differenceCountMax = 3
}
