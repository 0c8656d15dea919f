import Synchronization

/// Holds tasks until it is opened; once open it stays open.
package final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  package init() {}

  package var isOpen: Bool { state.withLock(\.isOpen) }

  package func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  package func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}

/// What tasks have noted, in the order in which they did.
package final class Log<Entry: Sendable>: Sendable {
  private let content = Mutex<[Entry]>([])

  package init() {}

  package var entries: [Entry] { content.withLock { $0 } }

  /// - Returns: how many there are now.
  @discardableResult
  package func add(_ entry: Entry) -> Int {
    content.withLock { content in
      content.append(entry)
      return content.count
    }
  }
}
