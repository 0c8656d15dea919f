import CMicroHTTPD
import Foundation
import HubRules
import Synchronization

/// Ends the waits of clients that are gone.
///
/// libmicrohttpd does not look at a suspended connection: without this each client that left would
/// hold its socket until the end of its wait. One thread looks at all of them. It ends the wait and
/// nothing more; the answer that follows finds out what became of the connection, and one that is
/// only closed in one direction gets it.
final class HangUpWatch: Sendable {
  /// What is watched under a socket's number, and which of those that had the number it is.
  private struct Watched {
    var number: UInt32
    weak var subscription: Subscription?
  }

  private struct State {
    var lastNumber: UInt32 = 0
    /// No larger than the number of sockets that the process ever had open at once.
    var watched: [Int32: Watched] = [:]
  }

  /// Stands for the end of the watch, not for a socket.
  private static let endName = UInt64.max

  private let descriptor: Int32
  private let reading: Int32
  private let writing: Int32
  private let state = Mutex(State())

  /// Begins to watch.
  /// - Throws: ``HubServerError`` `listenFailed` when there is no descriptor left for it.
  init() throws(HubServerError) {
    var ends: [Int32] = [-1, -1]
    descriptor = holdfast_hang_ups_make()
    guard descriptor >= 0, pipe(&ends) == 0 else {
      let reason = String(cString: strerror(errno))
      if descriptor >= 0 { close(descriptor) }
      throw HubServerError(
        .listenFailed,
        "closed connections cannot be watched: \(reason); raise the limit of open files")
    }
    (reading, writing) = (ends[0], ends[1])
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    holdfast_hang_ups_watch(descriptor, reading, HangUpWatch.endName)
    let thread = Thread { [self] in run() }
    thread.name = "holdfast.hang-ups"
    thread.stackSize = 1 << 20
    thread.start()
  }

  /// Ends the wait when the other end of the socket is closed, which it may be already.
  ///
  /// The socket stays open here until the wait is over.
  func watch(_ socket: Int32, _ subscription: Subscription) {
    let number = state.withLock { state in
      state.lastNumber &+= 1
      state.watched[socket] = Watched(number: state.lastNumber, subscription: subscription)
      return state.lastNumber
    }
    let name = UInt64(number) << 32 | UInt64(UInt32(bitPattern: socket))
    // Without it the wait ends by time.
    holdfast_hang_ups_watch(descriptor, socket, name)
  }

  /// Watches no longer; once.
  func stop() { close(writing) }

  private func run() {
    var names = [UInt64](repeating: 0, count: 64)
    while true {
      let count = holdfast_hang_ups_wait(descriptor, &names)
      guard count >= 0, !names.prefix(Int(count)).contains(HangUpWatch.endName) else { break }
      for name in names.prefix(Int(count)) { end(name) }
    }
    close(descriptor)
    close(reading)
  }

  /// A number that has been given to another socket since then is passed over.
  private func end(_ name: UInt64) {
    let socket = Int32(truncatingIfNeeded: name)
    let subscription = state.withLock { state -> Subscription? in
      guard let watched = state.watched[socket], UInt64(watched.number) == name >> 32 else {
        return nil
      }
      state.watched[socket] = nil
      return watched.subscription
    }
    subscription?.end(.hungUp)
  }
}
