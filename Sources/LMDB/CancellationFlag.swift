import Dispatch
import Synchronization

/// Tells a thread that the task it works for was cancelled.
final class CancellationFlag: Sendable {
  private let isCancelled = Atomic<Bool>(false)

  func cancel() { isCancelled.store(true, ordering: .relaxed) }

  func check() throws {
    if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
  }
}

extension Environment {
  /// Runs something that blocks on a thread outside the task pool; its flag follows the task.
  static func onOwnThread<R: Sendable>(
    _ body: @escaping @Sendable (CancellationFlag) throws -> R
  ) async throws -> R {
    let flag = CancellationFlag()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        DispatchQueue(label: "holdfast.lmdb.inspection").async {
          continuation.resume(with: Result { try body(flag) })
        }
      }
    } onCancel: {
      flag.cancel()
    }
  }
}
