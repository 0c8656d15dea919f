import Foundation
import Holdfast
import ToolSupport

extension Story {
  /// 5. Ada edits offline; Bob signs in on the same device.
  func switchAccounts(_ device: Device, _ hub: StoryHub) async throws {
    try begin("Offline, Ada edits and deletes; then Bob signs in on the same device")
    let ada = try device.requireAda()
    let adas = try await device.registry.profile(for: ada)
    let pending = try await editOffline(device, adas, ada)

    device.registry.connect(to: hub.connection)
    let bob = try await device.registry.verify(token: hub.tokens.bob, clientName: "first device")
    try await refused("binding Ada's area to Bob", with: "ownedByAnotherAccount") {
      _ = try await adas.bindAccount(bob, adoptingUnownedData: true)
    }
    device.session.signOut()
    let bobs = try await device.registry.profile(for: bob)
    device.session.signIn(bob, token: hub.tokens.bob)
    try state(
      "a fresh area was provisioned for Bob",
      try bobs.id != adas.id && bobs.owner == bob && bobs.pendingSummary().isEmpty)

    try await bobs.enqueue(
      (1...3).map { .put("note/\($0)", Data("{\"text\":\"\(canaries.bob)\"}".utf8)) },
      account: bob)
    let report = try await bobs.synchronize(account: bob)
    try state(
      "Bob's pass sent his 3 notes and nothing else",
      report.sent == 3 && report.acknowledged == 3)
    try state("Bob's area has 3 records", try bobs.records().count == 3)
    try await refused(
      "reading Ada's records while Bob is signed in", with: "anotherAccountSignedIn"
    ) {
      _ = try adas.records(limit: 1)
    }
    let maintained = try await device.registry.profileForMaintenance(of: ada)
    try state(
      "Ada's \(Quantity.count(pending.count)) pending edits are as they were",
      try maintained.pendingSummary() == pending)
  }

  private func editOffline(
    _ device: Device, _ profile: Profile, _ ada: VerifiedAccount
  ) async throws -> PendingSummary {
    device.registry.connect(to: Offline())
    let languages = try profile.records(prefix: "language/", limit: 600)
    let edits: [Mutation] = languages.prefix(500).map { record in
      .put(record.id, Data("{\"edited\":\"\(canaries.ada)\"}".utf8), base: record.base)
    }
    let deletes: [Mutation] = languages.suffix(100).map { .delete($0.id, base: $0.base) }
    try await profile.enqueue(edits + deletes, account: ada)
    try await refused("synchronizing without a network", with: "hubUnreachable") {
      _ = try await profile.synchronize(account: ada)
    }
    let pending = try profile.pendingSummary()
    try state("500 edits and 100 deletes wait", pending.count == 600)
    return pending
  }

  /// 6. Three ways to cross over.
  func tryCrossovers(_ device: Device, _ hub: StoryHub) async throws {
    try begin("Three attempts at a crossover")
    let ada = try device.requireAda()
    try await wrongToken(device, hub, ada)
    try await switchBetweenPages(hub, ada)
    try await switchInClosure(hub, ada)
  }

  /// The session says Ada, the token is Bob's.
  private func wrongToken(
    _ device: Device, _ hub: StoryHub, _ ada: VerifiedAccount
  ) async throws {
    device.session.restore(account: ada.bytes, token: hub.tokens.bob)
    let adas = try await device.registry.profile(for: ada)
    let before = try adas.pendingSummary()
    try await refused("Ada's area with Bob's token", with: "accountMismatch") {
      _ = try await adas.synchronize(account: ada)
    }
    let epoch = UUID()
    let push = HubCall.push(PushRequest(client: UUID(), epoch: epoch, cursor: 0, mutations: []))
    let answer = try await hub.connection.send(
      push.request(token: hub.tokens.bob, account: ada.id, format: .json))
    try state(
      "the hub refuses Bob's token with Ada's name, too: \(answer.status) account_mismatch",
      answer.status == 403
        && String(decoding: answer.body, as: UTF8.self).contains("account_mismatch"))
    try state("Ada's outbox is as it was", try adas.pendingSummary() == before)
  }

  private func switchBetweenPages(_ hub: StoryHub, _ ada: VerifiedAccount) async throws {
    let device = try Device(directory.appending(path: "device-3"), hub: hub.connection)
    let account = try await device.registry.verify(
      token: hub.tokens.ada, clientName: "third device")
    let bob = try await device.registry.verify(token: hub.tokens.bob, clientName: "third device")
    let profile = try await device.registry.profile(for: account)
    device.session.signIn(account, token: hub.tokens.ada)
    let session = device.session
    let token = hub.tokens.bob
    let transport = Interrupted(hub.connection, afterPages: 2) { session.signIn(bob, token: token) }
    device.registry.connect(to: transport)
    try await refused(
      "a session that switches to Bob after the second page", with: "sessionChanged"
    ) {
      _ = try await profile.synchronize(account: account)
    }
    try state("no third page was asked for", transport.pageCount == 2)
    let info = try await device.registry.profiles()
    try state("nothing was saved", info.allSatisfy { $0.records == 0 && $0.cursor == nil })
  }

  private func switchInClosure(_ hub: StoryHub, _ ada: VerifiedAccount) async throws {
    let session = AppSession()
    session.signOut()
    let registry = try ProfileRegistry(
      directory: directory.appending(path: "device-4"), session: session,
      configuration: .init(recordKeeping: .app))
    registry.connect(to: hub.connection)
    let account = try await registry.verify(token: hub.tokens.ada, clientName: "fourth device")
    let bob = try await registry.verify(token: hub.tokens.bob, clientName: "fourth device")
    let profile = try await registry.profile(for: account)
    session.signIn(account, token: hub.tokens.ada)
    var first: [RecordID] = []
    try await refused("a session that switches while the app saves a batch", with: "sessionChanged")
    {
      try await profile.synchronize(account: account) { batch in
        first = try batch.changes(localOwner: account.bytes).copies().map(\.record)
        session.signIn(bob, token: hub.tokens.bob)
      }
    }
    try state("the cursor did not move", try profile.cursor() == nil)
    session.signIn(account, token: hub.tokens.ada)
    var again: [RecordID] = []
    var total = 0
    try await profile.synchronize(account: account) { batch in
      let changes = try batch.changes(localOwner: account.bytes).copies()
      if again.isEmpty { again = changes.map(\.record) }
      total += changes.count
    }
    try state(
      "the next pass delivered the same \(first.count) records again, then the rest",
      !first.isEmpty && first == again && total > first.count)
    try await refused("a batch for an app's store of another owner", with: "ownedByAnotherAccount")
    {
      try await profile.synchronize(account: account, replayFromStart: true) { batch in
        _ = try batch.changes(localOwner: bob.bytes)
      }
    }
  }
}
