import Foundation
import Testing

/// Runs each test on threads of its own: these tests wait for processes, and blocking a thread of
/// the shared pool (two on a small machine) would hang every other test.
struct OwnThread: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(ThreadExecutor.shared) { try await function() }
  }
}

extension Trait where Self == OwnThread {
  /// The test may block.
  static var ownThread: Self { OwnThread() }
}

private final class ThreadExecutor: TaskExecutor {
  static let shared = ThreadExecutor()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = asUnownedTaskExecutor()
    let thread = Thread { job.runSynchronously(on: executor) }
    thread.stackSize = 4 << 20
    thread.start()
  }
}
