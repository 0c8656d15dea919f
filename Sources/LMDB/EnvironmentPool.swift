internal import CLMDB
import Foundation
import Synchronization

/// Keeps the environments of many stores at hand: thousands of paths, a bounded number of them open.
///
/// A lease opens an environment or finds it open; what is not leased may be closed to make room, that
/// which was leased longest ago first. Threads and tasks that ask for one path while it is being
/// opened share the one open. The pool's own lock is never held while an environment is opened,
/// closed or used.
///
/// The environments belong to the pool: do not keep one beyond its lease (it may be closed any time
/// then) and do not open the same path beside it. A path that leads to the same file by a link is the
/// same environment here, too.
///
/// An open environment costs three descriptors, its map's size of address space, and less than 96 KiB
/// of memory, those pages of a small store that it has read among them; opening one that exists
/// takes about 0.1 ms.
public final class EnvironmentPool: Sendable {
  /// How a pool behaves.
  public struct Configuration: Sendable {
    /// How each environment is opened.
    public var environment = Environment.Configuration()
    /// The most environments open at once; 1,024 by default. The limits of the process may make it
    /// less: see ``EnvironmentPool/capacity``.
    public var countMax = 1_024
    /// How long a lease waits for room, or for an open or close of that path that somebody else
    /// runs; 10 seconds by default.
    public var leaseTimeout = Duration.seconds(10)
    /// An environment that was not leased for so long is closed; nil for never. 5 minutes by default.
    public var idleTimeout: Duration? = .seconds(300)

    /// Whether the process's allocator is told to keep blocks of 1 MiB and more out of its heap;
    /// true by default. It holds for the whole process, from the pool's making on, with glibc only.
    ///
    /// LMDB asks for two lists of 1 and 2 MiB per environment and touches little of them. Once glibc
    /// takes such blocks from its heap, as it does after the first one was freed, it fills the larger
    /// one with zeros: up to 2 MiB of memory per environment instead of none, and opening one takes
    /// a fifth longer (measured). Blocks of that size cost a system call each then, in the rest of
    /// the program, too.
    public var keepsListsOutOfHeap = true

    /// The defaults.
    public init() {}
  }

  /// How the pool was made.
  public let configuration: Configuration
  /// How many environments may be open at once, and what sets that.
  public let capacity: Capacity
  let state: Mutex<PoolState>
  let sweeper: PoolSweeper?

  /// Makes a pool with nothing open.
  /// - Throws: `outOfResources` when the limits of the process leave no room for a single one.
  public init(configuration: Configuration = Configuration()) throws(LMDBError) {
    self.configuration = configuration
    if configuration.keepsListsOutOfHeap { Environment.keepListsOutOfHeap() }
    capacity = Capacity(configuration)
    guard capacity.count > 0 else {
      throw LMDBError(
        .outOfResources, operation: "pool",
        detail: "no room for one environment: limited by \(capacity.limit)")
    }
    state = Mutex(PoolState(countMax: capacity.count))
    sweeper = configuration.idleTimeout.map(PoolSweeper.init)
    sweeper?.start(self)
  }

  deinit { sweeper?.stop() }

  /// Lends the environment of a directory to `body` and returns what that returns.
  ///
  /// - Parameters:
  ///   - directory: the environment's directory; made as the pool's configuration says.
  ///   - body: may suspend; the environment stays open until it returns. A lease inside a lease takes
  ///     a second place: with all places taken by such callers each waits for the others, until the
  ///     timeout.
  /// - Throws: `poolExhausted` when all were leased for ``Configuration/leaseTimeout``; `busy` when
  ///   somebody else's open or close of that path took so long; `closed` after `closeAll`; what
  ///   ``Environment/open(at:configuration:)`` throws; `CancellationError`; what `body` throws.
  /// - Cost: about a microsecond when it is open; else that of opening it and, with a full pool, of
  ///   closing another one, on a thread outside the task pool.
  public func withEnvironment<R>(
    at directory: String, _ body: (Environment) async throws -> R
  ) async throws -> R {
    let lease = try await acquire(directory)
    defer { release(lease) }
    return try await body(lease.environment)
  }

  // Disfavoured, else a closure that does not suspend would choose it inside of tasks, too.

  /// The same, blocking the calling thread. For tools, tests and threads that may block.
  @_disfavoredOverload
  @available(*, noasync, message: "use the async form, which does not block a task's thread")
  public func withEnvironment<R>(
    at directory: String, _ body: (Environment) throws -> R
  ) throws -> R {
    let lease = try acquireBlocking(directory)
    defer { release(lease) }
    return try body(lease.environment)
  }

  /// Closes what is open and not leased at the moment.
  /// - Returns: how many.
  /// - Throws: `busy` when a transaction did not end in time.
  @discardableResult
  public func closeIdle() throws(LMDBError) -> Int {
    try closeIdle(unusedSince: .now)
  }

  /// Closes everything and lets nobody in until ``resume()``: before the process is suspended or
  /// ends. After it the pool holds no descriptor and no lock.
  ///
  /// Running leases are waited for; new ones throw `closed`.
  /// - Throws: `busy` when leases did not end within ``Configuration/leaseTimeout``; the pool stays
  ///   closed to new ones, and what was not leased is closed.
  public func closeAll() async throws {
    try await Environment.onOwnThread { flag in
      try self.closeAllBlocking(flag)
    }
  }

  /// The same, blocking the calling thread.
  @available(*, noasync, message: "use the async form, which does not block a task's thread")
  public func closeAll() throws {
    try closeAllBlocking(nil)
  }

  /// Lets leases in again after `closeAll`.
  public func resume() { state.withLock { $0.isClosed = false } }

  /// What the pool has done and holds.
  public var statistics: Statistics {
    state.withLock { $0.statistics }
  }

  /// What a pool has done and holds.
  public struct Statistics: Sendable, Hashable {
    /// Environments open now, those that are being opened or closed among them.
    public internal(set) var openCount = 0
    /// Environments leased now.
    public internal(set) var leasedCount = 0
    /// Leases that found their environment open.
    public internal(set) var hitCount = 0
    /// Leases that opened one.
    public internal(set) var missCount = 0
    /// Environments closed to make room for another one.
    public internal(set) var evictionCount = 0
    /// Environments closed because nobody had leased them for long.
    public internal(set) var idleCloseCount = 0
    /// Leases that had to wait for room or for somebody else's open or close.
    public internal(set) var waitCount = 0
    /// Leases that ended with `poolExhausted`.
    public internal(set) var exhaustionCount = 0
  }
}
