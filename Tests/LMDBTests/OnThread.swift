import Foundation

/// Runs something that blocks on a thread of its own, and lets the task's thread go meanwhile.
func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
  try await withCheckedThrowingContinuation { continuation in
    Thread { continuation.resume(with: Result { try body() }) }.start()
  }
}
