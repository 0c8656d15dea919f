#if os(Linux)
  import Foundation
  import LMDB
  import Synchronization
  import Testing

  /// What this process holds, as the system counts it.
  private struct ProcessNumbers {
    let descriptorCount: Int
    let residentByteCount: Int
    let mappingCount: Int

    init() throws {
      let manager = FileManager.default
      descriptorCount = try manager.contentsOfDirectory(atPath: "/proc/self/fd").count
      let fields = try textOfSystemFile("/proc/self/statm").split(separator: " ")
      residentByteCount = (Int(fields[1]) ?? 0) * Int(getpagesize())
      mappingCount = try textOfSystemFile("/proc/self/maps").split(separator: "\n").count
    }
  }

  /// A sanitizer multiplies the memory.
  private let isSanitized =
    unsafe dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil

  private func pool(_ countMax: Int) throws -> EnvironmentPool {
    EnvironmentPool.raiseDescriptorLimit()
    var configuration = EnvironmentPool.Configuration()
    configuration.environment.durability = .unsafeWithoutSync
    configuration.countMax = countMax
    configuration.idleTimeout = nil
    return try EnvironmentPool(configuration: configuration)
  }

  /// Each in a process of its own, so that nobody else's descriptors and memory count.
  @Suite("Many environments in one process")
  struct ManyEnvironmentsTests {
    @Test("1,000 open at once cost three descriptors, four mappings and 96 KiB each at most")
    func thousandOpen() async {
      await #expect(processExitsWith: .success) {
        let directory = try TemporaryDirectory()
        let pool = try pool(1_000)
        try #require(pool.capacity.count == 1_000)
        func use(_ number: Int) throws {
          try pool.withEnvironment(at: directory.file("store\(number)")) { environment in
            let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
            try environment.write { try $0.put(UInt64(number), for: 1, in: table) }
            let value = try environment.read { try $0.value(of: 1, in: table) }
            #expect(value == UInt64(number))
          }
        }
        // The first one brings what is needed once.
        try use(1_000)
        try pool.closeIdle()
        let before = try ProcessNumbers()
        for number in 0..<1_000 { try use(number) }
        let after = try ProcessNumbers()
        #expect(pool.statistics.openCount == 1_000, "\(pool.statistics)")
        let descriptors = after.descriptorCount - before.descriptorCount
        #expect(descriptors >= 3_000 && descriptors <= 3_002, "\(descriptors) descriptors")
        let mappings = after.mappingCount - before.mappingCount
        // Two at least: of the data and of the lock file. A sanitizer has mappings of its own for each.
        #expect(mappings >= 2_000, "\(mappings) mappings")
        if !isSanitized { #expect(mappings <= 4_000, "\(mappings) mappings") }
        let each = (after.residentByteCount - before.residentByteCount) / 1_000
        print("resident bytes per open environment: \(each)")
        if !isSanitized { #expect(each <= 96 << 10, "\(each) bytes each") }
        try pool.closeIdle()
        let left = try ProcessNumbers().descriptorCount - before.descriptorCount
        #expect(left <= 2, "\(left) left open")
      }
    }

    @Test(
      "5,000 stores used by 8 threads through a pool of 64 keep their data and leave nothing open")
    func fiveThousandStores() async {
      await #expect(processExitsWith: .success) {
        let directory = try TemporaryDirectory()
        let pool = try pool(64)
        let count = isSanitized ? 1_000 : 5_000
        let before = try ProcessNumbers()
        func inThreads(_ body: @escaping @Sendable (Int) throws -> Void) async throws {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
              group.addTask { try await onThread { try body(thread) } }
            }
            try await group.waitForAll()
          }
        }
        let mostDescriptors = Mutex(0)
        try await inThreads { thread in
          for number in stride(from: thread, to: count, by: 8) {
            try pool.withEnvironment(at: directory.file("store\(number)")) { environment in
              let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
              try environment.write { try $0.put(UInt64(number), for: 1, in: table) }
            }
            if number % 400 < 8 {
              let count = try ProcessNumbers().descriptorCount
              mostDescriptors.withLock { $0 = max($0, count) }
            }
          }
        }
        try await inThreads { thread in
          var random = SeededNumbers(seed: UInt64(thread))
          for _ in 0..<1_000 {
            let number = Int.random(in: 0..<count, using: &random)
            try pool.withEnvironment(at: directory.file("store\(number)")) { environment in
              let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
              let value = try environment.read { try $0.value(of: 1, in: table) }
              #expect(value == UInt64(number))
            }
          }
        }
        let numbers = pool.statistics
        #expect(numbers.openCount == 64, "\(numbers)")
        #expect(numbers.missCount >= count, "\(numbers)")
        #expect(numbers.evictionCount == numbers.missCount - 64, "\(numbers)")
        // Each of the eight threads may look into /proc or at a file's head at the moment.
        let most = mostDescriptors.withLock { $0 }
        #expect(most <= before.descriptorCount + 3 * 64 + 3 * 8, "\(most)")
        try await pool.closeAll()
        let after = try ProcessNumbers()
        #expect(
          // What the runtime may open for itself meanwhile; one environment left would be three.
          after.descriptorCount <= before.descriptorCount + 2,
          "\(after.descriptorCount) after \(before.descriptorCount)")
      }
    }
  }
#endif
