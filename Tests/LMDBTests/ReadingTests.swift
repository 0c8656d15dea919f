import Foundation
import Synchronization
import Testing

@testable import LMDB

@Suite("Readers of one environment")
struct ReadingTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let table: Table<UInt64Codec, UInt64Codec>

  init() throws {
    directory = try TemporaryDirectory()
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 1 << 20
    environment = try Environment.open(at: directory.file("env"), configuration: configuration)
    table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
    try environment.write { try $0.put(1, for: 1, in: table) }
  }

  @Test("may be more at once than are kept ready, and leave no more than those behind")
  func moreThanSlots() async throws {
    try await onThread { [self] in
      let count = 40
      let inside = Gathering(count)
      let (environment, table) = (environment, table)
      let failures = inThreads(count) { _ in
        try environment.read { transaction in
          guard try transaction.value(of: 1, in: table) == 1 else { throw LMDBError.wrong }
          inside.meet()
        }
      }
      #expect(failures.isEmpty)
      #expect(environment.gate.idleCount == ReaderGate.slotCount)
      let readers = try environment.readers()
      #expect(readers.count <= ReaderGate.slotCount)
      // Used since: only the second time says that they were not.
      environment.trimIdleReaders()
      #expect(environment.gate.idleCount == ReaderGate.slotCount)
      try environment.read { _ in }
      environment.trimIdleReaders()
      #expect(environment.gate.idleCount == 1)
      environment.trimIdleReaders()
      #expect(try environment.readers().isEmpty)
    }
  }

  @Test("take over a slot that nobody uses, and are refused only when all are in use")
  func fewSlots() async throws {
    try await onThread { [self] in
      var configuration = Environment.Configuration()
      configuration.readerCountMax = 2
      let small = try Environment.open(at: directory.file("small"), configuration: configuration)
      for _ in 0..<8 {
        let refused = inThreads(1) { _ in try small.read { _ in } }
        #expect(refused.isEmpty)
      }
      let inside = Gathering(3)
      let failures = inThreads(3) { _ in
        do {
          try small.read { _ in inside.meet() }
        } catch {
          inside.meet()
          throw error
        }
      }
      #expect(failures.map(\.code) == [.readersFull])
      let refused = inThreads(1) { _ in try small.read { _ in } }
      #expect(refused.isEmpty)
    }
  }

  @Test("inside one another see one snapshot")
  func nested() async throws {
    try await onThread { [self] in
      let (environment, table) = (environment, table)
      try environment.read { outer in
        let before = try outer.count(of: table)
        let failures = inThreads(1) { _ in
          try environment.write { try $0.put(2, for: 2, in: table) }
        }
        #expect(failures.isEmpty)
        let inner = try environment.read { try $0.count(of: table) }
        #expect(inner == before)
        #expect(try outer.count(of: table) == before)
      }
      #expect(try environment.read { try $0.count(of: table) } == 2)
    }
  }

  @Test("are not kept waiting by a map that waits for a long reader before it grows")
  func longReader() async throws {
    try await onThread { [self] in
      let environment = environment
      let blobs = try environment.table("b", key: UInt64Codec.self, value: BytesCodec.self)
      let isHeld = DispatchSemaphore(value: 0)
      let mayEnd = DispatchSemaphore(value: 0)
      let longReader = background {
        try environment.read { _ in
          isHeld.signal()
          mayEnd.wait()
        }
      }
      isHeld.wait()
      let hasWritten = Flag()
      let writer = background {
        try environment.write { transaction in
          for number in 0..<UInt64(30) {
            try transaction.put([UInt8](repeating: 1, count: 100_000), for: number, in: blobs)
          }
        }
        hasWritten.set()
      }
      let clock = ContinuousClock()
      let end = clock.now + .milliseconds(700)
      var longest = Duration.zero
      while clock.now < end {
        let began = clock.now
        try environment.read { _ in }
        longest = max(longest, clock.now - began)
      }
      #expect(!hasWritten.isSet, "the map grew under a reader")
      #expect(longest < .milliseconds(400))
      mayEnd.signal()
      #expect(longReader.wait().isEmpty)
      #expect(writer.wait().isEmpty)
      #expect(environment.mapByteCount > 1 << 20)
      #expect(try environment.read { try $0.count(of: blobs) } == 30)
    }
  }

  @Test("from many threads stay right while the map grows under them again and again")
  func growthUnderReaders() async throws {
    try await onThread { [self] in
      let environment = environment
      let blobs = try environment.table("b", key: UInt64Codec.self, value: BytesCodec.self)
      let failures = inThreads(6) { number in
        if number == 0 {
          for key in 0..<UInt64(60) {
            try environment.write { transaction in
              try transaction.put(
                [UInt8](repeating: UInt8(key), count: 200_000), for: key, in: blobs)
            }
          }
        } else {
          for _ in 0..<400 {
            try environment.read { transaction in
              let count = try transaction.count(of: blobs)
              guard count > 0 else { return }
              let key = UInt64(count - 1)
              guard let bytes = try transaction.bytes(of: key, in: blobs),
                bytes.byteCount == 200_000,
                bytes.unsafeLoad(fromByteOffset: 199_999, as: UInt8.self) == UInt8(key)
              else { throw LMDBError.wrong }
            }
          }
        }
      }
      #expect(failures.isEmpty)
      #expect(environment.mapByteCount >= 12_000_000)
    }
  }
}
