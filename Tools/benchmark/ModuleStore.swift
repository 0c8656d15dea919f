import CBench
import Dispatch
import Foundation
import LMDB
import Measuring

/// The module `LMDB`, used as its documentation has it.
struct ModuleStore {
  let environment: LMDB.Environment
  let table: Table<UUIDCodec, BytesCodec>

  static var configuration: LMDB.Environment.Configuration {
    var configuration = LMDB.Environment.Configuration()
    configuration.mapSizeByteCount = Context.mapByteCount
    return configuration
  }

  init(_ directory: String) throws {
    environment = try LMDB.Environment.open(at: directory, configuration: Self.configuration)
    table = try environment.table("records", key: UUIDCodec.self, value: BytesCodec.self)
  }

  func close() throws { try environment.close() }

  func apply(_ documents: Documents, in order: [UInt32]) throws -> Pass {
    var pass = Pass()
    let commits = environment.commitCount
    let start = cbench_now()
    for begin in stride(from: 0, to: order.count, by: Context.page) {
      let end = min(begin + Context.page, order.count)
      try environment.write { transaction in
        for place in begin..<end {
          let index = Int(order[place])
          try transaction.put(
            bytes: documents.value(index).bytes, for: documents.keys[index], in: table)
        }
      }
      pass.operations += end - begin
    }
    pass.nanoseconds = cbench_now() - start
    pass.commits = Int(environment.commitCount - commits)
    return pass
  }

  func scan(passes: Int, prefetch: Bool) throws -> Pass {
    var pass = Pass()
    let start = cbench_now()
    for _ in 0..<passes {
      var last: UUID?
      repeat {
        last = try scanPage(behind: last, prefetch ? .records : .none, &pass)
      } while last != nil
    }
    pass.nanoseconds = cbench_now() - start
    return pass
  }

  /// - Returns: the page's last key, or nil if no page can be behind it.
  func scanPage(
    behind key: UUID?, _ prefetch: ScanPrefetch, _ pass: inout Pass
  ) throws -> UUID? {
    var digest: UInt64 = 0
    var count = 0
    var last: UUID?
    try environment.read { transaction in
      try transaction.scan(
        table, key.map { .after($0) } ?? .all, limit: Context.page, prefetch: prefetch
      ) { key, value in
        digest ^= touch(value)
        count += 1
        if count == Context.page { last = key.loadUUID() }
        return .next
      }
    }
    pass.digest ^= digest
    pass.operations += count
    return last
  }

  func get(_ documents: Documents, at indexes: [UInt32], together: Int) throws -> Pass {
    var pass = Pass()
    let start = cbench_now()
    var next = 0
    while next < indexes.count {
      let end = min(next + together, indexes.count)
      try environment.read { transaction in
        while next < end {
          let key = documents.keys[Int(indexes[next])]
          guard let value = try transaction.bytes(of: key, in: table) else {
            throw Disagreement(sentence: "lmdb: a key is not there")
          }
          pass.digest ^= touch(value)
          next += 1
        }
      }
    }
    pass.operations = next
    pass.nanoseconds = cbench_now() - start
    return pass
  }

  /// From this thread, each write in a transaction of its own.
  func writeBlocking(_ documents: Documents, count: Int) throws -> Pass {
    let commits = environment.commitCount
    let start = cbench_now()
    for index in 0..<count {
      try environment.write { transaction in
        try transaction.put(
          bytes: documents.value(index).bytes, for: documents.keys[index], in: table)
      }
    }
    return written(count, since: start, commits)
  }

  /// From as many tasks; this thread waits for them.
  func write(_ documents: Documents, count: Int, tasks: Int) throws -> Pass {
    let commits = environment.commitCount
    let start = cbench_now()
    try runBlocking {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<tasks {
          group.addTask {
            for index in stride(from: number, to: count, by: tasks) {
              try await environment.write { [table] transaction in
                try transaction.put(
                  bytes: documents.value(index).bytes, for: documents.keys[index], in: table)
              }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    return written(count, since: start, commits)
  }

  private func written(_ count: Int, since start: UInt64, _ commits: UInt64) -> Pass {
    var pass = Pass()
    pass.nanoseconds = cbench_now() - start
    pass.operations = count
    pass.commits = Int(environment.commitCount - commits)
    return pass
  }
}

/// Runs a task from a thread that may block.
func runBlocking(_ body: @escaping @Sendable () async throws -> Void) throws {
  let outcome = TaskOutcome()
  let isOver = DispatchSemaphore(value: 0)
  Task {
    do { try await body() } catch { outcome.error = error }
    isOver.signal()
  }
  isOver.wait()
  if let error = outcome.error { throw error }
}

/// What a task ended with.
private final class TaskOutcome: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): written before the semaphore is signalled, read behind it.
  var error: (any Error)?
}
