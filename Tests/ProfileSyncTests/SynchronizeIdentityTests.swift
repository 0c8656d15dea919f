import Foundation
import HubProtocol
import HubServer
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract sections 2 and 5.2.
@Suite("Synchronize: owner = account = session")
struct SynchronizeIdentityTests {
  private func expectRefusal(
    _ code: StoreError.Code, of person: Person, account: VerifiedAccount? = nil,
    session: (any AccountSession)? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let before = try person.profile.area.facts()
    for replay in [false, true] {
      await expect(code, sourceLocation: sourceLocation) {
        try await person.profile.synchronize(
          account: account ?? person.account, session: session, replayFromStart: replay)
      }
    }
    #expect(person.device.wire.calls.isEmpty, sourceLocation: sourceLocation)
    let after = try person.profile.area.facts()
    #expect(
      after.cursor == before.cursor && after.scan == before.scan
        && after.client == before.client, sourceLocation: sourceLocation)
  }

  @Test("else it throws, and nothing changed and nothing was sent")
  func refusals() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let bob = try await device.signIn("bob")
      let alice = try await device.signIn("alice")
      try await alice.write(["a"], "first")
      // The call names another account.
      try await expectRefusal(.ownedByAnotherAccount, of: alice, account: bob.account)
      // The session says another account, nobody, or nothing yet.
      let session = AppSession()
      try await expectRefusal(.sessionUnknown, of: alice, session: session)
      session.signOut()
      try await expectRefusal(.notSignedIn, of: alice, session: session)
      session.signIn(bob.account, token: try hub.token(for: "bob"))
      try await expectRefusal(.anotherAccountSignedIn, of: alice, session: session)
      // Not even if the token is the owner's.
      session.replaceToken(try hub.token(for: "alice"))
      try await expectRefusal(.anotherAccountSignedIn, of: alice, session: session)
      device.session.signOut()
      try await expectRefusal(.notSignedIn, of: alice)
      #expect(try alice.profile.pendingSummary().count == 1)
    }
  }

  @Test("an unowned area does not synchronize")
  func unowned() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      device.session.signOut()
      let guest = try await device.registry.unownedProfile()
      try await guest.enqueue(.put("a", Data()), account: nil)
      device.session.signIn(alice.account, token: try hub.token(for: "alice"))
      await expect(StoreError.Code.notBound) {
        try await guest.synchronize(account: alice.account)
      }
      #expect(device.wire.calls.isEmpty)
      #expect(try guest.pendingSummary().count == 1)
    }
  }

  @Test("accounts that differ in Unicode normalization or case only are different ones")
  func twins() async throws {
    try await TestHub.run { hub in
      let names = ["caf\u{E9}", "cafe\u{301}", "CAF\u{C9}"]
      let device = try Device(hub)
      for name in names {
        let person = try await device.signIn(name)
        try await person.send(["mine"], "of \(Array(name.utf8))")
      }
      for name in names {
        let person = try await Device(hub).signIn(name)
        try await person.profile.synchronize(account: person.account)
        #expect(try person.texts() == ["mine": "of \(Array(name.utf8))"])
        person.device.wire.clear()
        let twin = try #require(names.first { Array($0.utf8) != Array(name.utf8) })
        let other = try await device.signIn(twin)
        try await expectRefusal(.ownedByAnotherAccount, of: person, account: other.account)
      }
    }
  }

  @Test("the account of a pass that waited is compared again when its turn comes")
  func whileWaiting() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let bob = try await Device(hub).signIn("bob")
      let turn = try #require(try await person.profile.area.passes.turn(timeout: nil))
      person.device.wire.clear()
      let waiting = Task { try await person.profile.synchronize(account: person.account) }
      await PassQueueTests.until { person.profile.area.passes.count == 2 }
      person.device.session.signIn(bob.account, token: try hub.token(for: "bob"))
      turn.end()
      await expect(StoreError.Code.anotherAccountSignedIn) { _ = try await waiting.value }
      #expect(person.device.wire.calls.isEmpty)
    }
  }

  @Test("a token of another account is refused before anything is used, as a security event")
  func otherToken() async throws {
    try await TestHub.run { hub in
      let alice = try await Person.withRecords(hub, ["a"], "CANARY-ALICE")
      _ = try await Person.withRecords(hub, ["b"], "CANARY-BOB", name: "bob")
      try await alice.write(["c"], "CANARY-ALICE")
      let before = try alice.standing()
      alice.device.session.replaceToken(try hub.token(for: "bob"))
      alice.device.wire.clear()
      for replay in [false, true] {
        await expect(.accountMismatch) {
          try await alice.profile.synchronize(account: alice.account, replayFromStart: replay)
        }
      }
      #expect(alice.device.wire.calls == [.session, .session])
      #expect(try alice.standing() == before)
      // Where only the later requests carry it, the hub itself refuses by the assertion.
      let token = try hub.token(for: "bob")
      for call in [Call.mutations, .changes] {
        alice.device.session.replaceToken(try hub.token(for: "alice"))
        alice.device.wire.clear()
        alice.device.wire.before { _, request throws(TransportError) in
          guard request.call == call else { return nil }
          request.headers[0] = HeaderField(HubHeader.authorization, "Bearer \(token)")
          return nil
        }
        await expect(.accountMismatch) {
          try await alice.profile.synchronize(account: alice.account)
        }
        #expect(alice.device.wire.calls.last == call)
      }
      #expect(try !hub.captured(of: "bob").contains { $0.contains("CANARY-ALICE") })
      #expect(try alice.texts() == ["a": "CANARY-ALICE", "c": "CANARY-ALICE"])
    }
  }
}

@Suite("Synchronize: two accounts on one device")
struct TwoAccountsTests {
  @Test("never meet: no record of one in the other's area, requests or hub account")
  func neverMeet() async throws {
    try await TestHub.run { hub in
      let device = try Device(hub)
      let alice = try await device.signIn("alice")
      try await alice.send(ids(1...3), "CANARY-ALICE")
      // Offline edits of Alice; then Bob signs in on the same device.
      try await alice.write(ids(2...5), "CANARY-ALICE")
      let waiting = try alice.standing()
      let bob = try await device.signIn("bob")
      try await bob.send(ids(3...6), "CANARY-BOB")
      for replay in [false, true] {
        try await bob.profile.synchronize(account: bob.account, replayFromStart: replay)
        await expect(StoreError.Code.anotherAccountSignedIn) {
          try await alice.profile.synchronize(account: alice.account, replayFromStart: replay)
        }
        await expect(StoreError.Code.ownedByAnotherAccount) {
          try await alice.profile.synchronize(account: bob.account, replayFromStart: replay)
        }
        await expect(StoreError.Code.ownedByAnotherAccount) {
          try await bob.profile.synchronize(account: alice.account, replayFromStart: replay)
        }
      }
      #expect(try bob.texts().values.allSatisfy { $0 == "CANARY-BOB" })
      device.session.signIn(alice.account, token: try hub.token(for: "alice"))
      #expect(try alice.standing() == waiting)
      try await alice.profile.synchronize(account: alice.account)
      #expect(try alice.texts().values.allSatisfy { $0 == "CANARY-ALICE" })
      let areas = (alice.profile.area.directory, bob.profile.area.directory)
      #expect(try device.holds("CANARY-ALICE", below: areas.0))
      #expect(try !device.holds("CANARY-BOB", below: areas.0))
      #expect(try device.holds("CANARY-BOB", below: areas.1))
      #expect(try !device.holds("CANARY-ALICE", below: areas.1))
      #expect(try !hub.captured(of: "alice").contains { $0.contains("CANARY-BOB") })
      #expect(try !hub.captured(of: "bob").contains { $0.contains("CANARY-ALICE") })
      #expect(try hub.captured(of: "bob").contains { $0.contains("CANARY-BOB") })
    }
  }
}

@Suite("Synchronize: a session that changes while a pass runs")
struct SessionChangeTests {
  /// What the session says from one moment on.
  enum Change: CaseIterable, Sendable {
    case otherAccount
    case nobody
    /// The same account, in another sign-in.
    case signedInAgain

    func happen(_ device: Device, _ alice: VerifiedAccount, _ bob: VerifiedAccount) {
      do {
        switch self {
        case .otherAccount: device.session.signIn(bob, token: try device.hub.token(for: "bob"))
        case .nobody: device.session.signOut()
        case .signedInAgain:
          device.session.signOut()
          device.session.signIn(alice, token: try device.hub.token(for: "alice"))
        }
      } catch { Issue.record("no token: \(error)") }
    }
  }

  /// A device with records, waiting edits and changes of another device to come.
  private func makeBusy(_ hub: TestHub, by other: Person) async throws -> Person {
    let alice = try await Device(hub).signIn("alice")
    try await alice.send(ids(1...4), "CANARY-ALICE")
    try await other.send(ids(5...9), "CANARY-ALICE")
    try await alice.write(ids(11...14), "CANARY-ALICE")
    alice.device.wire.clear()
    return alice
  }

  private static let limits = HubLimits(pullRecords: 3, pushMutations: 2)

  @Test(
    "stops it at every request: nothing further is sent, and nothing is committed",
    arguments: [
      (.otherAccount, false, [false, true]), (.otherAccount, true, [true]),
      (.nobody, false, [true]), (.signedInAgain, false, [true]),
    ] as [(Change, Bool, [Bool])])
  func everyRequest(change: Change, replay: Bool, ways: [Bool]) async throws {
    try await TestHub.run(Self.limits) { hub in
      let bob = try await Person.withRecords(hub, ["b"], "CANARY-BOB", name: "bob")
      let other = try await Device(hub).signIn("alice")
      let undisturbed = try await makeBusy(hub, by: other)
      try await undisturbed.profile.synchronize(
        account: undisturbed.account, replayFromStart: replay)
      let count = undisturbed.device.wire.requests.count
      #expect(count >= 6)
      for request in 1...count {
        for isOnTheWayBack in ways {
          let alice = try await makeBusy(hub, by: other)
          let atTheChange = Log<Standing>()
          let happens: @Sendable (Int) -> Void = { number in
            guard number == request else { return }
            do {
              // In the writer's turn: a commit that had looked at the session before may still end, and
              // is on disk with it; none that comes later.
              try alice.profile.area.writeBlocking { _ in
                change.happen(alice.device, alice.account, bob.account)
              }
              atTheChange.add(try alice.standing())
            } catch {
              Issue.record("the area could not be read: \(error)")
            }
          }
          if isOnTheWayBack {
            alice.device.wire.after { number, _, _ throws(TransportError) in happens(number) }
          } else {
            alice.device.wire.before { number, _ throws(TransportError) in
              happens(number)
              return nil
            }
          }
          await expect(.sessionChanged) {
            try await alice.profile.synchronize(account: alice.account, replayFromStart: replay)
          }
          #expect(alice.device.wire.requests.count == request)
          // Signed in again, she finds everything as it was at that moment; the next pass goes on.
          alice.device.session.signIn(alice.account, token: try hub.token(for: "alice"))
          #expect(try [alice.standing()] == atTheChange.entries)
          alice.device.wire.clear()
          try await alice.profile.synchronize(account: alice.account)
          #expect(try alice.texts().keys.sorted() == ids(1...9) + ids(11...14))
          #expect(try alice.profile.pendingSummary().isEmpty)
        }
      }
      #expect(try !hub.captured(of: "bob").contains { $0.contains("CANARY-ALICE") })
      #expect(try !hub.captured(of: "alice").contains { $0.contains("CANARY-BOB") })
      #expect(try !bob.device.holds("CANARY-ALICE") && !undisturbed.device.holds("CANARY-BOB"))
    }
  }

  @Test(
    "inside the apply closure commits neither metadata nor cursor; the same batch comes again",
    arguments: Change.allCases)
  func insideClosure(change: Change) async throws {
    try await TestHub.run { hub in
      let bob = try await Device(hub).signIn("bob")
      _ = try await Person.withRecords(hub, ids(1...3), "CANARY-ALICE")
      let alice = try await Device(hub, keeping: .app).signIn("alice")
      for _ in 1...2 {
        alice.device.wire.clear()
        await expect(.sessionChanged) {
          try await alice.profile.synchronize(account: alice.account) { batch in
            try alice.app.save(batch)
            change.happen(alice.device, alice.account, bob.account)
          }
        }
        let facts = try alice.profile.area.facts()
        #expect(facts.cursor == nil && facts.position == 0 && facts.scan?.place == 0)
        alice.device.session.signIn(alice.account, token: try hub.token(for: "alice"))
      }
      try await alice.pass()
      let batches = alice.app.batches.map { $0.changes.map(\.record) }
      #expect(batches == [ids(1...3), ids(1...3), ids(1...3)])
      #expect(try alice.profile.cursor()?.sequence == 3)
    }
  }

  @Test("inside the closure of a discarded mutation leaves that mutation where it is")
  func insideDiscard() async throws {
    try await TestHub.run { hub in
      let bob = try await Device(hub).signIn("bob")
      let alice = try await Device(hub, keeping: .app).signIn("alice")
      let mutation = try await alice.makeConflict()
      try await alice.profile.discard(mutation, account: alice.account)
      await expect(.sessionChanged) {
        try await alice.profile.synchronize(account: alice.account) { batch in
          try alice.app.save(batch)
          alice.device.session.signIn(bob.account, token: try hub.token(for: "bob"))
        }
      }
      alice.device.session.signIn(alice.account, token: try hub.token(for: "alice"))
      #expect(try alice.profile.pendingSummary().count == 1)
      try await alice.pass()
      #expect(try alice.profile.pendingSummary().isEmpty)
    }
  }

  @Test("a new token of the same sign-in is used from the next request on")
  func newToken() async throws {
    try await TestHub.run(Self.limits) { hub in
      let alice = try await makeBusy(hub, by: try await Device(hub).signIn("alice"))
      let tokens = try (1...20).map { seconds in
        try hub.server.token(for: AccountID("alice"), lifetimeSeconds: 3_600 + Int64(seconds))
      }
      alice.device.wire.before { number, _ throws(TransportError) in
        alice.device.session.replaceToken(tokens[number])
        return nil
      }
      try await alice.profile.synchronize(account: alice.account)
      let sent = alice.device.wire.requests.map { $0.headers[0].value }
      #expect(sent.count >= 6)
      #expect(sent.dropFirst() == tokens[1..<sent.count].map { "Bearer \($0)" }[...])
    }
  }
}
