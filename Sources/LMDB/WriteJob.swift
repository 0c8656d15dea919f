import Dispatch
import Synchronization

/// One write that waits for its turn, and whom it tells.
///
/// Subclasses keep the closure's result themselves, so that nothing is boxed on the way.
class WriteJob: @unchecked Sendable {
  /// What it is for.
  let purpose: WritePurpose

  init(_ purpose: WritePurpose) { self.purpose = purpose }

  // SAFETY (@unchecked Sendable): a job is run and finished by whoever has the turn to write, one
  // thread at a time; what its own waiter reads, it reads after `finish`.

  /// Whether it may be run by another thread, in a commit with others.
  var joinsGroups: Bool { true }

  /// Called before it runs, maybe more than once.
  /// - Returns: false when its task was cancelled before the first time.
  func begin() -> Bool { true }

  /// Runs the closure; what it returned is kept until `finish(nil)`.
  func run(_ transaction: inout WriteTransaction) throws {}

  /// Called once, after the commit or with what stopped it.
  func finish(_ error: (any Error)?) {}
}

/// How far the write of a suspended task has come.
private enum SuspensionState: UInt8, AtomicRepresentable {
  case new
  case waiting
  case begun
  case cancelled
}

/// A write of a task that is suspended meanwhile.
///
/// The continuation is resumed once: by `cancel` if that came before `begin`, else by `finish`, which
/// is called once for each job that has begun.
@safe final class SuspendedWrite<R: Sendable>: WriteJob, @unchecked Sendable {
  private let body: @Sendable (inout WriteTransaction) throws -> R
  private let state = Atomic<SuspensionState>(.new)
  // A checked one, though it allocates: the thread sanitizer takes the resumption of an unsafe one for a
  // race with the task, since it does not see into the runtime.
  private var continuation: CheckedContinuation<R, any Error>?
  private var value: R?

  init(
    _ purpose: WritePurpose, _ body: @escaping @Sendable (inout WriteTransaction) throws -> R
  ) {
    self.body = body
    super.init(purpose)
  }

  /// - Returns: false when the task was cancelled before; it has been told then.
  func wait(_ continuation: CheckedContinuation<R, any Error>) -> Bool {
    self.continuation = continuation
    if move(from: SuspensionState.new, to: SuspensionState.waiting) { return true }
    continuation.resume(throwing: CancellationError())
    return false
  }

  /// The task was cancelled: a write that has not begun is dropped.
  func cancel() {
    if move(from: SuspensionState.new, to: SuspensionState.cancelled) { return }
    guard move(from: SuspensionState.waiting, to: SuspensionState.cancelled) else { return }
    continuation?.resume(throwing: CancellationError())
  }

  override func begin() -> Bool {
    move(from: SuspensionState.waiting, to: SuspensionState.begun)
      || state.load(ordering: .acquiring) == SuspensionState.begun
  }

  override func run(_ transaction: inout WriteTransaction) throws { value = try body(&transaction) }

  override func finish(_ error: (any Error)?) {
    if let error {
      continuation?.resume(throwing: error)
    } else if let value {
      continuation?.resume(returning: value)
    } else {
      preconditionFailure("LMDB: a write was committed without its result")
    }
  }

  private func move(from old: SuspensionState, to new: SuspensionState) -> Bool {
    state.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
  }
}

/// A write, or another act of the writer, of a thread that is blocked meanwhile.
///
/// When the turn to write is passed to it, that thread goes on itself.
class BlockedWrite: WriteJob, @unchecked Sendable {
  /// What woke the thread.
  enum Wake {
    case done
    case turn
  }

  private let semaphore = DispatchSemaphore(value: 0)
  private let isDone = Atomic<Bool>(false)

  override var joinsGroups: Bool { false }

  /// Blocks until it was run by another thread, or the turn was passed to it.
  func wait() -> Wake {
    semaphore.wait()
    return isFinished ? .done : .turn
  }

  var isFinished: Bool { isDone.load(ordering: .acquiring) }

  /// Passes the turn to the blocked thread.
  func takeTurn() { semaphore.signal() }

  override func finish(_ error: (any Error)?) {
    isDone.store(true, ordering: .releasing)
    semaphore.signal()
  }
}

/// A blocked thread's closure, which may be run by another thread in a commit with others.
final class BlockedGroupWrite: BlockedWrite, @unchecked Sendable {
  private var body: ((inout WriteTransaction) throws -> Void)?
  private(set) var failure: (any Error)?

  init(_ purpose: WritePurpose, _ body: @escaping (inout WriteTransaction) throws -> Void) {
    self.body = body
    super.init(purpose)
  }

  override var joinsGroups: Bool { true }

  override func run(_ transaction: inout WriteTransaction) throws { try body?(&transaction) }

  override func finish(_ error: (any Error)?) {
    failure = error
    // The closure does not escape: its caller goes on now, others may still hold this job.
    body = nil
    super.finish(error)
  }
}
