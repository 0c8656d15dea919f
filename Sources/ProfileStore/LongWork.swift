import Foundation

/// Work of milliseconds on a thread of its own, which lets others run in between.
///
/// A request that is under way is passed from thread to thread, at the client and at a hub on the same
/// machine, and each has little to do. On few processors the system lets a thread that computes go on for
/// some milliseconds before such a one gets its turn: a batch of 500 took 7 ms instead of 2 to the hub and
/// back while the one before was settled.
enum LongWork {
  /// So many steps, of a few microseconds each, are done at a stretch.
  private static let stepCount = 16

  /// - Parameter step: the number of the step that begins.
  /// - Cost: a system call at each 16th.
  static func yield(at step: Int) {
    if step % stepCount == stepCount - 1 { sched_yield() }
  }
}
