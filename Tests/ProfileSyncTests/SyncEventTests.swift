import Foundation
import HoldfastTesting
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

@Suite("Events of a profile's passes")
struct SyncEventTests {
  /// Names of the events, but for progress.
  private static func name(_ event: SyncEvent) -> String? {
    switch event {
    case .passBegan: "began"
    case .progress: nil
    case .passEnded(let report): "ended \(report.acknowledged) \(report.delivered)"
    case .passStopped(let code, _): "stopped \(code.map { "\($0)" } ?? "by the app")"
    case .securityEvent: "security"
    case .waiting: "waiting"
    case .missed(let count): "missed \(count)"
    }
  }

  @Test("reach every listener, each in its own time, from when it began to listen")
  func listeners() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      var first = person.profile.syncEvents.makeAsyncIterator()
      try await person.send(["a"], "first")
      var second = person.profile.syncEvents.makeAsyncIterator()
      person.device.wire.ask(for: "other-account-header")
      await expect(.accountMismatch) {
        try await person.profile.synchronize(account: person.account)
      }
      func take(_ iterator: inout SyncEvents.Iterator, _ count: Int) async -> [String] {
        var names: [String] = []
        while names.count < count, let event = await iterator.next() {
          if let name = Self.name(event) { names.append(name) }
        }
        return names
      }
      let stopped = ["began", "security", "stopped accountMismatch"]
      #expect(await take(&first, 5) == ["began", "ended 1 1"] + stopped)
      #expect(await take(&second, 3) == stopped)
    }
  }

  @Test("a listener that is too slow loses the oldest, and is told how many")
  func slow() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      var iterator = person.profile.syncEvents.makeAsyncIterator()
      person.device.wire.before { _, _ throws(TransportError) in
        throw TransportError(code: .unreachable, description: "offline")
      }
      for _ in 0..<130 {
        await expect(.hubUnreachable) {
          try await person.profile.synchronize(account: person.account)
        }
      }
      // Two each, and 256 have room.
      let next = await iterator.next()
      #expect(next.flatMap(Self.name) == "missed 4")
      for name in ["began", "stopped hubUnreachable"] {
        let next = await iterator.next()
        #expect(next.flatMap(Self.name) == name)
      }
    }
  }

  @Test("cancelling whoever listens ends it")
  func cancel() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let isListening = Gate()
      let task = Task {
        var iterator = person.profile.syncEvents.makeAsyncIterator()
        isListening.open()
        return await iterator.next() == nil
      }
      await isListening.wait()
      task.cancel()
      #expect(await task.value)
    }
  }

  @Test("progress never falls within a pass, and comes to its end")
  func progress() async throws {
    try await TestHub.run(HubLimits(pullRecords: 5, pushMutations: 3)) { hub in
      let other = try await Person.withRecords(hub, ids(1...30))
      let person = try await Device(hub).signIn()
      try await person.pass()
      try await other.send(ids(1...20), "second")
      try await person.write(ids(31...40), "mine")
      let seen = Log<SyncProgress>()
      try await person.profile.synchronize(
        account: person.account, progress: ProgressObserver { seen.add($0) })
      let fractions = seen.entries.map(\.fractionCompleted)
      #expect(fractions == fractions.sorted())
      #expect(fractions.count >= 10)
      #expect(fractions.first.map { $0 > 0 && $0 < 0.2 } == true)
      #expect(fractions.last == 1)
    }
  }
}

@Suite("The fraction of a pass that is done")
struct ProgressMeterTests {
  @Test("counts sending and receiving together, and does not fall when more turns up")
  func together() {
    var meter = ProgressMeter(sending: 10, from: 100)
    meter.expect(highWater: 130)
    #expect(meter.advance(.sending, 5, of: 10).fractionCompleted == 5.0 / 40)
    #expect(meter.advance(.sending, 10, of: 10).fractionCompleted == 10.0 / 40)
    #expect(meter.advance(.receiving, 120, of: 130).fractionCompleted == 30.0 / 40)
    #expect(meter.advance(.receiving, 121, of: 400).fractionCompleted == 30.0 / 40)
    #expect(meter.advance(.receiving, 400, of: 400).fractionCompleted == 1)
  }

  @Test("a scan from zero counts from zero; nothing to do is no number")
  func zero() {
    var meter = ProgressMeter(sending: 0, from: 100)
    meter.expect(highWater: 100)
    #expect(meter.advance(.receiving, 100, of: 100).fractionCompleted == 0)
    #expect(meter.advance(.receiving, 50, of: 100).fractionCompleted == 0.5)
    #expect(meter.advance(.receiving, 100, of: 100).fractionCompleted == 1)
  }
}

@Suite("An observer of a store")
struct SyncObserverTests {
  /// Notes everything that it is told.
  private final class Observer: SyncObserver {
    let requests = Log<RequestMeasurement>()
    let passes = Log<PassMeasurement>()
    let keptBack = Log<Parked.Reason?>()
    let security = Log<Bool>()

    func requestEnded(_ request: RequestMeasurement) { requests.add(request) }
    func passEnded(_ pass: PassMeasurement) { passes.add(pass) }
    func mutationKeptBack(_ reason: Parked.Reason?) { keptBack.add(reason) }
    func securityEvent() { security.add(true) }
  }

  private struct Quiet: SyncObserver {}

  @Test("is told counts, bytes and durations of every request and pass")
  func told() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      try await person.pass()
      person.device.wire.clear()
      let (observer, clock) = (Observer(), ManualClock())
      person.profile.registry.observe(with: observer, clock: clock)
      person.device.wire.before { number, _ throws(TransportError) in
        clock.advance(by: .milliseconds(10))
        if number == 4 { throw TransportError(code: .unreachable, description: "offline") }
        return nil
      }
      try await person.write(["a", "b"], String(repeating: "x", count: 1_000))
      try await person.profile.synchronize(account: person.account)
      await expect(.hubUnreachable) {
        try await person.profile.synchronize(account: person.account)
      }
      let requests = observer.requests.entries
      #expect(requests.map(\.call) == [.session, .push, .pull, .session])
      #expect(requests.map(\.status) == [200, 200, 200, nil])
      #expect(requests.map(\.failure) == [nil, nil, nil, .unreachable])
      #expect(requests.allSatisfy { $0.duration == .milliseconds(10) })
      #expect(requests[1].sentByteCount > 2_000 && requests[0].sentByteCount == 0)
      #expect(requests[2].receivedByteCount > 2_000)
      let passes = observer.passes.entries
      #expect(passes.map(\.report.acknowledged) == [2, 0])
      #expect(passes.map(\.failure) == [nil, .hubUnreachable])
      #expect(passes.map(\.duration) == [.milliseconds(30), .milliseconds(10)])
      #expect(passes.allSatisfy { !$0.stoppedByApp && $0.waited == .zero })
    }
  }

  @Test("is told apart: what the app's closure threw, a store that refused, a cancelled task")
  func stopping() async throws {
    try await TestHub.run { hub in
      let other = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub).signIn()
      let observer = Observer()
      person.profile.registry.observe(with: observer)
      func last() throws -> PassMeasurement { try #require(observer.passes.entries.last) }

      // Whatever a closure throws is the app's, an error of this package's, too.
      for error in [AppFailure(), StoreError(.storage, ""), SyncError(.accountMismatch, "")]
        as [any Error]
      {
        await #expect(throws: (any Error).self) {
          try await person.profile.synchronize(account: person.account) { _ in throw error }
        }
        #expect(try last().stoppedByApp && !last().wasCancelled)
        #expect(try last().failure == nil && last().storeFailure == nil)
      }
      #expect(observer.security.entries.isEmpty)

      // A disk that is full.
      person.profile.area.onCommit.withLock { hook in
        hook = { _ in throw StoreError(.storage, "of a test") }
      }
      await expect(StoreError.Code.storage) {
        try await person.profile.synchronize(account: person.account)
      }
      person.profile.area.onCommit.withLock { $0 = nil }
      #expect(try last().storeFailure == .storage && last().failure == nil)
      #expect(try !last().stoppedByApp && !last().wasCancelled)

      let isThere = Gate()
      person.device.wire.before { _, _ throws(TransportError) in
        isThere.open()
        while !Task.isCancelled { await Task.yield() }
        throw TransportError(code: .cancelled, description: "cancelled")
      }
      let pass = Task { try await person.profile.synchronize(account: person.account) }
      await isThere.wait()
      pass.cancel()
      await #expect(throws: CancellationError.self) { _ = try await pass.value }
      #expect(try last().wasCancelled && !last().stoppedByApp)
      #expect(try last().failure == nil && last().storeFailure == nil)

      // A resolver is a closure of the app, too.
      person.device.wire.clear()
      try await person.pass()
      try await other.send(["a"], "newer")
      try await person.profile.enqueue(
        .put("a", Data(), base: .version(1)), account: person.account)
      await #expect(throws: AppFailure.self) {
        try await person.profile.synchronize(
          account: person.account, resolve: ConflictResolver { _ in throw AppFailure() })
      }
      #expect(try last().stoppedByApp)
    }
  }

  @Test("is told refusals, repeats, what is kept back and security events, and no name or payload")
  func refusals() async throws {
    try await TestHub.run { hub in
      let good = try hub.token(for: "alice")
      let person = try await Device(hub, session: AppSession { $0.replaceToken(good) }).signIn()
      let observer = Observer()
      person.profile.registry.observe(with: observer)
      try await person.send(["canary"], "payload")
      try await person.profile.enqueue(
        .put("canary", Data(), base: .mustNotExist), account: person.account)
      try await person.profile.enqueue(
        .put("canary", Data(), base: .version(40)), account: person.account)
      person.device.session.replaceToken("bad")
      try await person.profile.synchronize(account: person.account)
      let refused = observer.requests.entries.filter { $0.refusal != nil || $0.isRepeated }
      #expect(refused.map(\.refusal) == ["token_invalid", nil])
      #expect(refused.map(\.isRepeated) == [false, true])
      #expect(observer.keptBack.entries == [.conflict])
      person.device.wire.ask(for: "other-account-body")
      await expect(.accountMismatch) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(observer.security.entries == [true])
      let told = String(describing: observer.requests.entries) + "\(observer.passes.entries)"
      for secret in ["canary", "alice", "payload", good, "bad\""] {
        #expect(!told.contains(secret))
      }
    }
  }

  @Test("that does nothing is none")
  func quiet() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      person.profile.registry.observe(with: Quiet())
      try await person.send(["a"], "first")
      person.profile.registry.observe(with: nil)
      try await person.send(["a"], "second")
      #expect(try person.profile.pendingSummary().isEmpty)
    }
  }
}
