import Foundation
import HubProtocol
import ProfileSync

// What an app does that trusts in whoever is signed in.
extension AuditStage {
  private static let promise =
    "what a closure saves goes to the account that its pass was begun for"

  /// Bob's records, and then Ada's, are on the device.
  private func beginWithTwo() async throws {
    try await switchTo(.bob)
    try await put(11, 12, by: .bob)
    try await bring(.bob)
    try await expectHub("after the first pass", of: .bob)
    try await begin()
  }

  /// The switch comes before the closure's first line, where it reads the changes, and where it asks
  /// about one.
  func accountSwitch() async throws {
    try await beginWithTwo()
    for (round, question) in [nil, ChangeBatch.Question.changes, .isPending].enumerated() {
      try await switchTo(.ada)
      try await put(1, 2, 4 + round)
      let (ada, bob) = (try await contents(), try await contents(.bob))
      let cue = question.map { Cue($0, 1) }
      _ = try await pass { batch in try await switchAway(at: question, cue, batch) }
      // Where it did not ask, nobody has switched: the first round alone always comes about.
      if let cue, !cue.hasCome { continue }
      try await expectUnchanged(.bob, since: bob, Self.promise)
      try await expectAllOrNothing(since: ada)
      try await switchTo(.ada)
      try await bring()
      try await expectHub("after the account signed in again")
      try await switchTo(.bob)
      try await bring(.bob)
      try await expectHub("after the switch", of: .bob)
    }
  }

  private func switchAway(
    at question: ChangeBatch.Question?, _ cue: Cue?, _ batch: borrowing ChangeBatch
  ) async throws {
    guard let question, let cue else {
      try await switchTo(.bob)
      return try await apply(batch)
    }
    session.plan(
      .signIn(try place(.bob).account, token: hub.token(for: Person.bob.rawValue)),
      at: .named("\(question)"))
    defer { session.forgetPlans() }
    let watched = batch.watched { [session] asked in
      if cue.isNow(asked) { session.reach("\(question)") }
    }
    try await apply(watched)
  }

  private func expectAllOrNothing(since before: [RecordID: Data]) async throws {
    guard try await contents() != before else { return }
    try await expectHub("after a batch was saved during a switch")
  }

  /// The document that is open is Ada's, and the pass is Bob's.
  func wrongDocument() async throws {
    try await beginWithTwo()
    try await switchTo(.bob)
    try await put(11, 13, by: .bob)
    let before = try await contents()
    let place = AuditedApp.Place(
      account: try place(.ada).account, profile: try self.place(.bob).profile)
    // It ought to throw `ownedByAnotherAccount`. One that finds Bob's document by itself is right, too.
    _ = try await pass(.bob) { batch in try await apply(batch, at: place) }
    try await expectUnchanged(
      since: before, "nothing of another account's batch is saved in a document")
    try await bring(.bob)
    try await expectHub("after a pass with the right document", of: .bob)
    try await expectHub("after the other account's passes")
  }

  func sameIDsInTwoAccounts() async throws {
    try await begin()
    try await switchTo(.bob)
    try await put(1, 2, 5, by: .bob)
    try await bring(.bob)
    try await expectBoth("after each account brought its own")
    try await delete(1, by: .bob)
    try await bring(.bob)
    try await expectBoth("after one of them deleted a record")
    try await switchTo(.ada)
    try await put(2)
    try await bring()
    try await expectBoth("after the other one's update")
  }

  private func expectBoth(_ moment: String) async throws {
    try await expectHub(moment)
    try await expectHub(moment, of: .bob)
  }
}
