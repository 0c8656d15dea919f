import HubProtocol
import ProfileSync
import Synchronization

/// Where a stream's head and events go: first to the caller who asked, then to the reader.
///
/// The loop's thread fills it. Nothing is handed over under its lock.
final class EventReceiver: Sendable {
  private enum State {
    case asked(CheckedContinuation<Result<HubEventAnswer, TransportError>, Never>)
    case opened(HubEvents.Continuation)
    case over
  }

  /// How many events may lie unread; the oldest go.
  private static let unreadCountMax = 64

  private let state: Mutex<State>
  private let stop: @Sendable () -> Void

  /// - Parameter stop: Ends the exchange; called when the reader has gone, and at the end.
  init(
    _ continuation: CheckedContinuation<Result<HubEventAnswer, TransportError>, Never>,
    stop: @escaping @Sendable () -> Void
  ) {
    state = Mutex(.asked(continuation))
    self.stop = stop
  }

  /// The head of a stream has come.
  func open(_ head: HubResponse) {
    let (events, filling) = HubEvents.makeStream(
      bufferingPolicy: .bufferingNewest(EventReceiver.unreadCountMax))
    filling.onTermination = { [stop] _ in stop() }
    let continuation: CheckedContinuation<Result<HubEventAnswer, TransportError>, Never>? =
      state.withLock { state in
        guard case .asked(let continuation) = state else { return nil }
        state = .opened(filling)
        return continuation
      }
    continuation?.resume(returning: .success(.opened(head, events)))
  }

  func add(_ event: HubEvent) {
    let filling: HubEvents.Continuation? = state.withLock { state in
      if case .opened(let filling) = state { filling } else { nil }
    }
    filling?.yield(event)
  }

  /// The exchange is over.
  func finish(_ result: Result<HubResponse, TransportError>) {
    let before = state.withLock { state in
      defer { state = .over }
      return state
    }
    switch before {
    case .asked(let continuation):
      continuation.resume(returning: result.map { .refused($0) })
    case .opened(let filling):
      switch result {
      case .success: filling.finish()
      case .failure(let error): filling.finish(throwing: error)
      }
    case .over: break
    }
  }
}
