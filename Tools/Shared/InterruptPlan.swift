/// What happens on which signal, as a value: no signal, thread or process in it.
///
/// | registered | first signal | next |
/// |---|---|---|
/// | nothing | end | |
/// | a listener, perhaps cleanups | keep it for the first waiter | run the cleanups, then end |
/// | cleanups | run them, newest first, then end | |
/// | waiters, perhaps cleanups | tell the waiters | run the cleanups, then end |
struct InterruptPlan {
  typealias Cleanup = @Sendable (InterruptSignal) -> Void
  typealias Resume = @Sendable (InterruptSignal?) -> Void

  enum Decision {
    /// Tell these, and go on: the program ends by itself.
    case resume([Resume])
    /// From now on signals act by default. Run these in order, then end by the signal.
    case end([Cleanup])
  }

  private var nextID = 0
  private var cleanups: [(id: Int, run: Cleanup)] = []
  private var waiters: [(id: Int, resume: Resume)] = []
  private var isListening = false
  private var kept: InterruptSignal?

  /// Keeps the first signal for whoever waits first.
  mutating func listen() { isListening = true }

  mutating func addCleanup(_ run: @escaping Cleanup) -> Int {
    nextID += 1
    cleanups.append((nextID, run))
    return nextID
  }

  mutating func addWaiter(_ resume: @escaping Resume) -> Int {
    nextID += 1
    waiters.append((nextID, resume))
    return nextID
  }

  /// The signal that was kept, once; nil if none has come.
  mutating func takeKept() -> InterruptSignal? {
    defer { kept = nil }
    return kept
  }

  /// Whether it was registered and is not any more.
  mutating func removeCleanup(_ id: Int) -> Bool {
    guard let index = cleanups.firstIndex(where: { $0.id == id }) else { return false }
    cleanups.remove(at: index)
    return true
  }

  mutating func removeWaiter(_ id: Int) -> Resume? {
    guard let index = waiters.firstIndex(where: { $0.id == id }) else { return nil }
    return waiters.remove(at: index).resume
  }

  mutating func arrived(_ signal: InterruptSignal) -> Decision {
    let wasListening = isListening
    isListening = false
    if !waiters.isEmpty {
      defer { waiters = [] }
      return .resume(waiters.map(\.resume))
    }
    if wasListening {
      kept = signal
      return .resume([])
    }
    defer { cleanups = [] }
    return .end(cleanups.reversed().map(\.run))
  }
}
