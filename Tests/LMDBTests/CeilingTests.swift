import Foundation
import Testing

@testable import LMDB

@Suite("An environment whose map is at its ceiling")
struct CeilingTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let table: Table<UInt64Codec, BytesCodec>
  let settled: Table<UInt64Codec, UInt64Codec>
  static let ceiling = 8 << 20

  /// An outbox that is filled until it is refused.
  init() throws {
    directory = try TemporaryDirectory()
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 1 << 20
    configuration.mapSizeByteCountMax = Self.ceiling
    environment = try Environment.open(at: directory.file("env"), configuration: configuration)
    table = try environment.table("outbox", key: UInt64Codec.self, value: BytesCodec.self)
    settled = try environment.table("settled", key: UInt64Codec.self, value: UInt64Codec.self)
  }

  private func count() throws -> Int { try environment.read { try $0.count(of: table) } }

  /// Keys in an order that touches another leaf each time.
  private func key(_ number: Int) -> UInt64 { UInt64(number) &* 0x9E37_79B9_7F4A_7C15 }

  private func enqueue(_ number: Int) throws {
    let value = [UInt8](repeating: 1, count: 500)
    try environment.write { try $0.put(value, for: key(number), in: table) }
  }

  private func fill() throws -> Int {
    for number in 0... {
      do {
        try enqueue(number)
      } catch let error as LMDBError where error.code == .mapFull {
        return number
      }
    }
    return 0
  }

  @Test("drains to the last record, each with what is noted of it; only then stores again")
  func drains() async throws {
    try await onThread { [self] in
      let all = try fill()
      #expect(all > 5_000)
      #expect(environment.mapByteCount == Self.ceiling)
      for start in stride(from: 0, to: all, by: 50) {
        try environment.write(for: .draining) { transaction in
          for number in start..<min(all, start + 50) {
            #expect(try transaction.delete(key(number), in: table))
          }
          try transaction.put(UInt64(start), for: UInt64(start), in: settled)
        }
        if start == 0 {
          // What draining got beyond the ceiling is no storing write's.
          #expect(
            try environment.statistics().usedByteCount
              <= Environment.drainingCeiling(above: Self.ceiling))
        }
      }
      #expect(try count() == 0)
      #expect(try environment.read { try $0.count(of: settled) } == (all + 49) / 50)
      for number in 0..<1_000 { try enqueue(number) }
      #expect(environment.mapByteCount < Environment.drainingCeiling(above: Self.ceiling))
    }
  }

  @Test("lets a write through that only deletes, though it was not marked as draining")
  func deletesOnly() async throws {
    try await onThread { [self] in
      let all = try fill()
      for number in 0..<all {
        try environment.write { _ = try $0.delete(key(number), in: table) }
      }
      #expect(try count() == 0)
    }
  }

  @Test("refuses a storing write in the same commit in which a draining one goes through")
  func mixed() async throws {
    let all = try fill()
    let (environment, table) = (environment, table)
    let big = [UInt8](repeating: 2, count: 600_000)
    let outcomes = await withTaskGroup(of: (Bool, LMDBError.Code?).self) { group in
      for number in 0..<40 {
        let (drained, added) = (key(number), key(all + number))
        group.addTask {
          let isDraining = number.isMultiple(of: 2)
          do {
            if isDraining {
              try await environment.write(for: .draining) { transaction in
                _ = try transaction.delete(drained, in: table)
              }
            } else {
              try await environment.write { try $0.put(big, for: added, in: table) }
            }
            return (isDraining, nil)
          } catch {
            return (isDraining, (error as? LMDBError)?.code ?? .other)
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(outcomes.filter(\.0).allSatisfy { $0.1 == nil })
    #expect(outcomes.filter { !$0.0 }.allSatisfy { $0.1 == .mapFull })
    #expect(try count() == all - 20)
  }

  @Test("keeps a file that is larger than the ceiling readable, and drains it")
  func loweredCeiling() async throws {
    try await onThread { [self] in
      let all = try fill()
      try environment.close()
      var configuration = Environment.Configuration()
      configuration.mapSizeByteCountMax = 2 << 20
      let lower = try Environment.open(at: directory.file("env"), configuration: configuration)
      let table = try lower.table("outbox", key: UInt64Codec.self, value: BytesCodec.self)
      #expect(try lower.read { try $0.count(of: table) } == all)
      for number in 0..<200 {
        try lower.write(for: .draining) { _ = try $0.delete(key(number), in: table) }
      }
      #expect(try lower.read { try $0.count(of: table) } == all - 200)
    }
  }

  @Test("has grown before it was full, so that a write seldom runs twice")
  func growsAhead() async throws {
    try await onThread { [self] in
      var runs = 0
      let value = [UInt8](repeating: 1, count: 2_000)
      for number in 0..<UInt64(2_000) {
        try environment.write { transaction in
          runs += 1
          try transaction.put(value, for: number, in: table)
        }
      }
      #expect(environment.mapByteCount == Self.ceiling)
      // Without it, each of the three doublings repeats one.
      #expect(runs == 2_000)
    }
  }
}
