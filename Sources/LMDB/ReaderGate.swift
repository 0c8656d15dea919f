import Foundation

/// Lets readers in together, and one exclusive act (enlarging the map, closing) alone.
///
/// The map may be moved only while no transaction of this process looks at it; LMDB does not check.
final class ReaderGate: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): every stored property is read and written under `condition`.
  private let condition = NSCondition()
  private var readerCount = 0
  private var isExclusive = false
  private var isClosed = false

  /// Enters as a reader. A thread that is inside already passes an exclusive act that waits for it.
  /// - Returns: false when the gate was closed for ever.
  func enter(isNested: Bool) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    while isExclusive, !isNested { condition.wait() }
    guard !isClosed || isNested else { return false }
    readerCount += 1
    return true
  }

  func leave() {
    condition.lock()
    readerCount -= 1
    if readerCount == 0 { condition.broadcast() }
    condition.unlock()
  }

  /// Runs `body` while no reader is inside; it may close the gate for ever.
  /// - Returns: nil when readers were still inside after `timeout`; nothing ran then.
  func exclusively<R>(timeout: TimeInterval, _ body: (_ isClosing: inout Bool) -> R) -> R? {
    condition.lock()
    while isExclusive { condition.wait() }
    isExclusive = true
    defer {
      isExclusive = false
      condition.broadcast()
      condition.unlock()
    }
    let deadline = Date(timeIntervalSinceNow: timeout)
    while readerCount > 0 {
      if !condition.wait(until: deadline), readerCount > 0 { return nil }
    }
    return body(&isClosed)
  }
}
