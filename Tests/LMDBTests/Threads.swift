import Foundation
import LMDB
import Synchronization

/// A thread of its own, so that no task's thread is blocked.
final class BackgroundThread: Sendable {
  private let failure = Mutex<LMDBError?>(nil)
  private let isDone = DispatchSemaphore(value: 0)

  init(_ body: @escaping @Sendable () throws -> Void) {
    Thread {
      do {
        try body()
      } catch let error as LMDBError {
        self.failure.withLock { $0 = error }
      } catch {
        self.failure.withLock {
          $0 = LMDBError(.other, operation: "test", detail: String(describing: error))
        }
      }
      self.isDone.signal()
    }.start()
  }

  /// What it threw, if it did.
  func wait() -> [LMDBError] {
    isDone.wait()
    return failure.withLock { $0.map { [$0] } ?? [] }
  }
}

func background(_ body: @escaping @Sendable () throws -> Void) -> BackgroundThread {
  BackgroundThread(body)
}

/// Runs `body` on so many threads at once.
/// - Returns: what they threw.
func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) -> [LMDBError] {
  (0..<count).map { number in background { try body(number) } }.flatMap { $0.wait() }
}

/// Lets threads go on when so many of them have met.
final class Gathering: Sendable {
  private let missing: Mutex<Int>
  private let isComplete = DispatchSemaphore(value: 0)
  private let count: Int

  init(_ count: Int) {
    self.count = count
    missing = Mutex(count)
  }

  func meet() {
    let isLast = missing.withLock { missing in
      missing -= 1
      return missing == 0
    }
    if isLast { for _ in 1..<count { isComplete.signal() } } else { isComplete.wait() }
  }
}

extension LMDBError {
  /// A test found other data than it should.
  static let wrong = LMDBError(.badForm, operation: "test")
}

/// Set once by one thread, asked by others.
final class Flag: Sendable {
  private let value = Atomic<Bool>(false)
  var isSet: Bool { value.load(ordering: .acquiring) }
  func set() { value.store(true, ordering: .releasing) }
}
