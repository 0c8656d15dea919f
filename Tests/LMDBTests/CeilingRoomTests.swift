import Foundation
import Testing

@testable import LMDB

@Suite("The room of draining writes beyond the ceiling")
struct CeilingRoomTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let table: Table<UInt64Codec, BytesCodec>
  static let ceiling = 4 << 20

  init() throws {
    directory = try TemporaryDirectory()
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 1 << 20
    configuration.mapSizeByteCountMax = Self.ceiling
    configuration.durability = .unsafeWithoutSync
    environment = try Environment.open(at: directory.file("env"), configuration: configuration)
    table = try environment.table("outbox", key: UInt64Codec.self, value: BytesCodec.self)
  }

  private func key(_ number: Int) -> UInt64 { UInt64(number) &* 0x9E37_79B9_7F4A_7C15 }

  /// Stores until it is refused.
  /// - Returns: the first number that was not stored.
  private func fill(from start: Int) throws -> Int {
    for number in start... {
      do {
        try environment.write {
          try $0.put([UInt8](repeating: 1, count: 500), for: key(number), in: table)
        }
      } catch let error as LMDBError where error.code == .mapFull {
        return number
      }
    }
    return start
  }

  private func drain(from start: Int) throws {
    try environment.write(for: .draining) { transaction in
      for number in start..<start + 50 { _ = try transaction.delete(key(number), in: table) }
    }
  }

  @Test("is not eaten up by storing writes, however often they take turns")
  func lasts() throws {
    var next = 0
    for round in 0..<150 {
      next = try fill(from: next)
      try drain(from: round * 50)
    }
    #expect(next > 150 * 50)
    let used = try environment.statistics().usedByteCount
    #expect(used < Environment.drainingCeiling(above: Self.ceiling))
  }

  @Test("does not keep a storing write waiting for a long reader once it was used")
  func longReader() async throws {
    try await onThread {
      let all = try fill(from: 0)
      for start in stride(from: 0, to: 2_000, by: 50) { try drain(from: start) }
      #expect(environment.mapByteCount > Self.ceiling)
      let isReading = DispatchSemaphore(value: 0)
      let mayEnd = DispatchSemaphore(value: 0)
      let (environment, table) = (environment, table)
      let reader = background {
        try environment.read { _ in
          isReading.signal()
          mayEnd.wait()
        }
      }
      isReading.wait()
      let start = ContinuousClock.now
      try environment.write { try $0.put([1], for: key(all), in: table) }
      // Waiting for the reader takes 30 seconds, and then it is an error.
      #expect(ContinuousClock.now - start < .seconds(20))
      mayEnd.signal()
      #expect(reader.wait().isEmpty)
    }
  }

  @Test("is not another process's either, which has adopted the larger map")
  func otherProcess() async throws {
    let all = try fill(from: 0)
    try drain(from: 0)
    #expect(environment.mapByteCount > Self.ceiling)
    await #expect(processExitsWith: .success) { [path = directory.file("env") as String] in
      var configuration = Environment.Configuration()
      configuration.mapSizeByteCountMax = CeilingRoomTests.ceiling
      configuration.durability = .unsafeWithoutSync
      let other = try Environment.open(at: path, configuration: configuration)
      let table = try other.table("outbox", key: UInt64Codec.self, value: BytesCodec.self)
      let error = await #expect(throws: LMDBError.self) {
        try await other.write { transaction in
          let big = [UInt8](repeating: 2, count: 500_000)
          try transaction.put(big, for: 1, in: table)
        }
      }
      #expect(error?.code == .mapFull)
    }
    for start in stride(from: 50, to: all, by: 50) { try drain(from: start) }
    #expect(try environment.read { try $0.count(of: table) } == 0)
  }

  @Test("is not needed to make a table in a map that is full but may grow")
  func newTable() throws {
    var reached = 0
    for pageCount in 30..<46 {
      var configuration = Environment.Configuration()
      configuration.mapSizeByteCount = 1 << 20
      configuration.fileReserveByteCountMax = 0
      let environment = try Environment.open(
        at: directory.file("\(pageCount)"), configuration: configuration)
      let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
      // Neither grown ahead nor with a free page that could be reused.
      environment.care.nextGrowth = .now + .seconds(3_600)
      let snapshot = try HeldSnapshot(of: environment)
      for (key, count) in [(UInt64(1), 210), (2, pageCount)] {
        try environment.write {
          try $0.put([UInt8](repeating: 1, count: count * 4_096 - 100), for: key, in: table)
        }
      }
      let isFull = try environment.statistics().lastPage >= 254
      guard environment.mapByteCount == 1 << 20, isFull else { continue }
      reached += 1
      _ = try environment.table("new", key: UInt64Codec.self, value: BytesCodec.self)
      #expect(environment.mapByteCount == 2 << 20)
      withExtendedLifetime(snapshot) {}
    }
    // With pages of another size other counts would be needed.
    #expect(reached > 0 || getpagesize() != 4_096)
  }
}
