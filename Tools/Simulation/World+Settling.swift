import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync

// The end: faults stop, everybody signs in once more, and every device has to come to what the hub has.
extension World {
  /// How often everybody passes until nobody has anything new for the others.
  private static let roundCountMax = 6
  /// How many passes one account takes at most to come to rest.
  private static let passCountMax = 40

  func settle() {
    isSettling = true
    note("settle")
    for person in people { hub.recreate(person.id) }
    for device in devices {
      device.faultRate = 0
      machine.planDeath(of: device.number, atStep: 0, after: false)
      endAll(device)
    }
    var hasChanged = true
    for _ in 0..<Self.roundCountMax where hasChanged && violations.isEmpty {
      let before = people.map { hub.highWater(of: $0.id) }
      for device in devices { visit(device) }
      hasChanged = before != people.map { hub.highWater(of: $0.id) }
    }
    if violations.isEmpty, hasChanged {
      violate([Violation(.catchingUp, "the devices go on changing the hub")])
    }
    guard violations.isEmpty else { return }
    for device in devices { compare(device) }
    look()
    lookDeep()
  }

  /// Everything that runs on a device ends.
  private func endAll(_ device: Device) {
    guard let life = life(of: device) else { return }
    for number in life.tasks.keys.sorted() { life.tasks[number]?.cancel() }
    finish(life, "what was cancelled") { life.tasks.isEmpty }
    guard life.isSuspended else { return }
    suspend(life)
    finish(life, "resuming") { life.tasks.isEmpty }
  }

  /// Runs jobs until something is done.
  private func finish(_ life: Life, _ what: String, _ isDone: () -> Bool) {
    let end = machine.now + 7_200_000_000_000
    while !isDone() {
      guard machine.now < end, runJob() else {
        violate([Violation(.failing, "\(what) on device \(life.device.number) does not end")])
        return
      }
    }
  }

  /// The accounts that have an area on a device.
  private func residents(of device: Device) -> [Int] {
    lookDeep(at: device)
    let owners = device.tracks.values.filter { $0.standing.state != .erased }
      .compactMap(\.standing.owner)
    return Set(owners.compactMap(account)).sorted()
  }

  /// Each account of a device signs in once more and comes to rest.
  private func visit(_ device: Device) {
    guard let life = life(of: device) else { return }
    for account in machine.looking({ residents(of: device) }) where violations.isEmpty {
      let number = begin("rest of \(account)", life) { [self] life in
        let store = try life.store()
        let token = token(for: account)
        let verified = try await store.verify(token: token, clientName: "simulated")
        try await store.keepUnowned(decidedBy: verified)
        life.session.signIn(verified, token: token)
        life.device.signedIn = verified.bytes
        let profile = try await store.profile(for: verified)
        hold(profile, life)
        if !life.device.keepsRecords { _ = try await enqueueUnsent(account, life) }
        do {
          return try await rest(profile, verified, account, life)
        } catch let error as SyncError where error.code == .accountErased {
          // What the hub has erased is frozen here until the app erases it.
          try await erase(account, isDiscarding: true, life)
          return "erased"
        }
      }
      finish(life, "coming to rest") { life.tasks[number] == nil }
      look()
    }
  }

  private func rest(
    _ profile: Profile, _ verified: VerifiedAccount, _ account: Int, _ life: Life
  ) async throws -> String {
    for count in 1...Self.passCountMax {
      let isComplete = try await passPatiently(profile, verified, account, life)
      for entry in try profile.parked() where entry.parked?.reason != .discarding {
        do {
          let decision = try await decide(entry, count % 6, profile, verified, account, life)
          note("\(entry.record.text) \(entry.mutation) \(decision)")
        } catch let error as StoreError {
          // It went with an earlier decision, or another version has come.
          note("decide: \(error.code)")
        }
      }
      try await sendLostAgain(profile, verified, account, life)
      if isComplete, try profile.outbox(limit: 1).isEmpty, try profile.lostAtHub().isEmpty {
        return "after \(count) passes"
      }
      // What is held or deferred has its time.
      try await Task.sleep(for: .seconds(60))
    }
    let left = try profile.outbox()
    violate([
      Violation(
        .catchingUp,
        "account \(account) of device \(life.device.number) does not come to rest: \(left.count) wait, "
          + "\(try profile.lostAtHub().count) are lost")
    ])
    return "no rest"
  }

  /// A pass that does what its errors ask for.
  /// - Returns: whether everything was brought, and nothing came.
  private func passPatiently(
    _ profile: Profile, _ verified: VerifiedAccount, _ account: Int, _ life: Life
  ) async throws -> Bool {
    do {
      let report = try await synchronize(profile, verified, account, life)
      return report.isComplete && report.delivered == 0
    } catch let error as SyncError {
      note("pass: \(error.code)")
      switch error.code {
      case .epochChanged, .appStoreBehind:
        _ = try await replayAll(profile, verified, account, life)
      case .hubUnavailable, .hubUnreachable, .busy: break
      default: throw error
      }
      return false
    }
  }

  private func sendLostAgain(
    _ profile: Profile, _ verified: VerifiedAccount, _ account: Int, _ life: Life
  ) async throws {
    let lost = try profile.lostAtHub()
    if lost.isEmpty { return }
    note("lost \(lost.map(\.text).joined(separator: " "))")
    guard !life.device.keepsRecords else {
      return try await profile.sendAgain(lost: lost, account: verified)
    }
    let waiting = Set(try profile.outbox().map(\.record))
    for record in lost where !waiting.contains(record) {
      let payload = life.device.apps[profile.id]?.rows[record] ?? payload(people[account].canary)
      try await profile.enqueue(
        .put(record, payload, base: .mustNotExist, mutation: random.uuid()), account: verified)
    }
  }

  /// Whether each account of a device has what the hub has.
  private func compare(_ device: Device) {
    guard let life = life(of: device) else { return }
    for account in machine.looking({ residents(of: device) }) where violations.isEmpty {
      let number = begin("comparison of \(account)", life) { [self] life in
        life.session.restore(account: try verified(account).bytes, token: token(for: account))
        life.device.signedIn = try verified(account).bytes
        let (profile, _) = try await profile(of: account, life)
        let rows: [RecordID: Data]
        if life.device.keepsRecords {
          let records = try profile.records().map { ($0.id, $0.payload) }
          rows = Dictionary(uniqueKeysWithValues: records)
        } else {
          let app = life.device.apps[profile.id]
          // A batch that the app saved, and whose acceptance a crash undid, is delivered again, unless the
          // hub was put back before: then nobody knows of it but the app.
          rows = (app?.rows ?? [:]).filter { row in
            !(app?.doubtful.contains(row.key) ?? false) || hubRows(of: account)[row.key] != nil
          }
        }
        violate(
          Checks.catchingUp(
            device: rows, hub: hubRows(of: account),
            place: "account \(account) on device \(life.device.number)"))
        return "\(rows.count) records"
      }
      finish(life, "comparing") { life.tasks[number] == nil }
    }
  }

  private func hubRows(of account: Int) -> [RecordID: Data] {
    var rows: [RecordID: Data] = [:]
    for record in hub.records(of: people[account].id) { rows[record.record] = record.payload }
    return rows
  }
}
