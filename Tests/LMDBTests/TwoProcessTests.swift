import Foundation
import LMDB
import Testing

@Suite("Two processes on one environment")
struct TwoProcessTests {
  @Test("a map that another process enlarged is adopted by readers and writers without notice")
  func adoptsLargerMap() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 1 << 20
    let environment = try Environment.open(at: path, configuration: configuration)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    try await environment.write { try $0.put([1], for: 0, in: table) }

    await #expect(processExitsWith: .success) { [path = path as String] in
      let other = try Environment.open(at: path)
      let table = try other.table("t", key: UInt64Codec.self, value: BytesCodec.self)
      for number in 1..<UInt64(60) {
        try await other.write { transaction in
          try transaction.put([UInt8](repeating: 7, count: 200_000), for: number, in: table)
        }
      }
    }

    #expect(environment.mapByteCount == 1 << 20)
    let count = try environment.read { try $0.count(of: table) }
    #expect(count == 60)
    try await environment.write { try $0.put([2], for: 100, in: table) }
    #expect(environment.mapByteCount > 1 << 20)
  }

  @Test("a writer sees the growth of another process before it grows itself")
  func writerAdoptsLargerMap() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 1 << 20
    let environment = try Environment.open(at: path, configuration: configuration)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    await #expect(processExitsWith: .success) { [path = path as String] in
      let other = try Environment.open(at: path)
      let table = try other.table("t", key: UInt64Codec.self, value: BytesCodec.self)
      try await other.write { transaction in
        for number in 0..<UInt64(40) {
          try transaction.put([UInt8](repeating: 7, count: 200_000), for: number, in: table)
        }
      }
    }
    try await environment.write { transaction in
      for number in 40..<UInt64(200) {
        try transaction.put([UInt8](repeating: 7, count: 200_000), for: number, in: table)
      }
    }
    let count = try environment.read { try $0.count(of: table) }
    #expect(count == 200)
  }

  @Test("what a killed writer had not committed is gone, what it had committed is whole")
  func killedWriter() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let environment = try Environment.open(at: path)
      let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
      try await environment.write { transaction in
        for number in 0..<UInt64(500) { try transaction.put(number, for: number, in: table) }
      }
      try await environment.write { transaction in
        for number in 500..<UInt64(1_000) { try transaction.put(number, for: number, in: table) }
        kill(getpid(), SIGKILL)
      }
    }
    let environment = try Environment.open(at: path)
    let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
    let count = try environment.read { try $0.count(of: table) }
    #expect(count == 500)
    try await environment.write { try $0.put(1, for: 2_000, in: table) }
  }
}

@Suite("An environment that is closed while it is used")
struct ClosingRaceTests {
  @Test("readers and writers of many tasks end with a result or with closed, never otherwise")
  func closingUnderLoad() async throws {
    let directory = try TemporaryDirectory()
    for round in 0..<20 {
      let environment = try Environment.open(at: directory.file("env"))
      let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
      try await environment.write { try $0.put(1, for: 1, in: table) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<UInt64(16) {
          group.addTask {
            do {
              for _ in 0..<50 {
                if number % 4 == 0 {
                  try await environment.write { try $0.put(number, for: number, in: table) }
                } else {
                  _ = try environment.read { try $0.value(of: 1, in: table) }
                }
              }
            } catch let error as LMDBError {
              #expect(error.code == .closed, "round \(round)")
            }
          }
        }
        group.addTask { try environment.close() }
        try await group.waitForAll()
      }
      #expect(environment.mapByteCount == 0)
    }
  }

  @Test("a copy of what was closed and overwritten says closed", arguments: [true, false])
  func closedWhileCopied(compacting: Bool) async throws {
    try await onThread {
      let directory = try TemporaryDirectory()
      func fill(_ environment: Environment, _ byteCount: Int) throws {
        let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
        try environment.write { transaction in
          for number in 0..<UInt64(200) {
            let value = [UInt8](repeating: 1, count: byteCount)
            try transaction.put(value, for: number, in: table)
          }
        }
      }
      let environment = try Environment.open(at: directory.file("env"))
      try fill(environment, 900)
      var isFirst = true
      let error = #expect(throws: LMDBError.self) {
        try environment.copy(to: directory.file("copy"), compacting: compacting) { _ in
          guard isFirst else { return }
          isFirst = false
          try environment.close()
          let other = try Environment.open(at: directory.file("env"))
          for byteCount in [5_000, 900, 9_000, 700, 5_000] { try fill(other, byteCount) }
        }
      }
      #expect(error?.code == .closed)
      #expect(!FileManager.default.fileExists(atPath: directory.file("copy")))
    }
  }

  @Test("tables of a closed environment are not taken for those of a later one")
  func staleTable() async {
    await #expect(processExitsWith: .failure) {
      let directory = try TemporaryDirectory()
      func table(_ name: String) throws -> Table<TextCodec, TextCodec> {
        let environment = try Environment.open(at: directory.file(name))
        defer { #expect(throws: Never.self) { try environment.close() } }
        return try environment.table("t", key: TextCodec.self, value: TextCodec.self)
      }
      let stale = try table("one")
      for _ in 0..<100 {
        let other = try Environment.open(at: directory.file("two"))
        _ = try other.table("t", key: TextCodec.self, value: TextCodec.self)
        _ = try other.read { try $0.value(of: "a", in: stale) }
      }
    }
  }
}
