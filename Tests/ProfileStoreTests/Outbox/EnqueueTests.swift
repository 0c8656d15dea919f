import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Contract section 4.
@Suite("Outbox")
enum Outbox {}

extension Outbox {
  @Suite("enqueueing")
  struct Enqueueing {
    let store: TemporaryStore
    let registry: ProfileRegistry
    let ada: VerifiedAccount
    let profile: Profile

    init() async throws {
      store = try TemporaryStore()
      registry = try store.registry()
      (ada, profile) = try await store.signedInProfile("ada", in: registry)
    }

    @Test("validates the account against binding and session before it touches storage")
    func validatesFirst() async throws {
      let bob = try verified("bob")
      let before = try profile.area.environment.statistics().lastTransaction
      let ran = Mutex(false)
      for account in [bob, nil] {
        await #expect(throws: StoreError.self) {
          try await profile.enqueue([.put("r", Data())], account: account) { _ in
            ran.withLock { $0 = true }
          }
        }
      }
      #expect(try profile.area.environment.statistics().lastTransaction == before)
      #expect(ran.withLock { !$0 })
    }

    @Test("validates it again inside the write transaction: what changed in between is noticed")
    func validatesInside() async throws {
      let guest = try await store.guest(in: registry, puts: ["r"])
      let adoption = AreaState.Adoption(account: ada.bytes, id: UUID())
      // The second answer ends the check outside; at that moment somebody adopts the area.
      let session = ScriptedSession { [area = guest.area] call in
        guard call == 2 else { return .nobody }
        let isFrozen = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
          defer { isFrozen.signal() }
          #expect(throws: Never.self) { try area.freeze(for: adoption) }
        }
        isFrozen.wait()
        return .nobody
      }
      let racing = Profile.handle(to: guest.area, of: try store.registry(session: session))
      let ran = Mutex(false)
      let thrown = await code {
        try await racing.enqueue([.put("x", Data())], account: nil) { _ in
          ran.withLock { $0 = true }
        }
      }
      #expect(thrown == .moved)
      #expect(ran.withLock { !$0 }, "the app's closure ran for somebody who was refused")
      #expect(session.callCount >= 2)
      #expect(try guest.waiting().map(\.record) == ["r"])
    }

    @Test("validates it once more after the app's closure, as late as it can be asked")
    func validatesLast() async throws {
      let bob = try verified("bob")
      let before = try profile.dump()
      let thrown = await code {
        try await profile.enqueue([.put("x", Data())], account: ada) {
          [session = store.session] _ in
          session.signIn(bob, token: "token")
        }
      }
      #expect(thrown == .anotherAccountSignedIn)
      #expect(try profile.dump() == before)
    }

    @Test("a refusal leaves the outbox byte for byte as it was")
    func refusalsChangeNothing() async throws {
      let waiting = Mutation.put("r", Data("1".utf8), mutation: UUID())
      let other = Mutation.put("other", Data("2".utf8))
      try await profile.enqueue([waiting, other], account: ada)
      let parked = Mutation.put("parked", Data("3".utf8))
      try await profile.enqueue(parked, account: ada)
      try await profile.park(parked.id)
      let before = try profile.dump()
      let limit = StoreLimits.payloadByteCountDefault
      let refused: [(Mutation, StoreError.Code)] = [
        (.put("", Data()), .badRecordID),
        (.put(RecordID(String(repeating: "x", count: 401)), Data()), .badRecordID),
        (.put("big", Data(count: limit + 1)), .payloadTooLarge),
        (.put("r", Data("not 1".utf8), mutation: waiting.id), .mutationReused),
        (.put("x", Data("1".utf8), mutation: waiting.id), .mutationReused),
        (.delete("r", mutation: waiting.id), .mutationReused),
        (.put("r", Data(), base: .mutation(UUID())), .badBase),
        (.put("r", Data(), base: .mutation(other.id)), .badBase),
        (.put("r", Data(), base: .version(0)), .badBase),
        (.put("r", Data(), base: .version(1 << 53)), .badBase),
        (.put("r", Data(), replacing: UUID()), .unknownMutation),
        (.put("r", Data(), replacing: waiting.id), .notParked),
        (.put("r", Data(), replacing: parked.id), .badBase),
      ]
      var empty = Mutation.put("r", Data())
      empty.payload = nil
      for (mutation, expected) in refused + [(empty, .undecodable)] {
        // Together with one that is in order: all or none.
        let thrown = await code {
          try await profile.enqueue([.put("fine", Data()), mutation], account: ada)
        }
        #expect(thrown == expected, "\(mutation)")
        #expect(try profile.dump() == before)
      }
      struct Mine: Error {}
      await #expect(throws: Mine.self) {
        try await profile.enqueue([.put("fine", Data())], account: ada) { _ in throw Mine() }
      }
      #expect(try profile.dump() == before)
    }

    @Test("no account is accepted only on a still-unowned area and while the session says nobody")
    func noAccount() async throws {
      let guest = try await store.guest(in: registry, puts: [])
      try await guest.enqueue(.put("r", Data()), account: nil)
      store.signIn(ada)
      #expect(
        await code { try await guest.enqueue(.put("x", Data()), account: nil) }
          == .accountRequired)
      #expect(
        await code { try await profile.enqueue(.put("x", Data()), account: nil) }
          == .accountRequired)
      let unknown = try store.registry(session: AppSession())
      let handle = Profile.handle(to: guest.area, of: unknown)
      #expect(
        await code { try await handle.enqueue(.put("x", Data()), account: nil) }
          == .sessionUnknown)
      #expect(try guest.waiting().map(\.record) == ["r"])
    }

    @Test("with an account on an unowned area: notBound, whatever the session says")
    func notBound() async throws {
      let guest = try await store.guest(in: registry, puts: [])
      #expect(
        await code { try await guest.enqueue(.put("x", Data()), account: ada) } == .notBound)
      store.signIn(ada)
      #expect(
        await code { try await guest.enqueue(.put("x", Data()), account: ada) } == .notBound)
    }

    @Test("when it returns, the mutation is on disk: a process killed right after it has it")
    func onDisk() async throws {
      let other = try TemporaryStore()
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = other.path as String] in
        let ada = try verified("ada")
        let session = AppSession()
        let registry = try ProfileRegistry(
          directory: URL(fileURLWithPath: path), session: session)
        let profile = try await registry.profile(for: ada)
        session.signIn(ada, token: "token")
        try await profile.enqueue(.put("r", Data("kept".utf8)), account: ada)
        kill(getpid(), SIGKILL)
      }
      let registry = try other.registry()
      let profile = try await registry.profile(for: ada)
      #expect(try profile.waiting().map(\.payload) == [Data("kept".utf8)])
    }

    @Test("concurrent enqueues share commits, each with its own result")
    func sharedCommits() async throws {
      let count = 64
      let environment = profile.area.environment
      let session = ScriptedSession(ada.signedIn())
      let handle = Profile.handle(
        to: profile.area, of: try store.registry(session: session))
      try await handle.enqueue(.put("first", Data()), account: ada)
      let asked = session.callCount
      let before = environment.commitCount
      // One write is under way while the others arrive.
      let held = await HeldTurn(profile.area)
      let outcomes = try await withThrowingTaskGroup(of: StoreError.Code?.self) { group in
        for number in 0..<count {
          group.addTask {
            let id = number == 7 ? "" : "r\(number)"
            return await code { try await handle.enqueue(.put(RecordID(id), Data()), account: ada) }
          }
        }
        group.addTask {
          while session.callCount < asked + count - 1 { await Task.yield() }
          held.release()
          return nil
        }
        return try await group.reduce(into: [StoreError.Code?]()) { $0.append($1) }
      }
      await held.untilEnded()
      #expect(outcomes.compactMap { $0 } == [.badRecordID])
      #expect(try profile.waiting().count == count)
      #expect(environment.commitCount - before <= UInt64(count / 4))
    }

    @Test("enqueues that share a commit see what others in it have changed between them")
    func sharedCommitWithOthers() async throws {
      let area = profile.area
      let put = { @Sendable (record: RecordID, text: String) in
        Mutation.put(record, Data(text.utf8))
      }
      let first = try await profile.enqueue(put("first", "12345"), account: ada).mutation
      let parked = try await profile.enqueue(put("parked", "123"), account: ada).mutation
      try await profile.park(parked)
      let table = try profile.table("t", key: TextCodec.self, value: BytesCodec.self)
      let commits = area.environment.commitCount
      let held = await HeldTurn(area) { try $0.put([1], for: "held", in: table) }
      var tasks: [Task<StoreError.Code?, Never>] = []
      func line(_ body: @escaping @Sendable () async throws -> Void) async {
        let before = area.environment.waitingWriteCount
        tasks.append(Task { await code { try await body() } })
        while area.environment.waitingWriteCount == before { await Task.yield() }
      }
      await line { [profile, ada] in try await profile.enqueue(put("a", "1"), account: ada) }
      await line { [profile, ada] in try await profile.enqueue(put("b", "12"), account: ada) }
      await line { [profile] in try await profile.acknowledge(first, version: 1) }
      await line { [profile, ada] in
        try await profile.enqueue(
          .put("parked", Data("1234".utf8), replacing: parked), account: ada)
      }
      await line { [profile, ada] in try await profile.enqueue(put("a", "123"), account: ada) }
      held.release()
      await held.untilEnded()
      for task in tasks { #expect(await task.value == nil) }
      #expect(area.environment.commitCount - commits == 2)
      #expect(try profile.waiting().map(\.record) == ["a", "b", "parked", "a"])
      let summary = try profile.pendingSummary()
      #expect(summary.payloadByteCount == 10)
      #expect(summary.parked == 0)
      #expect(try area.violations() == [])
    }

    @Test("each registry's limits count for its own enqueues, also where they share a commit")
    func sharedCommitOfTwoRegistries() async throws {
      let area = profile.area
      var limits = StoreLimits()
      limits.outboxCountMax = 1
      let strict = try await store.registry(limits: limits).profile(for: ada)
      let table = try profile.table("t", key: TextCodec.self, value: BytesCodec.self)
      let held = await HeldTurn(area) { try $0.put([1], for: "held", in: table) }
      var tasks: [Task<StoreError.Code?, Never>] = []
      for (profile, record) in [(profile, RecordID("a")), (strict, "b"), (profile, "c")] {
        let before = area.environment.waitingWriteCount
        tasks.append(
          Task { [ada] in
            await code {
              _ = try await profile.enqueue(.put(record, Data("p".utf8)), account: ada)
            }
          })
        while area.environment.waitingWriteCount == before { await Task.yield() }
      }
      held.release()
      await held.untilEnded()
      var codes: [StoreError.Code?] = []
      for task in tasks { codes.append(await task.value) }
      #expect(codes == [nil, .outboxFull, nil])
      #expect(try profile.waiting().map(\.record) == ["a", "c"])
    }

    @Test("once begun it ignores cancellation: it returns stored, or throws not stored")
    func ignoresCancellation() async throws {
      for number in 0..<40 {
        let record = RecordID("r\(number)")
        let task = Task { [profile, ada] in
          try await profile.enqueue(.put(record, Data()), account: ada)
        }
        if number % 2 == 0 { await Task.yield() }
        task.cancel()
        #expect(try await task.value.outcome == .stored)
        #expect(try profile.record(record) != nil)
      }
    }

    @Test("the caller may give the UUID; the same UUID and content again changes nothing")
    func sameAgain() async throws {
      let mutation = Mutation.put("r", Data("1".utf8), mutation: UUID())
      #expect(try await profile.enqueue(mutation, account: ada).outcome == .stored)
      let before = try profile.dump()
      #expect(try await profile.enqueue(mutation, account: ada).outcome == .alreadyWaiting)
      var based = mutation
      based.base = .version(3)
      #expect(try await profile.enqueue(based, account: ada).outcome == .alreadyWaiting)
      #expect(try profile.dump() == before)
    }

    @Test(
      "caller-given UUIDs that were settled are remembered until struck off; again changes nothing",
      arguments: ["acknowledged", "discarded", "replaced", "retried"])
    func settledUUIDs(_ way: String) async throws {
      let mutation = Mutation.put("r", Data("1".utf8), mutation: UUID())
      try await profile.enqueue(mutation, account: ada)
      if way == "acknowledged" {
        try await profile.acknowledge(mutation.id, version: 5)
      } else {
        try await profile.park(mutation.id)
      }
      switch way {
      case "discarded": try await profile.discard(mutation.id, account: ada)
      case "replaced":
        try await profile.enqueue(.put("r", Data(), replacing: mutation.id), account: ada)
      case "retried": try await profile.retry(mutation.id, account: ada)
      default: break
      }
      let before = try profile.dump()
      #expect(try await profile.enqueue(mutation, account: ada).outcome == .alreadySettled)
      #expect(try profile.dump() == before)
      try await profile.strikeOff([mutation.id], account: ada)
      #expect(try await profile.enqueue(mutation, account: ada).outcome == .stored)
    }

    @Test("a UUID struck off while it waits is not remembered; one that the store made never is")
    func struckOffEarly() async throws {
      let given = Mutation.put("given", Data(), mutation: UUID())
      let made = Mutation.put("made", Data())
      try await profile.enqueue([given, made], account: ada)
      try await profile.strikeOff([given.id, UUID()], account: ada)
      try await profile.acknowledge(given.id, version: 5)
      try await profile.acknowledge(made.id, version: 6)
      #expect(try profile.dump()["mutations"] == [:])
    }

    @Test("on launch, what is left is enqueued and all else struck off: twice changes nothing")
    func launch() async throws {
      let mutations = (0..<4).map { Mutation.put(RecordID("r\($0)"), Data(), mutation: UUID()) }
      try await profile.enqueue(mutations, account: ada)
      for (number, mutation) in mutations.enumerated().dropLast() {
        try await profile.acknowledge(mutation.id, version: UInt64(number + 1))
      }
      // The app had struck off 0 and 1 when it was killed.
      let left = Array(mutations[2...])
      for _ in 0..<2 {
        let outcomes = try await profile.enqueue(left, account: ada).map(\.outcome)
        #expect(outcomes == [.alreadySettled, .alreadyWaiting])
        try await profile.strikeOff(allBut: left.map(\.id), account: ada)
        #expect(try profile.waiting().count == 1)
      }
      try await profile.strikeOff(allBut: [], account: ada)
      #expect(try profile.dump()["mutations"]?.count == 1)
    }

    @Test("a signed-out app with a store of its own strikes off without an account")
    func strikeOffUnowned() async throws {
      let guest = try await store.guest(in: registry, puts: [])
      let mutation = Mutation.put("r", Data(), mutation: UUID())
      try await guest.enqueue(mutation, account: nil)
      try await guest.strikeOff([mutation.id], account: nil)
      #expect(try guest.waiting().map(\.isCallerGiven) == [false])
      #expect(
        await code { try await guest.strikeOff([mutation.id], account: ada) } == .notBound)
      #expect(
        await code { try await profile.strikeOff([mutation.id], account: nil) }
          == .accountRequired)
    }

    @Test("saving writes the app's own tables in the same transaction")
    func savingTogether() async throws {
      let table = try profile.table("notes", key: TextCodec.self, value: TextCodec.self)
      let before = profile.area.environment.commitCount
      try await profile.enqueue([.put("r", Data())], account: ada) {
        try $0.put("v", for: "k", in: table)
      }
      #expect(profile.area.environment.commitCount == before + 1)
      #expect(try profile.read { try $0.value(of: "k", in: table) } == "v")
    }
  }
}
