import Foundation
import LMDB
import Testing

@Suite("A pool of environments")
struct EnvironmentPoolTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func pool(
    _ countMax: Int, _ change: (inout EnvironmentPool.Configuration) -> Void = { _ in }
  ) throws -> EnvironmentPool {
    var configuration = EnvironmentPool.Configuration()
    configuration.environment.durability = .unsafeWithoutSync
    configuration.environment.mapSizeByteCount = 1 << 20
    configuration.countMax = countMax
    // A busy machine is slow, not wrong.
    configuration.leaseTimeout = .seconds(300)
    change(&configuration)
    return try EnvironmentPool(configuration: configuration)
  }

  /// What a lease is refused with, nil when it is not.
  private func codeOfLease(
    _ pool: EnvironmentPool, _ path: String, isAsync: Bool
  ) async -> LMDBError.Code? {
    do {
      if isAsync {
        try await pool.withEnvironment(at: path) { _ in }
      } else {
        try await onThread { try pool.withEnvironment(at: path) { _ in } }
      }
      return nil
    } catch {
      return (error as? LMDBError)?.code
    }
  }

  private func path(_ number: Int) -> String { directory.file("store\(number)") }

  @Test("opens once, finds it open then, and closes that which was leased longest ago")
  func leastRecentlyUsed() throws {
    let pool = try pool(3)
    var seen: [Environment] = []
    for number in [0, 1, 2, 0, 3, 0] {
      try pool.withEnvironment(at: path(number)) { seen.append($0) }
    }
    #expect(seen[3] === seen[0] && seen[5] === seen[0])
    #expect(seen[1].isClosed)
    #expect(!seen[0].isClosed && !seen[2].isClosed && !seen[4].isClosed)
    let numbers = pool.statistics
    #expect(numbers.hitCount == 2)
    #expect(numbers.missCount == 4)
    #expect(numbers.evictionCount == 1)
    #expect(numbers.openCount == 3)
    #expect(numbers.leasedCount == 0)
  }

  @Test("takes every alias of a file for the same environment")
  func aliases() throws {
    let pool = try pool(8)
    let manager = FileManager.default
    let first = try pool.withEnvironment(at: path(0)) { $0 }
    try manager.createSymbolicLink(atPath: path(1), withDestinationPath: path(0))
    try manager.createDirectory(atPath: path(2), withIntermediateDirectories: false)
    try manager.linkItem(atPath: path(0) + "/data.mdb", toPath: path(2) + "/data.mdb")
    for alias in [path(1), path(0) + "/../store0", path(2)] {
      let found = try pool.withEnvironment(at: alias) { $0 }
      #expect(found === first)
    }
    #expect(pool.statistics.openCount == 1)
  }

  @Test("opens a path once for all who ask for it meanwhile", arguments: [true, false])
  func singleFlight(isNew: Bool) async throws {
    let pool = try pool(8)
    if !isNew { _ = try Environment.open(at: path(0)) }
    try await withThrowingTaskGroup(of: ObjectIdentifier.self) { group in
      for _ in 0..<32 {
        group.addTask { [path = path(0)] in
          try await pool.withEnvironment(at: path) { ObjectIdentifier($0) }
        }
      }
      let seen = try await group.reduce(into: Set()) { $0.insert($1) }
      #expect(seen.count == 1)
    }
    #expect(pool.statistics.openCount == 1)
    #expect(pool.statistics.missCount <= 2)
  }

  @Test("never has more open than it may, and says when there was no room in time")
  func exhaustion() async throws {
    let pool = try pool(2) { $0.leaseTimeout = .milliseconds(200) }
    let mayLeave = DispatchSemaphore(value: 0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<2 {
        group.addTask { [path = path(number)] in
          try await onThread { try pool.withEnvironment(at: path) { _ in mayLeave.wait() } }
        }
      }
      while pool.statistics.leasedCount < 2 { try await Task.sleep(for: .milliseconds(1)) }
      for isAsync in [true, false] {
        let code = await codeOfLease(pool, path(2), isAsync: isAsync)
        #expect(code == .poolExhausted)
      }
      #expect(pool.statistics.exhaustionCount == 2)
      #expect(pool.statistics.openCount == 2)
      #expect(pool.statistics.evictionCount == 0)
      mayLeave.signal()
      mayLeave.signal()
      try await group.waitForAll()
    }
  }

  @Test("a lease waits for room and gets it when another one ends")
  func waiting() async throws {
    let pool = try pool(1)
    let mayLeave = DispatchSemaphore(value: 0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [path = path(0)] in
        try await onThread { try pool.withEnvironment(at: path) { _ in mayLeave.wait() } }
      }
      while pool.statistics.leasedCount < 1 { try await Task.sleep(for: .milliseconds(1)) }
      group.addTask { [path = path(1)] in try await pool.withEnvironment(at: path) { _ in } }
      group.addTask { [path = path(2)] in
        try await onThread { try pool.withEnvironment(at: path) { _ in } }
      }
      while pool.statistics.waitCount < 2 { try await Task.sleep(for: .milliseconds(1)) }
      #expect(pool.statistics.openCount == 1)
      mayLeave.signal()
      try await group.waitForAll()
    }
    #expect(pool.statistics.openCount == 1)
    #expect(pool.statistics.evictionCount == 2)
    #expect(pool.statistics.exhaustionCount == 0)
  }

  @Test("a lease that waits is cancelled with its task")
  func cancelled() async throws {
    let pool = try pool(1)
    try await pool.withEnvironment(at: path(0)) { _ in
      let task = Task { [path = path(1)] in try await pool.withEnvironment(at: path) { _ in } }
      while pool.statistics.waitCount == 0 { try await Task.sleep(for: .milliseconds(1)) }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    try await pool.withEnvironment(at: path(1)) { _ in }
  }

  @Test("an open that fails is told to all who wait for it, and takes no room")
  func failingOpen() async throws {
    let pool = try pool(1) { $0.environment.access = .write }
    try FileManager.default.createDirectory(
      atPath: path(0), withIntermediateDirectories: false)
    try Data(repeating: 7, count: 9_000).write(
      to: URL(fileURLWithPath: path(0) + "/data.mdb"))
    await withTaskGroup(of: LMDBError.Code?.self) { group in
      for number in 0..<16 {
        group.addTask { [path = path(number % 2)] in
          do {
            try await pool.withEnvironment(at: path) { _ in }
            return nil
          } catch {
            return (error as? LMDBError)?.code
          }
        }
      }
      let codes = await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
      #expect(codes == [.damaged: 8, .missing: 8])
    }
    #expect(pool.statistics.openCount == 0)
  }

  @Test("closes what nobody has leased for the idle time, and opens it again")
  func idle() async throws {
    let pool = try pool(8) { $0.idleTimeout = .milliseconds(100) }
    let environment = try await pool.withEnvironment(at: path(0)) { $0 }
    try await pool.withEnvironment(at: path(1)) { held in
      while pool.statistics.idleCloseCount == 0 { try await Task.sleep(for: .milliseconds(5)) }
      #expect(environment.isClosed)
      #expect(!held.isClosed)
    }
    let isOpen = try await pool.withEnvironment(at: path(0)) { !$0.isClosed }
    #expect(isOpen)
  }

  @Test("closeAll waits for leases, refuses new ones, and resume lets them in again")
  func closeAll() async throws {
    let pool = try pool(8)
    let environments = try (0..<4).map { try pool.withEnvironmentBlocking(path($0)) { $0 } }
    let leased = Task { [path = path(0)] in
      try await pool.withEnvironment(at: path) { environment in
        while pool.statistics.openCount > 1 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(!environment.isClosed)
      }
    }
    while pool.statistics.leasedCount == 0 { try await Task.sleep(for: .milliseconds(1)) }
    try await pool.closeAll()
    try await leased.value
    let areClosed = environments.allSatisfy { $0.isClosed }
    #expect(areClosed)
    #expect(pool.statistics.openCount == 0)
    let code = await codeOfLease(pool, path(0), isAsync: true)
    #expect(code == .closed)
    pool.resume()
    try await pool.withEnvironment(at: path(0)) { _ in }
  }

  @Test("reopens an environment that was closed or broke behind its back")
  func closedBehindItsBack() throws {
    let pool = try pool(2)
    let first = try pool.withEnvironment(at: path(0)) { $0 }
    try first.close()
    try pool.withEnvironment(at: path(0)) { second in
      #expect(second !== first)
      #expect(!second.isClosed)
    }
    #expect(pool.statistics.openCount == 1)
  }

  @Test("says what its size is limited by")
  func capacity() throws {
    #expect(try pool(8).capacity.limit == .configuration)
    let wide = try pool(1 << 30) { $0.environment.mapSizeByteCount = 1 << 40 }
    #expect(wide.capacity.limit == .addressSpace)
    #expect(wide.capacity.count == 31)
    let narrow = try pool(1 << 30)
    #expect(narrow.capacity.limit == .descriptors || narrow.capacity.limit == .mappings)
    let error = try #require(throws: LMDBError.self) {
      try pool(8) { $0.environment.mapSizeByteCount = 1 << 46 }
    }
    #expect(error.code == .outOfResources)
  }

  @Test("keeps leases and evictions apart while many tasks churn through it")
  func churn() async throws {
    let pool = try pool(6)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<16 {
        group.addTask { [directory] in
          for round in 0..<60 {
            let store = directory.file("store\((task * 7 + round * 13) % 24)")
            try await pool.withEnvironment(at: store) { environment in
              let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
              try await environment.write { transaction in
                let old = try transaction.value(of: 1, in: table) ?? 0
                try transaction.put(old + 1, for: 1, in: table)
              }
            }
            #expect(pool.statistics.openCount <= 6)
          }
        }
      }
      try await group.waitForAll()
    }
    var sum: UInt64 = 0
    for number in 0..<24 {
      sum += try await pool.withEnvironment(at: path(number)) { environment in
        let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
        return try environment.read { try $0.value(of: 1, in: table) ?? 0 }
      }
    }
    #expect(sum == 16 * 60)
  }

  @Test("never lends what was closed while it was being made")
  func madeAndClosed() async throws {
    let pool = try pool(3)
    let closedCount = try await withThrowingTaskGroup(of: Int.self) { group in
      for task in 0..<12 {
        group.addTask { [directory] in
          var closedCount = 0
          for round in 0..<300 {
            let store = directory.file("store \(round) \(task % 4)")
            closedCount += try await pool.withEnvironment(at: store) { $0.isClosed ? 1 : 0 }
          }
          return closedCount
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(closedCount == 0)
    #expect(pool.statistics.openCount <= 3)
  }
}

extension EnvironmentPool {
  /// The blocking form, where the compiler would take the other one.
  fileprivate func withEnvironmentBlocking<R>(
    _ path: String, _ body: (Environment) throws -> R
  ) throws -> R {
    try withEnvironment(at: path, body)
  }
}
