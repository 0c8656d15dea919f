import Foundation
import Synchronization

/// The thin shell around signals: a handler that may do next to nothing writes the signal's number
/// into a pipe, and a thread reads it there.
///
/// Not a Dispatch source, since that blocks signals in whichever thread meets one, and processes
/// started from that thread would inherit it.
enum InterruptListener {
  /// Begins to listen, at the first call.
  static func start() {
    _ = started
  }

  /// From now on the signals end the process.
  static func restoreDefaults() {
    for each in InterruptSignal.allCases { signal(each.number, SIG_DFL) }
  }

  /// Ends the process by a signal whose default action was restored.
  static func endProcess(by signal: InterruptSignal) -> Never {
    unblockSignals()
    kill(getpid(), signal.number)
    // The signal acts before `kill` returns, but not in the first process of a container. Shells
    // show this status for a process that ended by the signal.
    exit(128 + signal.number)
  }

  /// Unblocks the signals for the calling thread and those that it starts from then on.
  ///
  /// A process inherits what the thread that started it had blocked, and the threads of a
  /// concurrency runtime have everything blocked: without this a tool might be deaf to `kill`.
  static func unblockSignals() {
    var set = sigset_t()
    // SAFETY: `set` is initialized by the first call and outlives the others.
    sigemptyset(&set)
    for signal in InterruptSignal.allCases { sigaddset(&set, signal.number) }
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }

  private static let started: Void = {
    var ends: [Int32] = [-1, -1]
    // SAFETY: the call writes two descriptors into an array of two.
    precondition(pipe(&ends) == 0, "no pipe for signals: \(systemMessage(errno))")
    // Both ends stay open as long as the process; a child needs neither.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let readEnd = ends[0]
    pipeWriteEnd.store(ends[1], ordering: .sequentiallyConsistent)
    Thread.detachNewThread { listen(on: readEnd) }
    for each in InterruptSignal.allCases { replaceAction(for: each) }
  }()

  private static func replaceAction(for each: InterruptSignal) {
    let previous = signal(each.number, noteSignal)
    // SAFETY: SIG_IGN is a small number in place of a function; it is compared by its bits and
    // never called.
    let wasIgnored =
      unsafeBitCast(previous, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    if wasIgnored { signal(each.number, SIG_IGN) }
  }

  private static func listen(on readEnd: Int32) {
    while true {
      var number: UInt8 = 0
      // SAFETY: at most one byte is read, into one byte.
      let count = read(readEnd, &number, 1)
      precondition(
        count == 1 || errno == EINTR,
        "the pipe for signals can't be read: \(systemMessage(errno))")
      if count == 1, let signal = InterruptSignal.allCases.first(where: { $0.number == number }) {
        Interrupts.signalArrived(signal)
      }
    }
  }
}

private let pipeWriteEnd = Atomic<Int32>(-1)

/// Runs inside whatever the signal interrupted: only calls that POSIX lists as async-signal-safe,
/// no allocation, no lock. `start()` has initialized the global before this can be called.
private func noteSignal(_ number: Int32) {
  let interruptedError = errno
  var byte = UInt8(truncatingIfNeeded: number)
  // SAFETY: one byte is written from one byte. If it fails there is nobody to tell from here.
  _ = write(pipeWriteEnd.load(ordering: .sequentiallyConsistent), &byte, 1)
  errno = interruptedError
}
