import Foundation
import Synchronization
import Testing

@testable import LMDB

@Suite("Writers of one environment")
struct WritingTests {
  struct Refused: Error {}

  let directory: TemporaryDirectory
  let environment: Environment
  let table: Table<UInt64Codec, UInt64Codec>

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
    table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
  }

  private func keys() throws -> [UInt64] {
    try environment.read { transaction in
      var keys: [UInt64] = []
      try transaction.scan(table) { key, _ in
        keys.append(try UInt64Codec.decode(key))
        return .next
      }
      return keys
    }
  }

  @Test("on plain threads share commits, each with its own result or error")
  func blockingGroup() async throws {
    try await onThread { [self] in
      let (environment, table) = (environment, table)
      let before = environment.commitCount
      let failures = inThreads(16) { thread in
        for number in 0..<50 {
          let key = UInt64(thread * 50 + number)
          do {
            let returned = try environment.write { transaction in
              try transaction.put(key, for: key, in: table)
              if key % 10 == 3 { throw Refused() }
              return key
            }
            guard returned == key, key % 10 != 3 else { throw LMDBError.wrong }
          } catch is Refused where key % 10 == 3 {
          }
        }
      }
      #expect(failures.isEmpty)
      let kept = try keys()
      #expect(kept == (0..<800).filter { $0 % 10 != 3 })
      #expect(environment.commitCount - before < 600)
    }
  }

  @Test("on threads, in tasks and in an actor on the writer do not wait for one another for ever")
  func everyKind() async throws {
    let (environment, table) = (environment, table)
    let actor = OnTheWriter(environment: environment, table: table)
    let threads = (0..<4).map { thread in
      background {
        for number in 0..<100 {
          let key = UInt64(thread * 100 + number)
          try environment.write { try $0.put(1, for: key, in: table) }
        }
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 4..<8 {
        group.addTask {
          for number in 0..<100 {
            let key = UInt64(task * 100 + number)
            try await environment.write { try $0.put(2, for: key, in: table) }
          }
        }
        group.addTask {
          for number in 0..<100 { try await actor.put(UInt64(task * 100 + 400 + number)) }
        }
      }
      try await group.waitForAll()
    }
    let failures = try await onThread { threads.flatMap { $0.wait() } }
    #expect(failures.isEmpty)
    #expect(try keys() == Array(0..<1_200))
  }

  actor OnTheWriter {
    let environment: Environment
    let table: Table<UInt64Codec, UInt64Codec>
    nonisolated var unownedExecutor: UnownedSerialExecutor {
      environment.writer.asUnownedSerialExecutor()
    }

    init(environment: Environment, table: Table<UInt64Codec, UInt64Codec>) {
      self.environment = environment
      self.table = table
    }

    func put(_ key: UInt64) throws {
      environment.writer.checkIsolated()
      try putBlocking(key)
    }

    private func putBlocking(_ key: UInt64) throws {
      try environment.write { try $0.put(3, for: key, in: table) }
    }
  }

  @Test("whose task is cancelled before they began are dropped, and keep nothing open")
  func cancelledWaiting() async throws {
    let (environment, table) = (environment, table)
    let isHeld = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)
    let holder = background {
      try environment.write { _ in
        isHeld.signal()
        mayEnd.wait()
      }
    }
    try await onThread { isHeld.wait() }
    let hasRun = Flag()
    let tasks = (0..<10).map { number in
      Task {
        try await environment.write { transaction in
          if number.isMultiple(of: 2) { hasRun.set() }
          try transaction.put(1, for: UInt64(number), in: table)
        }
      }
    }
    while environment.turn.withLock({ $0.waitingCount }) < 10 { await Task.yield() }
    for number in stride(from: 0, to: 10, by: 2) { tasks[number].cancel() }
    for number in stride(from: 0, to: 10, by: 2) {
      await #expect(throws: CancellationError.self) { try await tasks[number].value }
    }
    mayEnd.signal()
    for number in stride(from: 1, to: 10, by: 2) { try await tasks[number].value }
    let held = try await onThread { holder.wait() }
    #expect(held.isEmpty)
    #expect(!hasRun.isSet)
    #expect(try keys() == [1, 3, 5, 7, 9])
    let late = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await environment.write { try $0.put(1, for: 11, in: table) }
    }
    await #expect(throws: CancellationError.self) { try await late.value }
    try await environment.write { try $0.put(1, for: 12, in: table) }
    #expect(try keys() == [1, 3, 5, 7, 9, 12])
  }

  @Test("share a commit only for some milliseconds")
  func groupTime() async throws {
    let (environment, table) = (environment, table)
    let before = environment.commitCount
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<UInt64(128) {
        group.addTask {
          try await environment.write { transaction in
            usleep(500)
            try transaction.put(1, for: number, in: table)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try keys() == Array(0..<128))
    #expect(environment.commitCount - before >= 4)
  }

  @Test("inside a transaction of another environment run no other's closure")
  func insideAnother() async throws {
    try await onThread { [self] in
      let other = try Environment.open(at: directory.file("other"))
      let (environment, table) = (environment, table)
      let failures = inThreads(8) { thread in
        for number in 0..<30 {
          let key = UInt64(thread * 30 + number)
          if thread.isMultiple(of: 2) {
            // Its closure uses `other`: run by a thread that is inside `other` it would trap.
            try environment.write { transaction in
              try transaction.put(try other.write { $0.identifier() }, for: key, in: table)
            }
          } else {
            try other.read { _ in
              try environment.write { try $0.put(1, for: key, in: table) }
            }
          }
        }
      }
      #expect(failures.isEmpty)
      #expect(try keys() == Array(0..<240))
    }
  }
}
