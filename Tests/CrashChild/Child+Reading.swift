import Foundation
import HubProtocol
import LMDB
import ProfileStore

extension Child {
  /// `read … sealed|unsealed flips|cuts SEED FIRST`: makes a small store where there is none; then
  /// changes one place of one of its files after the other, opens it as an app does, and says what came
  /// of it: `ok`, `error` or `changed`.
  ///
  /// Unsealed: the sums over the files are gone, as after a kill.
  func readStores() async throws {
    let isSealed = try word(0) == "sealed"
    let first = try number(3)
    if !FileManager.default.fileExists(atPath: directory.path) { try await makeSmallStore() }
    let copy = directory.deletingLastPathComponent().appending(path: "whole")
    let whole = try StoredFiles(directory, copy: copy)
    let answer = try await read()
    try whole.restore()
    let places =
      try word(1) == "flips"
      ? whole.flips(seed: UInt64(try number(2))) : whole.cuts()
    say("places \(places.count)")
    for number in first..<places.count {
      say("at \(number) \(places[number])")
      // One that never returns is a crash.
      alarm(60)
      if !isSealed { try whole.removeSeals() }
      try whole.change(places[number])
      Environment.forgetSeenFiles()
      do {
        let changed = try await read()
        let isForeign = zip(["ada", "bob"], changed).contains { name, text in
          text.contains("canary-\(name == "ada" ? "bob" : "ada")")
        }
        say(changed == answer ? "ok" : isForeign ? "foreign \(changed)" : "changed")
      } catch {
        say("error \(describe(error))")
      }
      try whole.restore()
    }
    say("done")
  }

  /// Two accounts and a guest, with everything that an area can have.
  private func makeSmallStore() async throws {
    let registry = try openStore()
    for name in ["ada", "bob"] {
      let (account, profile) = try await signIn(name, registry)
      let epoch = UUID(uuid: (9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9))
      let pulled = (1...40).map { pulledChange($0, of: name) }
      try await profile.area.commit(
        pulled, epoch: epoch, lineage: [], progress: .cursor(40), position: nil,
        policy: registry.policy, requiring: {})
      for number in 1...6 {
        try await profile.enqueue(
          .put(RecordID("waiting\(number)"), canary(name, "waits \(number)")), account: account)
      }
      let waiting = try profile.outbox()
      try await profile.area.settle(
        [
          (waiting[0].order, waiting[0].mutation, .acknowledged(version: 41)),
          (
            waiting[1].order, waiting[1].mutation,
            .parked(Parked(reason: .rejected, code: "test"))
          ),
        ], epoch: epoch, highWater: 41, policy: registry.policy)
    }
    (registry.session as? AppSession)?.signOut()
    let guest = try await registry.unownedProfile()
    try await guest.enqueue(.put("draft", canary("guest", "draft")), account: nil)
    try await registry.suspend()
  }

  /// The first has pages of its own, the last is a deletion.
  private func pulledChange(_ number: Int, of name: String) -> IncomingChange {
    let text = String(repeating: "\(number) ", count: number == 1 ? 3_000 : number)
    return IncomingChange(
      record: RecordID("pulled\(number)"), version: UInt64(number),
      payload: number == 40 ? nil : canary(name, text), isDeleted: number == 40)
  }

  /// Everything that an app can ask for, of both accounts, and what happens to one more change.
  private func read() async throws -> [String] {
    let registry = try await reopenStore()
    do {
      var answers: [String] = []
      for name in ["ada", "bob"] {
        let (account, profile) = try await signIn(name, registry)
        answers.append(try text(of: profile))
        try await profile.enqueue(.put("more", canary(name, "more")), account: account)
        guard try profile.record("more")?.payload == canary(name, "more") else {
          throw BadWords()
        }
      }
      try await registry.suspend()
      return answers
    } catch {
      try await registry.suspend()
      throw error
    }
  }

  /// Opens the store once nobody has the one before any more, which is suspended and about to go.
  private func reopenStore() async throws -> ProfileRegistry {
    for _ in 0..<10_000 {
      do {
        return try openStore()
      } catch let error as StoreError where error.code == .suspended {
        try await Task.sleep(for: .milliseconds(1))
      }
    }
    return try openStore()
  }

  private func text(of profile: Profile) throws -> String {
    var lines: [String] = []
    for record in try profile.records() {
      let payload = String(decoding: record.payload, as: UTF8.self)
      lines.append("\(record.id.text) \(record.version ?? 0) \(payload)")
    }
    for entry in try profile.outbox() {
      let payload = String(decoding: entry.payload ?? Data(), as: UTF8.self)
      let parked = String(describing: entry.parked?.code)
      lines.append("\(entry.order) \(entry.mutation) \(entry.record.text) \(parked) \(payload)")
    }
    for mutation in try profile.acknowledged() { lines.append("\(mutation)") }
    lines.append("\(try profile.pendingSummary())")
    lines.append(String(describing: try profile.cursor()))
    lines.append(String(describing: try profile.owner?.id.text))
    return lines.joined(separator: "\n")
  }
}
