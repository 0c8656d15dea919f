public import ProfileStore
import Synchronization

/// The events of one area's passes in this process, from the moment at which iteration begins; see
/// ``SyncEvent``.
///
/// Any number of listeners may iterate at the same time, each with a buffer of its own. One that is
/// too slow loses the oldest events, and is told how many (``SyncEvent/missed(_:)``). It never ends by
/// itself; cancelling the iterating task ends it.
public struct SyncEvents: AsyncSequence, Sendable {
  /// One event after the other.
  public typealias Element = SyncEvent
  let board: EventBoard

  /// Begins to listen.
  public func makeAsyncIterator() -> Iterator { Iterator(listener: board.listen()) }

  /// A listener with a buffer of its own.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let listener: EventListener

    /// The next event; nil once the task is cancelled.
    public mutating func next() async -> SyncEvent? { await listener.next() }
  }
}

/// Who listens to one area, and what its requests are made with. Cheap while nobody does.
final class EventBoard: Sendable {
  /// So many events wait for a slow listener.
  static let bufferCountMax = 256

  private struct WeakListener: Sendable { weak let listener: EventListener? }
  private let listeners = Mutex<[WeakListener]>([])
  /// The sign-in and token that a request was last made with: once they are refused, nothing is tried
  /// again with them.
  let lastUsed = Mutex<SignedInAccount?>(nil)

  func listen() -> EventListener {
    let listener = EventListener()
    listeners.withLock { listeners in
      listeners = listeners.filter { $0.listener != nil }
      listeners.append(WeakListener(listener: listener))
    }
    return listener
  }

  func post(_ event: SyncEvent) {
    for listener in listeners.withLock({ $0 }) { listener.listener?.post(event) }
  }

  /// The board of an area, made on first use.
  static func of(_ signals: AreaSignals) -> EventBoard {
    signals.attachment.withLock { attached in
      if let board = attached as? EventBoard { return board }
      let board = EventBoard()
      attached = board
      return board
    }
  }
}

/// One listener's buffer: bounded, drops the oldest and says so.
final class EventListener: Sendable {
  private struct State {
    var events: [SyncEvent] = []
    var missed = 0
  }

  private let state = Mutex(State())
  private let posted = Signal()

  func post(_ event: SyncEvent) {
    state.withLock { state in
      if state.events.count >= EventBoard.bufferCountMax {
        state.events.removeFirst()
        state.missed += 1
      }
      state.events.append(event)
    }
    posted.raise()
  }

  private func take() -> SyncEvent? {
    state.withLock { state in
      if state.missed > 0 {
        defer { state.missed = 0 }
        return .missed(state.missed)
      }
      return state.events.isEmpty ? nil : state.events.removeFirst()
    }
  }

  func next() async -> SyncEvent? {
    while !Task.isCancelled {
      let seen = posted.count
      if let event = take() { return event }
      await posted.wait(past: seen)
    }
    return nil
  }
}

extension Profile {
  /// What goes on in the passes of this profile in this process, whoever calls them.
  public var syncEvents: SyncEvents { SyncEvents(board: .of(area.signals)) }
}
