import Foundation
import HubProtocol
import ProfileStore
import Synchronization

/// One stream of a hub's events, read beside waits and passes. What it says is a hint: that a pass may
/// bring something, and never what. The newest says all that the earlier ones did.
final class HintStream: Sendable {
  /// How long it may take until the hub has said hello, the connection included: a proxy that keeps an
  /// answer until it is whole keeps a stream for ever.
  static let greetingTimeMax = Duration.seconds(20)
  /// So long it has to have lasted, to be asked for again at once.
  static let steadyTime = Duration.seconds(60)

  private struct State: Sendable {
    /// Where the account stands, as the hub said last; nil before it said hello.
    var told: Cursor?
    /// What a pass was begun for.
    var answered: Cursor?
    var end: SyncWaiter.End?
    var tasks: [Task<Void, Never>] = []
  }

  /// The sign-in whose token it was asked for with.
  let generation: UInt64
  /// Raised whenever something came.
  let changed = Signal()
  private let state = Mutex(State())

  /// Begins to listen.
  init(_ caller: HubCaller, of profile: Profile, _ clock: any Clock<Duration>) {
    generation = caller.signedIn.generation
    let life = Stopwatch(clock)
    let reading = Task { finish(await read(caller, profile, life)) }
    let greeting = Task {
      do { try await clock.sleep(for: Self.greetingTimeMax) } catch { return }
      if state.withLock({ $0.told == nil }) { finish(SyncWaiter.End(.woke(.streamOver(.broken)))) }
    }
    let isOver = state.withLock { state in
      state.tasks = [reading, greeting]
      return state.end != nil
    }
    if isOver { close() }
  }

  /// How it ended; nil: it goes on.
  var end: SyncWaiter.End? { state.withLock(\.end) }

  /// Whether the hub has hinted at something that the area has not, and for which no pass was begun.
  func takeNews(beyond cursor: Cursor) -> Bool {
    state.withLock { state in
      guard let told = state.told, Self.isNews(told, to: cursor),
        state.answered.map({ Self.isNews(told, to: $0) }) ?? true
      else { return false }
      state.answered = told
      return true
    }
  }

  private static func isNews(_ told: Cursor, to known: Cursor) -> Bool {
    told.epoch != known.epoch || told.sequence > known.sequence
  }

  /// Lets go of the connection.
  func close() {
    for task in state.withLock(\.tasks) { task.cancel() }
  }

  private func finish(_ end: SyncWaiter.End) {
    state.withLock { state in
      if state.end == nil { state.end = end }
    }
    close()
    changed.raise()
  }

  /// Reads it to its end.
  private func read(
    _ caller: HubCaller, _ profile: Profile, _ life: Stopwatch
  ) async -> SyncWaiter.End {
    let broken = SyncWaiter.End(.woke(.streamOver(.broken)))
    guard let transport = caller.transport as? any HubEventTransport else {
      return SyncWaiter.End(.woke(.streamOver(.notThere)))
    }
    do {
      for try await event in try await caller.listen(over: transport) {
        switch event {
        case .hello(let greeting):
          guard greeting.hub == caller.account.hub, greeting.account == caller.account.id else {
            throw PassRunner.Refused(action: .stopForSecurity, detail: "in an event")
          }
          tell(Cursor(epoch: greeting.epoch, sequence: greeting.highWater))
        case .change(let highWater):
          guard let epoch = state.withLock({ $0.told?.epoch }) else { return broken }
          tell(Cursor(epoch: epoch, sequence: highWater))
        // Whatever the reason is: the next question to the hub is answered with it.
        case .bye: break
        }
      }
    } catch let refused as PassRunner.Refused {
      return Self.end(refused, profile)
    } catch let error as SyncError
      where [.sessionChanged, .needsAuthentication].contains(error.code)
    {
      return SyncWaiter.End(error)
    } catch let error as TransportError where error.code == .timedOut {
      // Silent for longer than the hub's comments are apart.
      return broken
    } catch {
      // It broke, or did not come about: the hub is asked otherwise, and that says what there is.
    }
    let wasOfUse = state.withLock { $0.told != nil } && life.elapsed() >= Self.steadyTime
    return wasOfUse ? SyncWaiter.End(.woke(.streamOver(.steady))) : broken
  }

  private func tell(_ told: Cursor) {
    state.withLock { state in
      guard let before = state.told, !Self.isNews(told, to: before) else {
        state.told = told
        return
      }
    }
    changed.raise()
  }

  private static func end(_ refused: PassRunner.Refused, _ profile: Profile) -> SyncWaiter.End {
    switch refused.action {
    case .stopForSecurity:
      profile.reportSecurityEvent()
      return SyncWaiter.End(.accountMismatch, refused)
    case .refreshToken: return SyncWaiter.End(.needsAuthentication, refused)
    // It asks for patience, and not only with its streams.
    case .backOff(retryAfter: .some): return SyncWaiter.End(.hubUnavailable, refused)
    case .stop(.notFound), .stop(.methodNotAllowed):
      return SyncWaiter.End(.woke(.streamOver(.notThere)))
    default: return SyncWaiter.End(.woke(.streamOver(.broken)))
    }
  }
}

/// The stream of events of one `keepSynchronized`: one at a time, kept open over passes.
final class HintLine: Sendable {
  private let current = Mutex<HintStream?>(nil)

  /// What is open, or has ended and was not closed.
  var stream: HintStream? { current.withLock { $0 } }

  /// Listens anew.
  func open(
    _ caller: HubCaller, of profile: Profile, _ clock: any Clock<Duration>
  ) -> HintStream {
    close()
    let stream = HintStream(caller, of: profile, clock)
    current.withLock { $0 = stream }
    return stream
  }

  func close() {
    current.withLock { current in
      defer { current = nil }
      return current
    }?.close()
  }
}
