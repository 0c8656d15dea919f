import Dispatch
import Foundation
import Synchronization

extension EnvironmentPool {
  /// An environment that stays open until it is given back.
  struct Lease {
    let environment: Environment
    let key: PoolState.Key
  }

  func acquire(_ directory: String) async throws -> Lease {
    var attempt = Attempt(configuration)
    // Whoever was woken for room and did not take it wakes the next one.
    defer { if attempt.owesRoom { wake(state.withLock { $0.takeWaiterForRoom() }) } }
    while true {
      try Task.checkCancellation()
      let key = try key(of: directory)
      let decision = state.withLock { $0.decide(key, isFirstTry: attempt.isFirst) }
      attempt.isFirst = false
      switch decision {
      case .lease(let environment): return Lease(environment: environment, key: key)
      case .open:
        attempt.owesRoom = false
        let lease = try await Environment.onOwnThread { _ in try self.open(directory, key) }
        if let lease { return lease }
      case .close(let other, let environment):
        attempt.owesRoom = false
        try await Environment.onOwnThread { _ in try self.close(other, environment) }
      case .wait(let waiter, let isForRoom):
        attempt.owesRoom = false
        let outcome = await waiter.wait(until: attempt.deadline)
        try judge(outcome, waiter, isForRoom, directory)
        attempt.owesRoom = isForRoom
      case .refuse: throw refusal(directory)
      }
    }
  }

  func acquireBlocking(_ directory: String) throws -> Lease {
    var attempt = Attempt(configuration)
    defer { if attempt.owesRoom { wake(state.withLock { $0.takeWaiterForRoom() }) } }
    while true {
      let key = try key(of: directory)
      let decision = state.withLock { $0.decide(key, isFirstTry: attempt.isFirst) }
      attempt.isFirst = false
      switch decision {
      case .lease(let environment): return Lease(environment: environment, key: key)
      case .open:
        attempt.owesRoom = false
        if let lease = try open(directory, key) { return lease }
      case .close(let other, let environment):
        attempt.owesRoom = false
        try close(other, environment)
      case .wait(let waiter, let isForRoom):
        attempt.owesRoom = false
        try judge(waiter.waitBlocking(until: attempt.deadline), waiter, isForRoom, directory)
        attempt.owesRoom = isForRoom
      case .refuse: throw refusal(directory)
      }
    }
  }

  private struct Attempt {
    let deadline: ContinuousClock.Instant
    var isFirst = true
    var owesRoom = false

    init(_ configuration: Configuration) {
      deadline = ContinuousClock.now + configuration.leaseTimeout
    }
  }

  func release(_ lease: Lease) {
    wake(state.withLock { $0.released(lease.key, at: .now) })
  }

  /// A wake-up that comes after its waiter has given up goes to the next one.
  private func wake(_ waiters: [PoolWaiter]) {
    var waiters = waiters
    while let waiter = waiters.popLast() {
      if !waiter.resolve(.woken) { waiters += state.withLock { $0.takeWaiterForRoom() } }
    }
  }

  /// What a wait that ended means.
  private func judge(
    _ outcome: PoolWaiter.Outcome, _ waiter: PoolWaiter, _ isForRoom: Bool, _ directory: String
  ) throws {
    switch outcome {
    case .woken: return
    case .timedOut, .cancelled:
      state.withLock { state in
        state.forget(waiter)
        if outcome == .timedOut, isForRoom { state.statistics.exhaustionCount += 1 }
      }
      if outcome == .cancelled { throw CancellationError() }
      throw LMDBError(
        isForRoom ? .poolExhausted : .busy, operation: "lease", path: directory,
        detail: isForRoom
          ? "all \(capacity.count) leased for \(configuration.leaseTimeout)"
          : "it was being opened or closed for \(configuration.leaseTimeout)")
    }
  }

  /// Opens an environment in the place that was taken for it.
  /// - Returns: nil when somebody else is closing it again: ask once more.
  private func open(_ directory: String, _ key: PoolState.Key) throws(LMDBError) -> Lease? {
    let environment: Environment
    do {
      environment = try Environment.open(at: directory, configuration: configuration.environment)
    } catch {
      wake(state.withLock { $0.failed(key) })
      throw error
    }
    let (final, waiters) = state.withLock { $0.opened(key, environment) }
    wake(waiters)
    return final.map { Lease(environment: environment, key: $0) }
  }

  private func close(_ key: PoolState.Key, _ environment: Environment) throws(LMDBError) {
    do {
      try environment.close()
    } catch {
      wake(state.withLock { $0.stayed(key, at: .now) })
      throw error
    }
    wake(state.withLock { $0.closed(key) })
  }

  /// The data file decides, by whatever path it is reached. Where there is none yet, the directory
  /// does; it is made here, so that two aliases of it meet.
  private func key(of directory: String) throws(LMDBError) -> PoolState.Key {
    if let file = EnvironmentRegistry.FileID(file: directory + "/data.mdb") { return .file(file) }
    if let place = EnvironmentRegistry.FileID(file: directory) { return .directory(place) }
    guard configuration.environment.access == .createOrWrite else {
      throw LMDBError(.missing, operation: "lease", path: directory)
    }
    guard unsafe mkdir(directory, 0o700) == 0 || errno == EEXIST,
      let place = EnvironmentRegistry.FileID(file: directory)
    else { throw LMDBError.from(errno, operation: "mkdir", path: directory) }
    return .directory(place)
  }

  private func refusal(_ directory: String) -> LMDBError {
    LMDBError(.closed, operation: "lease", path: directory, detail: "closeAll was called")
  }

  // MARK: - Closing

  @discardableResult
  func closeIdle(unusedSince limit: ContinuousClock.Instant) throws(LMDBError) -> Int {
    var count = 0
    while let (key, environment) = state.withLock({ $0.takeOldestIdle(unusedSince: limit) }) {
      try close(key, environment)
      count += 1
    }
    return count
  }

  /// Closes what was idle for longer than allowed; what cannot be closed now is tried again later.
  func sweep(idleTimeout: Duration) {
    let limit = ContinuousClock.now - idleTimeout
    while let (key, environment) = state.withLock({ $0.takeOldestIdle(unusedSince: limit) }) {
      do {
        try close(key, environment)
        state.withLock { $0.statistics.idleCloseCount += 1 }
      } catch {
        return
      }
    }
  }

  func closeAllBlocking(_ flag: CancellationFlag?) throws {
    wake(state.withLock { $0.close() })
    let deadline = ContinuousClock.now + configuration.leaseTimeout
    while true {
      try closeIdle(unusedSince: .now)
      if state.withLock({ $0.isEmpty }) { return }
      try flag?.check()
      guard ContinuousClock.now < deadline else {
        throw LMDBError(
          .busy, operation: "closeAll", detail: "leases ran for \(configuration.leaseTimeout)")
      }
      usleep(1_000)
    }
  }
}

/// Closes a pool's idle environments from time to time, and holds the pool weakly.
final class PoolSweeper: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): a dispatch source may be used from any thread, and this one is
  // set up before the pool is handed out.
  private let timer: any DispatchSourceTimer
  private let idleTimeout: Duration

  init(idleTimeout: Duration) {
    self.idleTimeout = idleTimeout
    timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
    let period = max(0.01, idleTimeout.seconds / 4)
    timer.schedule(deadline: .now() + period, repeating: period)
  }

  func start(_ pool: EnvironmentPool) {
    timer.setEventHandler { [weak pool, idleTimeout] in pool?.sweep(idleTimeout: idleTimeout) }
    timer.activate()
  }

  func stop() { timer.cancel() }
}
