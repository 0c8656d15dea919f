import Dispatch
import Foundation
import LMDB

// For a system that stops an app in the background and ends it when it holds a lock on a shared file.
extension ProfileRegistry {
  /// Lets go of every file of the store: for the moment before the system stops the process.
  ///
  /// Passes are told to stop first: what they wait for at the hub is cancelled, what they have
  /// committed stays, and the next pass goes on from there. Then every environment, descriptor and lock
  /// of the store is closed in this process, whichever registry or profile opened it. Until
  /// ``resume()`` every call on the store throws `suspended` at once and changes nothing: nobody is
  /// kept waiting for a time that nobody knows, and an enqueue never says stored before it is.
  /// A `keepSynchronized` waits, and goes on by itself after it. A second call changes nothing.
  /// - Parameter patience: how long an apply closure, a read closure or a call that waits for another
  ///   process may take to end; 5 seconds by default.
  /// - Throws: `stillInUse` when one did not end: the rest is closed, calls are refused, and a further call
  ///   goes on waiting. Called inside of an apply closure it throws at once, and nothing has changed.
  public func suspend(patience: Duration = .seconds(5)) async throws {
    let store = index.store
    guard
      !PassContext.running.contains(where: { pass in
        Area.all(of: store).contains { $0.id == pass.area }
      })
    else {
      throw StoreError(
        .stillInUse,
        "an apply closure cannot suspend its own store: call it after the closure returned")
    }
    let deadline = ContinuousClock.now + patience
    store.refuseVisits(true)
    var areas: [Area] = []
    repeat {
      // Resumed while this waited: the person is back, and what this has stopped goes on.
      guard store.refusesVisits else {
        for area in areas {
          area.passes.resume()
          area.signals.suspensions.raise()
        }
        return
      }
      // Again each time: an opening that had begun may bring one more.
      areas = Area.all(of: store)
      for area in areas {
        area.passes.suspend()
        area.signals.suspensions.raise()
      }
      if store.visitCount == 0, areas.allSatisfy({ $0.passes.count == 0 }) { break }
      // Not cancelled: the system stops the process whether the task is or not.
      await Self.pause()
    } while ContinuousClock.now < deadline
    let isBusy = store.visitCount > 0 || areas.contains { $0.passes.count > 0 }
    try await Self.onSuspensionQueue { [openAreas, areas] in
      guard store.refusesVisits else {
        for area in areas {
          area.passes.resume()
          area.signals.suspensions.raise()
        }
        return
      }
      openAreas.dropAll()
      var failure: (any Error)? = isBusy ? StoreError.stillInUse : nil
      for area in areas where area.passes.count == 0 {
        do { try area.suspend(patience: Self.left(of: deadline)) } catch { failure = error }
      }
      if let failure { throw failure }
      do throws(LMDBError) {
        try store.suspend(patience: Self.left(of: deadline))
      } catch {
        guard error.code == .busy else { throw Area.translated(error) }
        throw StoreError.stillInUse
      }
    }
  }

  /// Opens the store again; profiles and tables that the app holds go on working.
  ///
  /// What is looked at when a store is opened is looked at again: an area that another process has
  /// erased meanwhile throws `erased`, one that was replaced by a copy becomes a client of its own.
  /// A store that is not suspended stays as it is.
  /// - Throws: `storage`, `damaged` when something could not be opened: the rest is, and a further call
  ///   tries again.
  public func resume() async throws {
    let store = index.store
    try await Self.onSuspensionQueue {
      do {
        try store.resume()
      } catch {
        throw StoreError(
          .storage, "the registry cannot be opened again", cause: error as? LMDBError)
      }
      var failure: (any Error)?
      for area in Area.all(of: store) {
        do { try area.resume() } catch { failure = error }
      }
      store.refuseVisits(false)
      for area in Area.all(of: store) { area.signals.suspensions.raise() }
      if let failure { throw failure }
    }
    // What others began meanwhile and left half done is settled as at an opening.
    try await locked {}
  }

  /// Whether an area of this store can be used: neither the store is suspended, nor was it left so.
  package func isSuspended(_ area: Area) -> Bool { isSuspended || area.isSuspended }

  /// Whether the store is suspended in this process.
  public var isSuspended: Bool { index.store.refusesVisits }

  /// One at a time in the process, outside of the task pool: closing waits for readers.
  private static let suspensions = DispatchQueue(label: "holdfast.suspension")

  private static func onSuspensionQueue(_ body: @escaping @Sendable () throws -> Void) async throws
  {
    try await withCheckedThrowingContinuation { continuation in
      suspensions.async { continuation.resume(with: Result { try body() }) }
    }
  }

  private static func left(of deadline: ContinuousClock.Instant) -> Duration {
    max(.milliseconds(10), deadline - ContinuousClock.now)
  }

  private static func pause() async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(2)) {
        continuation.resume()
      }
    }
  }
}
