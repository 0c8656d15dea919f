import Foundation
import LMDB
import Testing

@Suite("An integrity check")
struct IntegrityTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let tables: VariedTables

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
    tables = try VariedTables(environment)
  }

  @Test("finds nothing after any sequence of changes, and agrees with the statistics")
  func intact() throws {
    var random = SeededNumbers(seed: 1)
    for round in 0..<60 {
      try environment.write { try tables.change(&$0, &random, count: round % 7 == 0 ? 2_000 : 60) }
      if round % 20 == 19 {
        _ = try environment.write { try $0.deleteAll(in: tables.plain, .through(500, 1_500)) }
      }
      guard round % 10 == 9 else { continue }
      let report = try environment.checkIntegrity()
      #expect(report.findings == [], "round \(round)")
      let statistics = try environment.detailedStatistics()
      #expect(report.transaction == statistics.transaction)
      #expect(report.freePageCount == statistics.freePageCount)
      #expect(report.pageCount == statistics.pageCount)
      #expect(report.usedPageCount + report.freePageCount == report.pageCount)
      #expect(report.entryCount == statistics.tables.values.reduce(0) { $0 + $1.entryCount })
    }
    for compacting in [false, true] {
      try environment.copy(to: directory.file("copy \(compacting)"), compacting: compacting)
      let copy = try Environment.checkIntegrity(at: directory.file("copy \(compacting)"))
      #expect(copy.findings == [])
      #expect(copy.entryCount == (try environment.checkIntegrity().entryCount))
    }
    try environment.close()
    #expect(try Environment.checkIntegrity(at: directory.file("env")).isIntact)
  }

  @Test("finds nothing while others write, also when some of a shared commit's writes are undone")
  func besideWriters() async throws {
    struct Refused: Error {}
    let tables = tables
    try await withThrowingTaskGroup(of: Void.self) { group in
      for seed in 0..<UInt64(6) {
        group.addTask { [environment] in
          for round in 0..<UInt64(40) {
            do {
              try await environment.write { transaction in
                var random = SeededNumbers(seed: seed * 1_000 + round)
                try tables.change(&transaction, &random, count: 50)
                if round % 5 == 1 { throw Refused() }
              }
            } catch is Refused {}
          }
        }
      }
      for _ in 0..<5 {
        let report = try await environment.checkIntegrity()
        #expect(report.findings == [])
      }
      try await group.waitForAll()
    }
    let report = try await environment.checkIntegrity()
    #expect(report.findings == [])
    #expect(report.entryCount > 1_000)
    #expect(report.freePageCount > 0)
  }

  @Test("tells its progress, and ends with what that throws")
  func progress() throws {
    struct Enough: Error {}
    try environment.write { transaction in
      for number in 0..<UInt64(60_000) {
        try transaction.put([UInt8](repeating: 1, count: 200), for: number, in: tables.plain)
      }
    }
    var seen: [IntegrityProgress] = []
    let report = try environment.checkIntegrity { seen.append($0) }
    #expect(seen.count == report.usedPageCount / 1_024)
    #expect(seen.count > 2)
    #expect(seen.allSatisfy { $0.pageCount == report.pageCount })
    #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.checkedPageCount < $1.checkedPageCount })
    #expect(throws: Enough.self) {
      _ = try environment.checkIntegrity { _ in throw Enough() }
    }
    #expect(try environment.readers().allSatisfy { $0.transaction == nil })
  }

  @Test("is cancelled with its task and leaves no snapshot")
  func cancelled() async throws {
    try await environment.write { [tables] transaction in
      for number in 0..<UInt64(60_000) {
        try transaction.put([UInt8](repeating: 1, count: 200), for: number, in: tables.plain)
      }
    }
    let (steps, continuation) = AsyncStream<Void>.makeStream()
    let hasCancelled = DispatchSemaphore(value: 0)
    let task = Task { [environment] in
      try await environment.checkIntegrity { _ in
        continuation.yield()
        hasCancelled.wait()
        hasCancelled.signal()
      }
    }
    for await _ in steps { break }
    task.cancel()
    hasCancelled.signal()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
    #expect(try environment.readers().allSatisfy { $0.transaction == nil })
  }

  @Test("of a directory that somebody writes meanwhile ends with busy")
  func writtenMeanwhile() throws {
    try environment.write { transaction in
      for number in 0..<UInt64(30_000) {
        try transaction.put([UInt8](repeating: 1, count: 200), for: number, in: tables.plain)
      }
    }
    let error = try #require(throws: LMDBError.self) {
      _ = try Environment.checkIntegrity(at: directory.file("env")) { _ in
        try environment.write { try $0.put([1], for: 1, in: tables.plain) }
      }
    }
    #expect(error.code == .busy)
  }

  @Test("of an environment that is closed meanwhile ends with closed")
  func closedMeanwhile() throws {
    try environment.write { transaction in
      for number in 0..<UInt64(30_000) {
        try transaction.put([UInt8](repeating: 1, count: 200), for: number, in: tables.plain)
      }
    }
    let error = try #require(throws: LMDBError.self) {
      _ = try environment.checkIntegrity { _ in
        if !environment.isClosed { try environment.close() }
      }
    }
    #expect(error.code == .closed)
  }

  @Test("reports a file of garbage and an empty one, and throws where there is none")
  func garbage() throws {
    let manager = FileManager.default
    for (name, bytes) in [
      ("garbage", Data((0..<40_000).map { UInt8($0 % 251) })), ("none", Data()),
    ] {
      try manager.createDirectory(atPath: directory.file(name), withIntermediateDirectories: false)
      try bytes.write(to: URL(fileURLWithPath: directory.file(name + "/data.mdb")))
      let report = try Environment.checkIntegrity(at: directory.file(name))
      #expect(report.findings.map(\.kind) == [.damagedHead, .damagedHead])
      #expect(!report.isIntact)
    }
    let error = try #require(throws: LMDBError.self) {
      _ = try Environment.checkIntegrity(at: directory.file("nowhere"))
    }
    #expect(error.code == .missing)
  }
}
