import HoldfastTesting
import ProfileStore
import ProfileSync
import SyncTestSupport
import Testing

/// A running `keepSynchronized` with a clock that the test sets.
final class Running: Sendable {
  let person: Person
  let clock = ManualClock()
  let events = Log<SyncEvent>()
  let task: Task<Void, any Error>
  private let listening: Task<Void, Never>

  /// - Parameter lookInterval: so long that nothing is seen by looking, by default.
  init(
    _ person: Person, session: (any AccountSession)? = nil,
    stopping: SyncPace.Stopping = .throwing, pollInterval: Duration = .seconds(60),
    lookInterval: Duration = .seconds(1_000_000),
    apply: (nonisolated(nonsending) @Sendable (borrowing ChangeBatch) async throws -> Void)? = nil
  ) async {
    self.person = person
    let pace = SyncPace(
      pollInterval: pollInterval, lookInterval: lookInterval, stopping: stopping, clock: clock,
      chance: { 0.5 })
    let (events, isListening) = (events, Gate())
    listening = Task {
      var iterator = person.profile.syncEvents.makeAsyncIterator()
      isListening.open()
      while let event = await iterator.next() { events.add(event) }
    }
    await isListening.wait()
    task = Task {
      if let apply {
        try await person.profile.keepSynchronized(
          account: person.account, session: session, pace: pace, applyChanges: apply)
      } else {
        try await person.profile.keepSynchronized(
          account: person.account, session: session, pace: pace)
      }
    }
  }

  /// What it waits for now.
  var waiting: SyncWait? {
    for event in events.entries.reversed() {
      switch event {
      case .waiting(let wait): return wait
      case .passBegan: return nil
      default: continue
      }
    }
    return nil
  }

  /// How many passes have begun.
  var passCount: Int {
    events.entries.count { if case .passBegan = $0 { true } else { false } }
  }

  /// It waits for this, after so many passes at least.
  func waits(
    _ wait: SyncWait, passes count: Int = 1, sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    await eventually("waiting \(wait) after \(count) passes", sourceLocation: sourceLocation) {
      waiting == wait && passCount >= count
    }
  }

  /// Somebody sleeps for so long.
  func sleeps(_ duration: Duration) async {
    await eventually("sleeping for \(duration)") { clock.sleeping.contains(duration) }
  }

  /// Ends it, whatever it does.
  func end(sourceLocation: SourceLocation = #_sourceLocation) async {
    task.cancel()
    listening.cancel()
    await listening.value
    await #expect(throws: CancellationError.self, sourceLocation: sourceLocation) {
      try await task.value
    }
    #expect(person.profile.area.passes.count == 0, sourceLocation: sourceLocation)
  }
}
