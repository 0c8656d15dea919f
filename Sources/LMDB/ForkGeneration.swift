import Foundation
import Synchronization

/// Counts the forks behind this process, so that a child never uses its parent's environments.
@safe struct ForkGeneration {
  private let number: Int
  // SAFETY: points to `counter`, which lives as long as the process.
  private let now: UnsafePointer<Atomic<Int>>

  /// The generation of this process now.
  static var current: ForkGeneration {
    let now = unsafe counter
    return unsafe ForkGeneration(number: now.pointee.load(ordering: .relaxed), now: now)
  }

  /// Whether this is still the process that asked for it.
  @inline(__always) var isOurs: Bool { unsafe now.pointee.load(ordering: .relaxed) == number }

  // SAFETY: written once; what it points to is atomic.
  nonisolated(unsafe) private static let counter: UnsafePointer<Atomic<Int>> = {
    let counter = UnsafeMutablePointer<Atomic<Int>>.allocate(capacity: 1)
    unsafe counter.initialize(to: Atomic(0))
    let result = pthread_atfork(nil, nil) { ForkGeneration.increment() }
    precondition(result == 0, "LMDB: pthread_atfork failed with \(result)")
    return unsafe UnsafePointer(counter)
  }()

  private static func increment() {
    unsafe counter.pointee.wrappingAdd(1, ordering: .relaxed)
  }
}
