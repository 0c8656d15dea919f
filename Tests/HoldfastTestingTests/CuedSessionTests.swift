import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync
import Synchronization
import Testing

@Suite("A session on cue", .timeLimit(.minutes(1)))
struct CuedSessionTests {
  private struct Offline: Error {}

  private func put(_ text: String) -> Mutation { .put("r", Data(text.utf8)) }

  @Test("says what it was told, and reads account, token and generation together")
  func says() async throws {
    let seat = try Seat()
    let session = CuedSession()
    #expect(session.state == .unknown)
    let ada = try await seat.registry.verify(token: seat.hub.token(for: "ada"))
    session.signIn(ada, token: "one")
    guard case .account(let first) = session.state else {
      Issue.record("nobody is signed in")
      return
    }
    #expect(first.account == ada.bytes && first.token == "one")
    session.replaceToken("two")
    #expect(
      session.state
        == .account(
          SignedInAccount(account: ada.bytes, token: "two", generation: first.generation)))
    session.change(.restore(account: ada.bytes, token: nil))
    guard case .account(let again) = session.state else {
      Issue.record("nobody is signed in")
      return
    }
    #expect(again.generation != first.generation && again.token == nil)
    session.signOut()
    session.replaceToken("nobody's")
    #expect(session.state == .nobody)
    session.change(.becomeUnknown)
    #expect(session.state == .unknown)
    #expect(session.readCount == 6)
  }

  @Test("gives no generation that another session of the process has given")
  func generations() async throws {
    let seat = try Seat()
    let ada = try await seat.registry.verify(token: seat.hub.token(for: "ada"))
    let (cued, app) = (CuedSession(), AppSession())
    var generations: [UInt64] = []
    for _ in 0..<3 {
      cued.signIn(ada, token: "token")
      app.signIn(ada, token: "token")
      for state in [cued.state, app.state] {
        if case .account(let signedIn) = state { generations.append(signedIn.generation) }
      }
    }
    #expect(generations.count == 6 && Set(generations).count == 6)
  }

  @Test("changes within the reading that was named, once, and in the order of the plans")
  func reads() {
    let session = CuedSession()
    session.plan(.signOut, at: .read(3))
    session.plan(.becomeUnknown, at: .read(4))
    session.plan(.signOut, at: .read(4))
    #expect(session.planned == [.read(3), .read(4), .read(4)])
    #expect((0..<5).map { _ in session.state } == [.unknown, .unknown, .nobody, .nobody, .nobody])
    #expect(session.planned == [])
    session.plan(.becomeUnknown, at: .read(1))
    session.forgetPlans()
    #expect(session.state == .nobody)
  }

  @Test("changes at a moment that the test names and counts")
  func named() {
    let session = CuedSession()
    session.plan(.signOut, at: .named("saved", 2))
    session.reach("saved")
    session.reach("something else")
    #expect(session.state == .unknown)
    session.reach("saved")
    #expect(session.state == .nobody)
    session.reach("saved")
    #expect(session.planned == [])
  }

  @Test("a pass sends nothing after a switch that comes just before its n-th request")
  func requests() async throws {
    // Session, registration, push, pull: wherever it comes, no later request is made.
    for number in 1...3 {
      let seat = try Seat()
      let (ada, profile) = try await seat.signIn("ada")
      let bob = try await seat.registry.verify(token: seat.hub.token(for: "bob"))
      try await profile.enqueue(put("Ada's"), account: ada)
      seat.hub.forgetRequests()
      seat.session.plan(.signIn(bob, token: seat.hub.token(for: "bob")), at: .request(nil, number))
      let error = await #expect(throws: SyncError.self) {
        try await profile.synchronize(account: ada)
      }
      #expect(error?.code == .sessionChanged)
      #expect(seat.hub.requests.count == number)
      #expect(seat.session.planned == [])
      #expect(seat.hub.records(of: "bob") == [])
    }
  }

  @Test("counts requests of one kind, and answers")
  func kinds() async throws {
    let seat = try Seat()
    let (ada, profile) = try await seat.signIn("ada")
    try await profile.enqueue(put("Ada's"), account: ada)
    seat.session.plan(.signOut, at: .answer(.mutations))
    let error = await #expect(throws: SyncError.self) {
      try await profile.synchronize(account: ada)
    }
    #expect(error?.code == .sessionChanged)
    // The hub has it, and the device does not know that it has: it goes once more, under its UUID.
    #expect(seat.hub.records(of: "ada").count == 1)
    #expect(try profile.pendingSummary().count == 1)
    seat.session.signIn(ada, token: seat.hub.token(for: "ada"))
    seat.session.plan(.signOut, at: .request(.mutations, 2))
    try await profile.synchronize(account: ada)
    #expect(try profile.pendingSummary().isEmpty)
    #expect(seat.hub.highWater(of: "ada") == 1)
    #expect(seat.session.planned == [.request(.mutations, 2)])
  }

  @Test("renews a token within one pass, fails to, or has none")
  func refreshes() async throws {
    let seat = try Seat()
    let (ada, profile) = try await seat.signIn("ada")
    try await profile.enqueue(put("Ada's"), account: ada)
    let hub = seat.hub
    hub.revokeTokens(of: "ada")
    func refused() async {
      let error = await #expect(throws: SyncError.self) {
        try await profile.synchronize(account: ada)
      }
      #expect(error?.code == .needsAuthentication)
    }
    await refused()
    seat.session.onRefresh { _ in throw Offline() }
    await refused()
    #expect(seat.session.refreshCount == 2)
    let clock = ManualClock()
    seat.session.onRefresh { session in
      try await clock.sleep(for: .seconds(30))
      session.replaceToken(hub.token(for: "ada"))
    }
    let pass = Task { try await profile.synchronize(account: ada) }
    try await clock.waitForSleepers()
    #expect(hub.records(of: "ada") == [])
    clock.advance(by: .seconds(30))
    _ = try await pass.value
    #expect(hub.records(of: "ada").count == 1)
    #expect(seat.session.refreshCount == 3)
  }

  @Test("tells a loop of its changes at once, without a look from time to time")
  func signals() async throws {
    let seat = try Seat()
    let (ada, profile) = try await seat.signIn("ada")
    try await profile.synchronize(account: ada)
    seat.session.signOut()
    let clock = ManualClock()
    let pace = SyncPace(lookInterval: .seconds(1_000_000), clock: clock)
    var events = profile.syncEvents.makeAsyncIterator()
    let loop = Task { try await profile.keepSynchronized(account: ada, pace: pace) }
    var waited: [SyncWait] = []
    while waited.isEmpty, let event = await events.next() {
      if case .waiting(let wait) = event { waited.append(wait) }
    }
    #expect(waited == [.forSignIn])
    seat.session.signIn(ada, token: seat.hub.token(for: "ada"))
    var hasPassed = false
    while !hasPassed, let event = await events.next() {
      if case .passEnded = event { hasPassed = true }
    }
    #expect(hasPassed)
    loop.cancel()
    await #expect(throws: CancellationError.self) { try await loop.value }
  }
}
