package import LMDB
import Synchronization

/// An environment of a store, which a suspended store closes and opens again under those who hold it.
///
/// Tables that were opened in it stay good: they are tables of what is opened again, too.
package final class StoreEnvironment: Sendable {
  /// One time that it was open.
  private final class Life: Sendable {
    let environment: Environment
    /// Set before it is closed for a suspension: whoever finds it closed then knows why.
    let isSuspended = Atomic<Bool>(false)

    init(_ environment: Environment) { self.environment = environment }
  }

  private let life: Mutex<Life>
  private let visits = Mutex(Visits())

  private struct Visits {
    var isRefused = false
    var count = 0
  }

  init(_ environment: Environment) { life = Mutex(Life(environment)) }

  /// What is open now, or was last.
  package var environment: Environment { life.withLock { $0.environment } }

  /// Whether it was closed for a suspension and not opened again.
  var isSuspended: Bool { life.withLock { $0.isSuspended.load(ordering: .acquiring) } }

  /// Runs `body` with what is open now.
  /// - Throws: `suspended`, and what `body` throws.
  func use<R>(_ body: (Environment) throws -> R) throws -> R {
    let life = life.withLock { $0 }
    do {
      return try body(life.environment)
    } catch {
      throw Self.explained(error, life)
    }
  }

  /// The same for a write that suspends its task.
  func use<R: Sendable>(
    _ body: @Sendable (Environment) async throws -> R
  ) async throws -> R {
    let life = life.withLock { $0 }
    do {
      return try await body(life.environment)
    } catch {
      throw Self.explained(error, life)
    }
  }

  /// It was closed before the transaction began, so that nothing of it is stored.
  private static func explained(_ error: any Error, _ life: Life) -> any Error {
    guard let closed = error as? LMDBError, closed.code == .closed,
      life.isSuspended.load(ordering: .acquiring)
    else { return error }
    return StoreError.suspended
  }

  // MARK: Visits: work that opens files or takes locks beside this environment

  /// Begins a visit, to be ended by ``leave()``.
  /// - Throws: `suspended`.
  func enter() throws(StoreError) {
    let isRefused = visits.withLock { visits in
      if !visits.isRefused { visits.count += 1 }
      return visits.isRefused
    }
    if isRefused { throw .suspended }
  }

  func leave() { visits.withLock { $0.count -= 1 } }

  /// Whether visits are refused.
  var refusesVisits: Bool { visits.withLock(\.isRefused) }

  func refuseVisits(_ isRefused: Bool) { visits.withLock { $0.isRefused = isRefused } }

  /// How many visits have not ended.
  var visitCount: Int { visits.withLock(\.count) }

  // MARK: Suspending

  /// The system ends an app that takes too long: what is larger is not read whole for a sum, and only its
  /// form is checked when it is opened next. A fraction of a millisecond for each.
  private static let sealedByteCountMax = 256 << 10

  /// Closes it until ``resume()``.
  /// - Parameter patience: how long to wait for a reader of this process.
  /// - Throws: `busy` when a reader did not end; it stays open.
  func suspend(patience: Duration) throws(LMDBError) {
    let life = life.withLock { $0 }
    life.isSuspended.store(true, ordering: .releasing)
    if life.environment.isClosed { return }
    do {
      try life.environment.close(patience: patience, sealing: Self.sealedByteCountMax)
    } catch {
      life.isSuspended.store(false, ordering: .releasing)
      throw error
    }
  }

  /// Opens it again.
  /// - Throws: what opening throws; it stays suspended then.
  func resume() throws {
    guard isSuspended else { return }
    let opened = Life(try Environment.open(again: environment))
    life.withLock { $0 = opened }
  }

  /// It is not there any more: who uses it finds it closed for good.
  func giveUp() { life.withLock { $0.isSuspended.store(false, ordering: .releasing) } }
}

extension StoreError {
  static let suspended = StoreError(
    .suspended,
    "the store is suspended and nothing was changed: call resume() on the registry, then try again")
}
