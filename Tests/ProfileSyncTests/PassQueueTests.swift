import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

// Contract section 5.1.
@Suite("Synchronize: one pass of an area at a time")
struct PassQueueTests {
  /// Yields until the condition holds: for what another task does by itself.
  static func until(_ holds: () -> Bool) async {
    while !holds() { await Task.yield() }
  }

  private static func area(_ hub: TestHub) async throws -> Area {
    try await Device(hub).signIn().profile.area
  }

  @Test("first come, first served")
  func order() async throws {
    try await TestHub.run { hub in
      let area = try await Self.area(hub)
      let running = try #require(try await area.passes.turn(timeout: nil))
      let served = Log<Int>()
      try await withThrowingTaskGroup { group in
        for number in 1...5 {
          group.addTask {
            let turn = try #require(try await area.passes.turn(timeout: nil))
            served.add(number)
            turn.end()
          }
          await Self.until { area.passes.count == number + 1 }
        }
        #expect(served.entries.isEmpty)
        running.end()
        try await group.waitForAll()
      }
      #expect(served.entries == [1, 2, 3, 4, 5])
    }
  }

  @Test("a pass waits for a running one of the same area, and sends nothing meanwhile")
  func waits() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let (isThere, mayGoOn) = (Gate(), Gate())
      person.device.wire.clear()
      person.device.wire.before { number, _ throws(TransportError) in
        if number == 1 {
          isThere.open()
          await mayGoOn.wait()
        }
        return nil
      }
      async let first = person.profile.synchronize(account: person.account)
      await isThere.wait()
      async let second = person.profile.synchronize(account: person.account)
      await Self.until { person.profile.area.passes.count == 2 }
      #expect(person.device.wire.calls == [.session])
      mayGoOn.open()
      _ = try await (first, second)
      #expect(person.device.wire.calls == [.session, .changes, .session, .changes])
    }
  }

  @Test("passes of different areas do not wait for each other")
  func otherArea() async throws {
    try await TestHub.run { hub in
      let alice = try await Device(hub).signIn("alice")
      let bob = try await Device(hub).signIn("bob")
      let turn = try #require(try await alice.profile.area.passes.turn(timeout: nil))
      try await bob.profile.synchronize(account: bob.account, waiting: .notAtAll)
      turn.end()
    }
  }

  @Test("the optional time limit ends the wait with busy, and nothing was sent")
  func timeLimit() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let turn = try #require(try await person.profile.area.passes.turn(timeout: nil))
      for limit in [PassWait.notAtAll, .atMost(.zero), .atMost(.milliseconds(3))] {
        await expect(.busy) {
          try await person.profile.synchronize(account: person.account, waiting: limit)
        }
      }
      #expect(person.device.wire.calls.isEmpty)
      #expect(person.profile.area.passes.count == 1)
      turn.end()
      // A free area is given although there is no time to wait.
      for _ in 0..<20 {
        try await person.profile.synchronize(account: person.account, waiting: .notAtAll)
      }
    }
  }

  @Test("cancelling a waiting call ends its wait, and those behind it move up")
  func cancel() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let area = person.profile.area
      let turn = try #require(try await area.passes.turn(timeout: nil))
      let waiting = Task { try await person.profile.synchronize(account: person.account) }
      await Self.until { area.passes.count == 2 }
      let behind = Task { try await person.profile.synchronize(account: person.account) }
      await Self.until { area.passes.count == 3 }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { _ = try await waiting.value }
      #expect(area.passes.count == 2)
      #expect(person.device.wire.calls.isEmpty)
      turn.end()
      _ = try await behind.value
      // A task that is cancelled already does not even begin to wait.
      let late = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await area.passes.turn(timeout: nil) == nil
      }
      await #expect(throws: CancellationError.self) { _ = try await late.value }
      #expect(area.passes.count == 0)
    }
  }

  @Test("cancelling the one whose turn has just come lets the next one go on")
  func cancelAtItsTurn() async throws {
    try await TestHub.run { hub in
      let area = try await Self.area(hub)
      for _ in 0..<50 {
        let turn = try #require(try await area.passes.turn(timeout: nil))
        let first = Task { try await area.passes.turn(timeout: nil).map { $0.end() } }
        await Self.until { area.passes.count == 2 }
        let second = Task { try await area.passes.turn(timeout: nil).map { $0.end() } }
        await Self.until { area.passes.count == 3 }
        async let cancelled: Void = first.cancel()
        async let ended: Void = turn.end()
        _ = await (cancelled, ended)
        _ = await first.result
        _ = try await second.value
        #expect(area.passes.count == 0)
      }
    }
  }

  // MARK: Other processes

  private static func ticket(_ number: Int, of area: Area) throws -> String {
    let directory = area.directory + "/passes"
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true)
    return "\(directory)/\(number).ticket"
  }

  /// Holds a ticket as another process does: by a description of the file that is not ours.
  private static func hold(_ number: Int, of area: Area) throws -> Int32 {
    let descriptor = open(try ticket(number, of: area), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    try #require(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    return descriptor
  }

  @Test("a pass in another process excludes this one until it ends")
  func otherProcess() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let area = person.profile.area
      let descriptor = try Self.hold(7, of: area)
      person.device.wire.clear()
      await expect(.busy) {
        try await person.profile.synchronize(account: person.account, waiting: .notAtAll)
      }
      let waiting = Task { try await person.profile.synchronize(account: person.account) }
      await Self.until { area.passes.count == 1 }
      #expect(person.device.wire.calls.isEmpty)
      // One that came later waits behind this one.
      let later = try Self.hold(9, of: area)
      unlink(try Self.ticket(7, of: area))
      close(descriptor)
      _ = try await waiting.value
      unlink(try Self.ticket(9, of: area))
      close(later)
    }
  }

  @Test("a file with a number that no line comes to is none of its tickets")
  func absurdNumber() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let directory = person.profile.area.directory + "/passes"
      let file = "\(directory)/\(UInt64.max).ticket"
      try Data().write(to: URL(fileURLWithPath: file))
      try await person.profile.synchronize(account: person.account, waiting: .notAtAll)
      #expect(FileManager.default.fileExists(atPath: file))
    }
  }

  @Test("what a process leaves that died is removed, and no pass waits for it")
  func abandoned() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let file = try Self.ticket(3, of: person.profile.area)
      close(try Self.hold(3, of: person.profile.area))
      #expect(FileManager.default.fileExists(atPath: file))
      try await person.profile.synchronize(account: person.account, waiting: .notAtAll)
      #expect(!FileManager.default.fileExists(atPath: file))
    }
  }

  @Test("a process that is killed in its pass lets the next one go on")
  func killed() async throws {
    try await TestHub.run { hub in
      let person = try await Person.withRecords(hub, ["a"])
      let ticket = try Self.ticket(1, of: person.profile.area)
      let note = ticket + ".holder"
      // Holds the ticket of a pass and says who it is, then waits to be killed.
      async let child = #expect(processExitsWith: .signal(SIGKILL)) {
        [ticket = ticket as String, note = note as String] in
        let descriptor = open(ticket, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(flock(descriptor, LOCK_EX) == 0)
        try Data("\(getpid())".utf8).write(to: URL(filePath: note), options: .atomic)
        while true { pause() }
      }
      await Self.until { FileManager.default.fileExists(atPath: note) }
      await expect(.busy) {
        try await person.profile.synchronize(account: person.account, waiting: .notAtAll)
      }
      let waiting = Task { try await person.profile.synchronize(account: person.account) }
      await Self.until { person.profile.area.passes.count == 1 }
      let holder = try #require(Int32(String(contentsOfFile: note, encoding: .utf8)))
      kill(holder, SIGKILL)
      _ = try await waiting.value
      _ = await child
      unlink(note)
    }
  }

  @Test("a pass that waits while its area is erased says that it was erased")
  func erased() async throws {
    try await TestHub.run { hub in
      let person = try await Device(hub).signIn()
      let area = person.profile.area
      let turn = try #require(try await area.passes.turn(timeout: nil))
      let waiting = Task { try await person.profile.synchronize(account: person.account) }
      await Self.until { area.passes.count == 2 }
      try await person.device.registry.erase(person.account)
      turn.end()
      await expect(StoreError.Code.erased) { _ = try await waiting.value }
      await expect(StoreError.Code.erased) {
        try await person.profile.synchronize(account: person.account)
      }
      #expect(person.device.wire.calls.isEmpty)
    }
  }
}

@Suite("Synchronize: inside an apply closure")
struct InsideClosureTests {
  @Test("a pass throws at once, directly and through child tasks, while enqueue works")
  func inside() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub, keeping: .app).signIn()
      let runs = Log<Bool>()
      try await person.profile.synchronize(account: person.account) { batch in
        try person.app.save(batch)
        guard runs.add(true) == 1 else { return }
        await expect(.insideApplyClosure) {
          try await person.profile.synchronize(account: person.account) { _ in }
        }
        await expect(.insideApplyClosure) {
          _ = try await Task {
            try await person.profile.synchronize(account: person.account) { _ in }
          }.value
        }
        await withTaskGroup { group in
          group.addTask {
            await expect(.insideApplyClosure) {
              try await person.profile.synchronize(account: person.account, waiting: .notAtAll) {
                _ in
              }
            }
          }
        }
        try await person.write(["inside"], "directly")
        try await Task { try await person.write(["child"], "in a child task") }.value
      }
      #expect(!runs.entries.isEmpty)
      try await person.pass()
      #expect(person.app.texts["inside"] == "directly")
      #expect(person.app.texts["child"] == "in a child task")
    }
  }

  @Test("a detached task is outside: it finds the area busy, and waits until the closure returned")
  func detached() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub, keeping: .app).signIn()
      let later = Log<Task<SyncReport, any Error>>()
      try await person.profile.synchronize(account: person.account) { batch in
        try person.app.save(batch)
        await Task.detached {
          _ = await expect(.busy) {
            try await person.profile.synchronize(account: person.account, waiting: .notAtAll) {
              try person.app.save($0)
            }
          }
        }.value
        later.add(Task.detached { try await person.pass() })
      }
      for task in later.entries { _ = try await task.value }
      #expect(later.entries.count == 1)
    }
  }

  @Test("a pass throws for any area in the chain, and runs for another area")
  func chain() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"], name: "alice")
      _ = try await Person.withRecords(hub, ["b"], name: "bob")
      let device = try Device(hub, keeping: .app)
      let alice = try await device.signIn("alice")
      // Bob's profile has a session of its own.
      let bobs = AppSession()
      let account = try await device.registry.verify(token: try hub.token(for: "bob"))
      bobs.signIn(account, token: try hub.token(for: "bob"))
      let profile = try await device.registry.profile(for: account, session: bobs)
      let bob = AppStore(owner: account.bytes)
      let runs = Log<Bool>()
      try await alice.profile.synchronize(account: alice.account) { batch in
        try alice.app.save(batch)
        guard runs.add(true) == 1 else { return }
        try await profile.synchronize(account: account) { inner in
          try bob.save(inner)
          await expect(.insideApplyClosure) {
            try await alice.profile.synchronize(account: alice.account) { _ in }
          }
          await expect(.insideApplyClosure) {
            try await profile.synchronize(account: account) { _ in }
          }
          // Each enqueue is checked against the session of its own area's pass.
          guard runs.add(true) == 2 else { return }
          try await profile.enqueue(.put("bobs", Data()), account: account)
          try await alice.write(["alices"], "")
        }
      }
      #expect(alice.app.texts["a"] == "first" && alice.app.texts["b"] == nil)
      #expect(bob.texts["b"] == "first" && bob.texts["a"] == nil)
    }
  }

  @Test("a task that outlives the closure is inside it no more")
  func outlives() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let person = try await Device(hub, keeping: .app).signIn()
      let isOver = Gate()
      let started = Log<Task<Void, any Error>>()
      try await person.profile.synchronize(account: person.account) { batch in
        try person.app.save(batch)
        let task = Task {
          await isOver.wait()
          try await person.pass()
        }
        started.add(task)
      }
      isOver.open()
      for task in started.entries { try await task.value }
    }
  }

  @Test("the pass's own session counts, for an enqueue too")
  func session() async throws {
    try await TestHub.run { hub in
      _ = try await Person.withRecords(hub, ["a"])
      let device = try Device(hub, keeping: .app)
      let person = try await device.signIn()
      let own = AppSession()
      own.signIn(person.account, token: try hub.token(for: "alice"))
      // The registry's session says nobody meanwhile.
      device.session.signOut()
      try await person.profile.synchronize(account: person.account, session: own) { batch in
        try person.app.save(batch)
        try await person.write(["inside"], "inside")
      }
      await expect(StoreError.Code.notSignedIn) { try await person.write(["after"], "after") }
      #expect(try person.profile.pendingSummary().count == 1)
    }
  }
}
