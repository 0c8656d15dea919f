import Foundation
import Holdfast
import Synchronization
import ToolSupport

extension Story {
  /// 2. Real records, signed out.
  func enqueueSignedOut(_ device: Device, _ codes: IsoCodes) async throws -> Profile {
    let documents = codes.documents
    try begin("Signed out: \(Quantity.count(documents.count)) real records into the unowned area")
    let guest = try await device.registry.unownedProfile()
    let bar = console.progress("Enqueueing", total: documents.count, unit: "records")
    try await timed("enqueued in groups of 500", records: documents.count) {
      for start in stride(from: 0, to: documents.count, by: 500) {
        let group = documents[start..<min(start + 500, documents.count)]
        try await guest.enqueue(group.map { .put($0.id, $0.json) }, account: nil)
        bar.advance(by: group.count)
      }
    }
    bar.finish()
    let pending = try guest.pendingSummary()
    try state(
      "\(Quantity.count(pending.count)) languages and subdivisions wait in the outbox",
      pending.count == documents.count)
    try state("the area has no owner", try guest.owner == nil)
    return guest
  }

  /// 3. Ada signs in: refused without the flag, adopted with it.
  func adopt(_ device: Device, _ guest: Profile, _ hub: StoryHub) async throws {
    try begin("Ada signs in and is asked about the data on this device")
    let token = hub.tokens.ada
    let ada = try await device.registry.verify(token: token, clientName: "first device")
    device.ada = ada
    try state("the hub says whose token it is: \(ada.id.text)", ada.id.text == "ada")
    let before = try guest.pendingSummary()
    try await refused("binding without a word about the data", with: "unownedDataPresent") {
      _ = try await guest.bindAccount(ada)
    }
    try state(
      "nothing changed: still unowned, still \(Quantity.count(before.count)) waiting",
      try guest.owner == nil && guest.pendingSummary() == before)
    let profile = try await guest.bindAccount(ada, adoptingUnownedData: true)
    device.session.signIn(ada, token: token)
    try state("adopted: the area is Ada's for ever", try profile.owner == ada)
  }

  /// 4. Everything goes to the hub.
  func sendAll(_ device: Device, _ hub: StoryHub) async throws {
    try begin("Synchronizing")
    let ada = try device.requireAda()
    let profile = try await device.registry.profile(for: ada)
    let count = try profile.pendingSummary().count
    let report = try await synchronize(profile, ada, sending: count)
    try state(
      "\(Quantity.count(report.acknowledged)) changes are at the hub, none parked",
      report.acknowledged == count && report.parked == 0)
    try state("nothing is waiting any more", try profile.pendingSummary().isEmpty)
  }

  /// A pass that sends and then brings its own changes back, with a bar for each and the times apart.
  private func synchronize(
    _ profile: Profile, _ account: VerifiedAccount, sending count: Int
  ) async throws -> SyncReport {
    let sent = console.progress("Sending", total: count, unit: "records")
    let received = Mutex<ProgressBar?>(nil)
    let start = ContinuousClock.now
    let lastSent = Mutex(start)
    let observer = ProgressObserver { [console] progress in
      let done = Int(min(progress.completed, UInt64(count)))
      switch progress.phase {
      case .sending:
        sent.update(done: done)
        lastSent.withLock { $0 = .now }
        if done == count { sent.finish() }
      case .receiving:
        let bar = received.withLock { bar in
          let begun = bar ?? console.progress("Receiving", total: count, unit: "records")
          bar = begun
          return begun
        }
        bar.update(done: done)
      }
    }
    let report = try await profile.synchronize(account: account, progress: observer)
    received.withLock { $0 }?.finish()
    let turn = lastSent.withLock { $0 }
    note("sent and acknowledged", records: count, start.duration(to: turn))
    note("its own changes pulled back", records: count, turn.duration(to: .now))
    return report
  }
}
