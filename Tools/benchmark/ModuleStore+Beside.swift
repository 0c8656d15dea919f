import CBench
import Foundation
import LMDB
import Measuring

extension ModuleStore {
  /// Two readers scan while this thread applies pages.
  func beside(_ context: Context, nanoseconds: UInt64) throws -> Pass {
    let deadline = cbench_now() + nanoseconds
    let readers = (0..<2).map { _ in
      PassThread { [self] in try scan(until: deadline, context) }
    }
    var pass = try applyPages(until: deadline, context)
    for reader in readers { pass.readerOperations += try reader.outcome().operations }
    return pass
  }

  private func applyPages(until deadline: UInt64, _ context: Context) throws -> Pass {
    var pass = Pass()
    let start = cbench_now()
    let count = context.documents.count
    var documents = context.swapped
    var next = 0
    while cbench_now() < deadline {
      let end = min(next + Context.page, count)
      try environment.write { transaction in
        for index in next..<end {
          try transaction.put(
            bytes: documents.value(index).bytes, for: documents.keys[index], in: table)
        }
      }
      pass.operations += end - next
      pass.commits += 1
      next = end
      if next == count {
        next = 0
        documents = documents === context.swapped ? context.documents : context.swapped
      }
    }
    pass.nanoseconds = cbench_now() - start
    return pass
  }

  private func scan(until deadline: UInt64, _ context: Context) throws -> Pass {
    var pass = Pass()
    while cbench_now() < deadline {
      var seen = Pass()
      var last: UUID?
      repeat {
        last = try scanPage(behind: last, .none, &seen)
      } while last != nil && cbench_now() < deadline
      pass.operations += seen.operations
      if last == nil {
        pass.commits += 1
        _ = try seen.verified(
          .lmdb, "a scan beside a writer", operations: context.documents.count,
          digest: context.digest)
      }
    }
    return pass
  }
}

/// A thread that does one pass.
final class PassThread: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): `result` is written before the semaphore is signalled.
  private var result: Result<Pass, any Error>?
  private let isOver = DispatchSemaphore(value: 0)

  init(_ body: @escaping @Sendable () throws -> Pass) {
    let thread = Thread { [self] in
      result = Result { try body() }
      isOver.signal()
    }
    thread.stackSize = 8 << 20
    thread.start()
  }

  /// Waits for its end.
  func outcome() throws -> Pass {
    isOver.wait()
    guard let result else { throw BenchFailure(sentence: "lmdb: a thread ended without a result") }
    return try result.get()
  }
}
