import Dispatch
import Synchronization

/// Whose turn it is to write: one thread of the process at a time, from its begin to its commit.
///
/// Who comes alone writes at once, on its own thread. Who comes while somebody writes joins the
/// line, and whoever has the turn next commits for all of the line. The turn is passed to a blocked
/// thread if there is one in the line, else to the writer's queue, which serves suspended tasks.
struct WriterTurn {
  enum State {
    /// Nobody writes, nobody waits.
    case free
    /// The queue was asked to serve the line and has not begun: any thread may do it instead.
    case scheduled
    case taken
  }

  private(set) var state = State.free
  private var line: [WriteJob] = []
  /// The line begins here: what lies before was taken out.
  private var first = 0
  private var blockedCount = 0
  /// The thread that has the turn is told when so many wait; 0: it is not.
  private var wantedCount = 0

  var isLineEmpty: Bool { waitingCount == 0 }
  var waitingCount: Int { line.count - first }

  /// - Returns: whether the thread that has the turn waits for this.
  @discardableResult
  mutating func append(_ job: WriteJob) -> Bool {
    line.append(job)
    if job is BlockedWrite { blockedCount += 1 }
    guard wantedCount > 0, waitingCount >= wantedCount || !job.joinsGroups else { return false }
    wantedCount = 0
    return true
  }

  /// - Returns: false when so many wait already.
  mutating func want(_ count: Int) -> Bool {
    guard waitingCount < count else { return false }
    wantedCount = count
    return true
  }

  /// - Returns: whether they were still wanted, so that nobody tells any more.
  mutating func wantNoMore() -> Bool {
    defer { wantedCount = 0 }
    return wantedCount > 0
  }

  /// - Returns: whether the turn was free: nobody writes, nobody waits.
  mutating func takeIfFree() -> Bool {
    guard state == .free else { return false }
    state = .taken
    return true
  }

  /// - Returns: whether the turn was free, or nobody had begun to use it.
  mutating func take() -> Bool {
    guard state != .taken else { return false }
    state = .taken
    return true
  }

  /// - Returns: whether the caller must ask the queue to serve the line.
  mutating func schedule() -> Bool {
    guard state == .free else { return false }
    state = .scheduled
    return true
  }

  /// The queue begins what it was asked for.
  /// - Returns: false when another thread has taken the turn instead.
  mutating func takeIfScheduled() -> Bool {
    guard state == .scheduled else { return false }
    state = .taken
    return true
  }

  /// Takes the jobs out that share the next commit.
  /// - Returns: none when the line is empty or begins with a thread that goes on itself.
  mutating func nextGroup(countMax: Int) -> [WriteJob] {
    var end = first
    while end < line.count, end - first < countMax, line[end].joinsGroups { end += 1 }
    let group = Array(line[first..<end])
    for job in group where job is BlockedWrite { blockedCount -= 1 }
    first = end
    compact()
    return group
  }

  /// Puts jobs back that the last group had no room for.
  mutating func putBack(_ jobs: ArraySlice<WriteJob>) {
    guard !jobs.isEmpty else { return }
    line.replaceSubrange(..<first, with: jobs)
    first = 0
    for job in jobs where job is BlockedWrite { blockedCount += 1 }
  }

  /// Who has the turn next.
  enum Successor {
    case nobody
    case queue
    case thread(BlockedWrite)
  }

  mutating func pass() -> Successor {
    if blockedCount > 0,
      let index = line[first...].firstIndex(where: { $0 is BlockedWrite }),
      let blocked = line[index] as? BlockedWrite
    {
      // One that goes on itself leaves the line; one that joins groups commits for the line.
      if !blocked.joinsGroups {
        line.remove(at: index)
        blockedCount -= 1
        compact()
      }
      return .thread(blocked)
    }
    state = isLineEmpty ? .free : .scheduled
    return isLineEmpty ? .nobody : .queue
  }

  private mutating func compact() {
    if first == line.count {
      line.removeAll(keepingCapacity: line.capacity <= 1_024)
      first = 0
    } else if first > 1_024 {
      line.removeSubrange(..<first)
      first = 0
    }
  }
}

extension Environment {
  /// Runs `body` with the turn to write, on this thread.
  func withTurn<R>(_ body: () throws -> R) rethrows -> R {
    let isTaken = turn.withLock { $0.take() }
    if !isTaken { waitForTurn() }
    defer { passTurn() }
    return try body()
  }

  private func waitForTurn() {
    let waiting = BlockedWrite(.storing)
    let (isTaken, isWanted) = turn.withLock { turn in
      turn.take() ? (true, false) : (false, turn.append(waiting))
    }
    if isWanted { returned.signal() }
    if !isTaken { _ = waiting.wait() }
  }

  /// Gives the turn to whoever waits.
  func passTurn() {
    switch turn.withLock({ $0.pass() }) {
    case .nobody: break
    case .queue: writer.queue.async { self.serveLine() }
    case .thread(let blocked): blocked.takeTurn()
    }
  }

  /// Puts a suspended task's write in the line.
  func submit(_ job: WriteJob) {
    let (isWanted, mustSchedule) = turn.withLock { turn in
      (turn.append(job), turn.schedule())
    }
    if isWanted { returned.signal() }
    if mustSchedule { writer.queue.async { self.serveLine() } }
  }

  /// Puts a blocked thread's write in the line, and returns when it is done.
  func submitAndWait(_ job: BlockedGroupWrite) {
    var (isWanted, hasTurn) = turn.withLock { turn in (turn.append(job), turn.take()) }
    if isWanted { returned.signal() }
    while !job.isFinished {
      if hasTurn {
        commitNextGroup()
        passTurn()
        hasTurn = false
      } else {
        hasTurn = job.wait() == .turn
      }
    }
  }

  /// On the writer's queue.
  private func serveLine() {
    guard turn.withLock({ $0.takeIfScheduled() }) else { return }
    waitForReturning()
    commitNextGroup()
    passTurn()
  }

  /// Waits for tasks that the last commit has told; see ``ReturningWriters``.
  private func waitForReturning() {
    guard let wait = history.returning.wait(now: .now), turn.withLock({ $0.want(wait.count) })
    else { return }
    let end = ContinuousClock.now + wait.durationMax
    let nanoseconds = Int(wait.pause / .nanoseconds(1))
    var count = 0
    var hasCome = false
    while !hasCome {
      hasCome = returned.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .success
      if hasCome { break }
      let (now, isOver) = turn.withLock { turn in
        let isOver = turn.waitingCount == count || ContinuousClock.now >= end
        return (turn.waitingCount, isOver && turn.wantNoMore())
      }
      if isOver { break }
      count = now
    }
    history.returning.note(came: hasCome)
  }

  private func commitNextGroup() {
    let group = turn.withLock { $0.nextGroup(countMax: Self.groupCountMax) }
    guard group.count > 1 else {
      _ = commit(group)
      return
    }
    let start = ContinuousClock.now
    let rest = commit(group)
    let waiting = turn.withLock { turn in
      turn.putBack(rest)
      return turn.waitingCount
    }
    history.returning.note(
      served: group.count - rest.count, waiting: waiting, since: start, now: .now)
  }
}
