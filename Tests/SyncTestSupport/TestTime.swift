package import Foundation
import Synchronization

/// A device's clock that a test sets.
package final class TestTime: Sendable {
  private let time = Mutex(Date(timeIntervalSince1970: 1_000_000))

  package init() {}

  package var now: Date { time.withLock { $0 } }

  /// Lets time pass; a negative number sets the clock back.
  package func advance(by seconds: TimeInterval) {
    time.withLock { $0 += seconds }
  }
}
