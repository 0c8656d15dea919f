import Foundation
import HubProtocol
import ProfileStore
import Testing

@Suite("Times, which are stored as whole milliseconds")
struct StoredTimeTests {
  let store: TemporaryStore
  let registry: ProfileRegistry
  let ada: VerifiedAccount
  let profile: Profile

  init() async throws {
    store = try TemporaryStore()
    registry = try store.registry()
    (ada, profile) = try await store.signedInProfile("ada", in: registry)
  }

  @Test("a receipt says the time that is read of it later, whatever the clock says")
  func receipts() async throws {
    let bob = try verified("bob")
    let bobsSession = AppSession()
    bobsSession.signIn(bob, token: "token")
    let bobs = try await registry.profile(for: bob, session: bobsSession)
    var receipts: [CopyReceipt] = []
    for number in 0..<20 {
      try await profile.enqueue(.put(RecordID("r\(number)"), Data()), account: ada)
      // No clock of a device stands at whole milliseconds.
      store.clock.advance(by: 1.000_700_3)
      receipts.append(
        try await bobs.copyRecords(from: profile, sourceAccount: ada, account: bob))
    }
    #expect(try bobs.copyReceipts().sorted { $0.copiedAt < $1.copiedAt } == receipts)
  }

  @Test("the time of an edit stays, however often the edit is stored again")
  func entries() async throws {
    for number in 0..<20 {
      store.clock.advance(by: 1.000_700_3)
      let record = RecordID("r\(number)")
      var mutation = try await profile.enqueue(.put(record, Data()), account: ada).mutation
      let time = try #require(try profile.outbox().last?.enqueuedAt)
      #expect(abs(time.timeIntervalSince(store.clock.now)) <= 0.000_501)
      for _ in 0..<5 {
        try await profile.park(mutation)
        mutation = try await profile.retry(mutation, account: ada)
        #expect(try profile.outbox().last?.enqueuedAt == time)
      }
    }
  }
}
