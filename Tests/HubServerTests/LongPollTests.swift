import Foundation
import HubProtocol
import HubRules
import HubServer
import LMDB
import Testing

@Suite("A pull that waits", .timeLimit(.minutes(2)))
struct LongPollTests {
  /// A hub whose account has three records.
  private func filled(
    _ change: (inout HubConfiguration) -> Void = { _ in },
    _ body: (TestedHub, TestClient, UUID) async throws -> Void
  ) async throws {
    try await withHub(change) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      try await alice.register()
      _ = try await alice.push((1...3).map { .put("r\($0)") }, epoch: epoch)
      try await body(hub, alice, epoch)
    }
  }

  private func page(_ answer: RawAnswer) throws -> ChangesPage {
    #expect(answer.status == 200)
    return try answer.message(ChangesPage.self)
  }

  @Test("is answered by the push of another device as soon as that is stored")
  func woken() async throws {
    try await filled { (hub, alice, epoch) async throws in
      async let waiting = alice.pull(after: 3, epoch: epoch, "&limit=500&wait=55")
      try await hub.untilWaiting(1)
      // Somebody else's push is none of its business.
      let bob = try TestClient(hub, "bob")
      let other = try await bob.session().epoch
      try await bob.register()
      _ = try await bob.push([.put("r")], epoch: other)
      #expect(hub.waitingCount == 1)
      _ = try await alice.push([.put("new", "text")], epoch: epoch)
      let page = try page(try await waiting)
      #expect(page.records.map(\.id) == ["new"])
      #expect(page.next == 4 && page.highWater == 4 && !page.more && page.after == 3)
      #expect(hub.waitingCount == 0)
    }
  }

  @Test("is answered at once where there is something, or an end was given")
  func atOnce() async throws {
    try await filled { (_, alice, epoch) async throws in
      #expect(
        try page(try await alice.pull(after: 2, epoch: epoch, "&limit=9&wait=55")).next == 3)
      #expect(
        try page(try await alice.pull(after: 3, epoch: epoch, "&limit=9&wait=55&until=7"))
          .records.isEmpty)
      #expect(
        try page(try await alice.pull(after: 3, epoch: epoch, "&limit=9&wait=0")).next == 3)
    }
    try await filled {
      $0.limits.waitSeconds = 0
    } _: { (_, alice, epoch) async throws in
      #expect(
        try page(try await alice.pull(after: 3, epoch: epoch, "&limit=9&wait=55")).next == 3)
    }
  }

  @Test("is answered with no records at its end, which waitSeconds may bring nearer")
  func timeUp() async throws {
    try await filled { (_, alice, epoch) async throws in
      let page = try page(try await alice.pull(after: 3, epoch: epoch, "&limit=9&wait=1"))
      #expect(page.records.isEmpty && !page.more && page.next == 3 && page.highWater == 3)
    }
    try await filled {
      $0.limits.waitSeconds = 1
    } _: { (_, alice, epoch) async throws in
      let page = try page(try await alice.pull(after: 3, epoch: epoch, "&limit=9&wait=55"))
      #expect(page.records.isEmpty)
    }
  }

  @Test("is answered with no records when its token ends")
  func tokenEnds() async throws {
    let directory = try TemporaryDirectory()
    // The hub's clock stands still, a second before the end of the token.
    try await withHub(.test(directory), now: { 1_000_000 }) { hub in
      let alice = try TestClient(hub)
      let epoch = try await alice.session().epoch
      let short = try hub.token(for: alice.account, lifetimeSeconds: 1)
      let answer = try await alice.pull(
        epoch: epoch, "&limit=9&wait=55", ["Authorization": "Bearer \(short)"])
      #expect(try page(answer).records.isEmpty)
    }
  }

  @Test("hears of a new epoch, an erasure and a stop of the account as they happen")
  func standing() async throws {
    try await filled { (hub, alice, epoch) async throws in
      func waiting(
        _ epoch: UUID, _ change: () async throws -> Void
      ) async throws -> RawAnswer {
        async let answer = alice.pull(after: 3, epoch: epoch, "&limit=9&wait=55")
        try await hub.untilWaiting(1)
        try await change()
        return try await answer
      }
      let disabled = try await waiting(epoch) { try await hub.disable(alice.account) }
      #expect(disabled.status == 403 && disabled.code == "account_disabled")
      try await hub.enable(alice.account)
      let changed = try await waiting(epoch) { try await hub.beginEpoch(alice.account) }
      #expect(changed.status == 409)
      let new = try #require(try HubProblem(decoding: changed.body).epoch)
      #expect(changed.header("Holdfast-Epoch") == new.wireText)
      // By a cursor above the high water, too.
      let forked = try await waiting(new) {
        _ = try await alice.push([.put("r")], epoch: new, cursor: 99)
      }
      #expect(forked.status == 409)
      let newest = try await alice.session().epoch
      let erased = try await waiting(newest) { try await hub.erase(alice.account) }
      #expect(erased.status == 410 && erased.code == "account_erased")
      #expect(erased.header("Holdfast-Epoch") == nil)
    }
  }

  @Test("goes on through what is not news to it")
  func noNews() async throws {
    try await filled { (hub, alice, epoch) async throws in
      let known = WireMutation.put("r4")
      _ = try await alice.push([known], epoch: epoch)
      async let waiting = alice.pull(after: 4, epoch: epoch, "&limit=9&wait=55")
      try await hub.untilWaiting(1)
      // A repetition, a purge, nothing at all, and a change of the account's standing and back.
      _ = try await alice.push([known], epoch: epoch)
      try await hub.purgeTombstones(of: alice.account)
      _ = try await alice.push([], epoch: epoch, cursor: 4)
      #expect(hub.waitingCount == 1)
      let deleted = try await alice.push([.delete("r1")], epoch: epoch, cursor: 4)
      #expect(deleted.status == 200)
      let page = try page(try await waiting)
      #expect(page.records.map(\.deleted) == [true])
      #expect(page.next == 5)
    }
  }

  @Test("misses none of many pushes that come while it begins and ends")
  func everyPush() async throws {
    try await filled { (_, alice, epoch) async throws in
      async let pushed: Void = {
        for number in 0..<150 {
          let answer = try await alice.push([.put("n\(number)")], epoch: epoch)
          #expect(answer.status == 200)
        }
      }()
      var cursor: UInt64 = 3
      while cursor < 153 {
        // One that was missed would take 55 seconds.
        let page = try page(
          try await alice.pull(after: cursor, epoch: epoch, "&limit=500&wait=55"))
        #expect(page.next > cursor)
        cursor = page.next
      }
      try await pushed
    }
  }

  @Test("ends when the client is gone, and is answered where only its sending has ended")
  func hungUp() async throws {
    try await filled { (hub, alice, epoch) async throws in
      let target = "/v1/changes?after=3&epoch=\(epoch.wireText)&limit=9&wait=55"
      do {
        let connections = try (0..<20).map { _ in try alice.connection(target) }
        try await hub.untilWaiting(20)
        withExtendedLifetime(connections) {}
      }
      try await hub.untilWaiting(0)
      let half = try alice.connection(target)
      try await hub.untilWaiting(1)
      half.endSending()
      let answer = try await blocking { try half.receive() }
      #expect(try page(answer).records.isEmpty)
      #expect(hub.waitingCount == 0)
    }
  }

  @Test("ends in order when the hub stops")
  func stopped() async throws {
    let directory = try TemporaryDirectory()
    let hub = try await HubServer.start(.test(directory))
    let alice = try TestClient(hub)
    let epoch = try await alice.session().epoch
    let target = "/v1/changes?after=0&epoch=\(epoch.wireText)&limit=9&wait=55"
    let connections = try (0..<50).map { _ in try alice.connection(target) }
    try await hub.untilWaiting(50)
    try await hub.stop()
    for connection in connections {
      let answer = try await blocking { try connection.receive() }
      #expect(try page(answer).records.isEmpty)
      #expect(answer.header("Connection") == "close")
    }
  }

  @Test("takes no thread, and a thousand of them are woken by one push")
  func thousand() async {
    // In a process of its own, so that nobody else's threads count.
    await #expect(processExitsWith: .success) {
      EnvironmentPool.raiseDescriptorLimit()
      try await withHub {
        $0.listen.connectionCountMax = 1_200
      } _: { hub in
        let alice = try TestClient(hub)
        let epoch = try await alice.session().epoch
        try await alice.register()
        let target = "/v1/changes?after=0&epoch=\(epoch.wireText)&limit=9&wait=55"
        let connections = try (0..<1_000).map { _ in try alice.connection(target) }
        try await hub.untilWaiting(1_000)
        #if os(Linux)
          let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
          #expect(threads.count < 100, "\(threads.count) threads")
        #endif
        _ = try await alice.push([.put("new")], epoch: epoch)
        let pages = try await blocking {
          try connections.map { try $0.receive().message(ChangesPage.self) }
        }
        #expect(pages.count { $0.records.map(\.id) == ["new"] && $0.next == 1 } == 1_000)
        #expect(hub.waitingCount == 0)
      }
    }
  }
}
