import Foundation
import Synchronization

/// Ends connections that take too long over a head, a body or the taking of an answer.
///
/// libmicrohttpd's own time limit counts silence only: one byte now and then keeps a connection for
/// ever. A socket is in the table from the moment it was taken until just before it is closed, and
/// is shut down under the same lock, so that the number cannot belong to another by then.
final class ConnectionDeadlines: Sendable {
  private let table = Mutex<[Int32: ContinuousClock.Instant?]>([:])
  private let watch = Mutex<Task<Void, Never>?>(nil)
  private let clock = ContinuousClock()

  /// Looks once a second, until ``stop()``.
  func start() {
    let task = Task { [weak self, clock] in
      while (try? await clock.sleep(for: .seconds(1))) != nil { self?.endOverdue() }
    }
    watch.withLock { $0 = task }
  }

  /// A connection was taken.
  func open(_ socket: Int32, seconds: Int) {
    table.withLock { $0[socket] = clock.now + .seconds(seconds) }
  }

  /// What the connection does may take so long from `start` on, or from now; nil means for ever.
  func set(_ socket: Int32, seconds: Int?, since start: ContinuousClock.Instant? = nil) {
    let deadline = seconds.map { (start ?? clock.now) + .seconds($0) }
    table.withLock { table in
      if table[socket] != nil { table[socket] = .some(deadline) }
    }
  }

  /// The connection is about to be closed.
  func close(_ socket: Int32) {
    _ = table.withLock { $0.removeValue(forKey: socket) }
  }

  /// Ends every connection now.
  func endAll() {
    table.withLock { table in
      for socket in table.keys { shutdown(socket, Int32(SHUT_RDWR)) }
    }
  }

  /// Ends no connection from now on.
  func stop() { watch.withLock { $0?.cancel() } }

  private func endOverdue() {
    let now = clock.now
    table.withLock { table in
      for (socket, deadline) in table {
        if let deadline, deadline <= now { shutdown(socket, Int32(SHUT_RDWR)) }
      }
    }
  }
}
