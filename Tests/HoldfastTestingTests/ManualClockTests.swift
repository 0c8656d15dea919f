import HoldfastTesting
import Synchronization
import Testing

@Suite("A manual clock", .timeLimit(.minutes(1)))
struct ManualClockTests {
  private let clock = ManualClock()

  /// What tasks have noted.
  private final class Notes: Sendable {
    private let notes = Mutex<[String]>([])
    var all: [String] { notes.withLock { $0 } }
    func add(_ note: String) { notes.withLock { $0.append(note) } }
  }

  @Test("stands, and goes on by what it is told")
  func moves() {
    #expect(clock.now.offset == .zero)
    clock.advance(by: .seconds(2))
    clock.advance(by: .zero)
    #expect(clock.now == ManualClock.Instant(offset: .seconds(2)))
    clock.advance(to: clock.now.advanced(by: .seconds(1)))
    #expect(clock.now.offset == .seconds(3))
    #expect(ManualClock(offset: .seconds(7)).now.duration(to: clock.now) == .seconds(-4))
  }

  @Test("ends a sleep at its deadline, and not before")
  func sleep() async throws {
    let (clock, notes) = (clock, Notes())
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        try await clock.sleep(for: .seconds(10))
        notes.add("woken")
      }
      try await clock.waitForSleepers()
      clock.advance(by: .seconds(10) - .nanoseconds(1))
      #expect(clock.sleeping == [.nanoseconds(1)])
      #expect(notes.all.isEmpty)
      clock.advance(by: .nanoseconds(1))
      #expect(clock.sleeping == [])
      try await group.waitForAll()
    }
    #expect(notes.all == ["woken"])
  }

  @Test("does not sleep towards a deadline that has passed, the present one among them")
  func passed() async throws {
    clock.advance(by: .seconds(5))
    try await clock.sleep(until: ManualClock.Instant(offset: .seconds(5)))
    try await clock.sleep(until: ManualClock.Instant(offset: .zero))
    try await clock.sleep(for: .zero)
  }

  @MainActor
  @Test("wakes by deadline, and then in the order in which they came")
  func order() async throws {
    let (clock, notes) = (clock, Notes())
    let sleeps: [(String, Int)] = [("a3", 3), ("b1", 1), ("c3", 3), ("d2", 2), ("e1", 1)]
    var tasks: [Task<Void, any Error>] = []
    for (count, (name, seconds)) in sleeps.enumerated() {
      // On one actor they go on in the order in which they are woken.
      tasks.append(
        Task { @MainActor in
          try await clock.sleep(until: ManualClock.Instant(offset: .seconds(seconds)))
          notes.add(name)
        })
      try await clock.waitForSleepers(count + 1)
    }
    #expect(clock.sleeping == [1, 1, 2, 3, 3].map { .seconds($0) })
    clock.advance(by: .seconds(9))
    for task in tasks { try await task.value }
    #expect(notes.all == ["b1", "e1", "d2", "a3", "c3"])
  }

  @Test("goes from deadline to deadline, where time alone would be waited for")
  func nextDeadline() async throws {
    let clock = clock
    #expect(clock.advanceToNextDeadline() == nil)
    let tasks = [5, 2, 5].map { seconds in
      Task { try await clock.sleep(until: ManualClock.Instant(offset: .seconds(seconds))) }
    }
    try await clock.waitForSleepers(3)
    #expect(clock.advanceToNextDeadline()?.offset == .seconds(2))
    #expect(clock.sleeping == [.seconds(3), .seconds(3)])
    #expect(clock.advanceToNextDeadline()?.offset == .seconds(5))
    #expect(clock.now.offset == .seconds(5))
    #expect(clock.advanceToNextDeadline() == nil)
    for task in tasks { try await task.value }
  }

  @Test("lets go of a sleep that is cancelled, before and after it began, and of no other")
  func cancelled() async throws {
    let clock = clock
    let other = Task { try await clock.sleep(for: .seconds(1)) }
    try await clock.waitForSleepers()
    let begun = Task { try await clock.sleep(for: .seconds(1)) }
    try await clock.waitForSleepers(2)
    begun.cancel()
    await #expect(throws: CancellationError.self) { try await begun.value }
    #expect(clock.sleeping == [.seconds(1)])

    let before = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await clock.sleep(for: .seconds(1))
    }
    await #expect(throws: CancellationError.self) { try await before.value }
    #expect(clock.sleeping == [.seconds(1)])
    clock.advance(by: .seconds(1))
    try await other.value
  }

  @Test("lets go of who waits for sleepers and is cancelled")
  func cancelledWaiting() async throws {
    let clock = clock
    let waiting = Task { try await clock.waitForSleepers(5) }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    // It is not woken a second time.
    let tasks = (0..<5).map { _ in Task { try await clock.sleep(for: .seconds(1)) } }
    try await clock.waitForSleepers { $0.count == 5 && $0.allSatisfy { $0 == .seconds(1) } }
    clock.advance(by: .seconds(1))
    for task in tasks { try await task.value }
  }

  @Test("loses no wake-up: hundreds of sleeps end while time goes on, cancelled ones among them")
  func race() async throws {
    let clock = clock
    let counts = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<300 {
        group.addTask {
          let sleep = Task { try await clock.sleep(for: .milliseconds(number % 50)) }
          if number % 10 == 0 { sleep.cancel() }
          do { try await sleep.value } catch is CancellationError { return false }
          return true
        }
      }
      var slept = 0
      var cancelled = 0
      // Time goes on until all of them have come: none may wait for more of it than it asked for.
      let time = Task {
        // Only while somebody sleeps: a task that goes round for nothing takes a thread from the others.
        while true {
          try await clock.waitForSleepers()
          clock.advance(by: .milliseconds(1))
        }
      }
      for try await isWoken in group {
        if isWoken { slept += 1 } else { cancelled += 1 }
      }
      time.cancel()
      return (slept, cancelled)
    }
    #expect(counts.0 >= 270 && counts.0 + counts.1 == 300)
    #expect(clock.sleeping == [])
  }
}
