import Foundation
import LMDB

/// `tasks PATH COUNT`: tasks that are cancelled before, while and after their write runs, and
/// threads that end right after their last transaction; says `ok` when no transaction stayed open.
struct EndingTasks {
  let path: String
  let count: Int

  init(_ words: ArraySlice<String>) throws {
    path = try words.word(0)
    count = try words.number(1)
  }

  func run() throws {
    let environment = try Environment.open(at: path)
    let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
    let told = Told()
    try waitFor { [count] in
      await withTaskGroup(of: Void.self) { group in
        for number in 0..<UInt64(count) {
          group.addTask {
            let task = Task {
              if number % 3 == 1 { await Task.yield() }
              try await environment.write { transaction in
                // Cancelled in the middle of its own closure.
                if number % 3 == 2 { withUnsafeCurrentTask { $0?.cancel() } }
                try transaction.put(number, for: number, in: table)
              }
            }
            if number % 3 != 2 { task.cancel() }
            switch await task.result {
            case .success: told.committed(number)
            case .failure(let error): told.refused(number, error)
            }
          }
        }
      }
    }
    for number in UInt64(count)..<UInt64(count) + 50 {
      let ended = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        do {
          _ = try environment.read { try $0.count(of: table) }
          try environment.write { try $0.put(number, for: number, in: table) }
          told.committed(number)
        } catch {
          told.refused(number, error)
        }
        ended.signal()
      }
      ended.wait()
    }
    let there = try environment.read { transaction in
      var there: Set<UInt64> = []
      try transaction.scan(table) { key, _ in
        there.insert(key.loadBigEndian())
        return .next
      }
      return there
    }
    guard there == told.committed else { throw CommitStreams.Wrong(what: "other records") }
    // A transaction that stayed open would hang the write and refuse the close.
    try environment.write { try $0.put(1, for: .max, in: table) }
    try environment.close()
    say("ok \(told.committed.count) committed, \(told.refused) cancelled, \(told.others)")
  }
}

/// What each writer was told.
private final class Told: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): all mutable state is behind the lock.
  private let lock = NSLock()
  private(set) var committed: Set<UInt64> = []
  private(set) var refused = 0
  private(set) var others: [String] = []

  func committed(_ number: UInt64) { lock.withLock { _ = committed.insert(number) } }
  func refused(_ number: UInt64, _ error: any Error) {
    lock.withLock {
      if error is CancellationError { refused += 1 } else { others.append(describe(error)) }
    }
  }
}
