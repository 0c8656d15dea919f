/// What one who waits for changes of an account is told.
package enum WaitSignal: Hashable, Sendable {
  /// Something of the account may have changed: look at it again.
  case changed
  /// Nothing did within the time.
  case timeUp
  /// There is nothing to wait for any more.
  case over(WaitEnd)
}

/// Why a wait is over for good.
package enum WaitEnd: Hashable, Sendable {
  /// The client has closed its connection, or its half of it.
  case hungUp
  /// The hub stops.
  case stopping
}

/// Where one who waits stands, as a value: events in, a signal out for whoever is waiting.
///
/// A change is kept until the next wait, so that it may come at any moment; an end is kept for ever.
/// An alarm counts for the wait that it was set for and for no later one.
package struct WaitState: Hashable, Sendable {
  private var turn: UInt64 = 0
  private var isWaiting = false
  private var isChanged = false
  private var isTimeUp = false
  private var end: WaitEnd?

  package init() {}

  /// A wait is prepared.
  /// - Returns: its number, for the alarm.
  package mutating func prepare() -> UInt64 {
    precondition(!isWaiting, "one wait at a time")
    turn += 1
    isTimeUp = false
    return turn
  }

  /// The wait begins.
  /// - Returns: the signal that is there already, or nil if it has to wait for one.
  package mutating func begin() -> WaitSignal? {
    precondition(!isWaiting, "one wait at a time")
    let signal: WaitSignal? =
      if let end {
        .over(end)
      } else if isChanged {
        .changed
      } else if isTimeUp {
        .timeUp
      } else {
        nil
      }
    isWaiting = signal == nil
    isChanged = false
    return signal
  }

  /// Something of the account may have changed.
  /// - Returns: what to tell the one who is waiting, if there is one.
  package mutating func change() -> WaitSignal? {
    guard end == nil else { return nil }
    guard isWaiting else {
      isChanged = true
      return nil
    }
    isWaiting = false
    return .changed
  }

  /// The time of a wait is up.
  package mutating func alarm(of turn: UInt64) -> WaitSignal? {
    guard turn == self.turn, end == nil else { return nil }
    guard isWaiting else {
      isTimeUp = true
      return nil
    }
    isWaiting = false
    return .timeUp
  }

  /// There is nothing to wait for any more; the first reason counts.
  package mutating func end(_ reason: WaitEnd) -> WaitSignal? {
    guard end == nil else { return nil }
    end = reason
    guard isWaiting else { return nil }
    isWaiting = false
    return .over(reason)
  }
}
