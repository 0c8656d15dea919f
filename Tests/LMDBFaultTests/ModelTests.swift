import Foundation
import LMDB
import Testing

/// Random operations against a sorted array, from the seed of the run.
@Suite("A table under random operations", .ownThread)
struct ModelTests {
  static let operationCount = 240_000

  typealias Bytes = [UInt8]

  @Test("holds what a sorted array holds, through reopening, failed writes and shared commits")
  func model() async throws {
    let scratch = try Scratch(inMemory: true)
    var seed = FaultSeed(900)
    let run = ModelRun(path: scratch.file("env"), seed: seed.next())
    try run.open()
    var rounds = 0
    while run.operationCount < Self.operationCount {
      rounds += 1
      switch seed.next() % 100 {
      case 0..<1: try run.reopen()
      case 1..<25: try await run.group()
      case 25..<30: try run.failed()
      default: try run.alone()
      }
      if rounds % 20 == 0 { try run.compareAll() }
    }
    try run.compareAll()
    try run.close()
    print(
      "model: \(run.operationCount) operations in \(rounds) rounds, \(run.scanCount) scans, "
        + "\(run.entryCountMax) entries at most")
  }
}

/// An environment and what must be in it.
private final class ModelRun {
  typealias Bytes = [UInt8]

  struct Refused: Error {}

  let path: String
  private var seed: SplitMix
  private(set) var operationCount = 0
  private(set) var scanCount = 0
  private(set) var entryCountMax = 0
  private var model = SortedModel()
  private var environment: Environment?
  private var table: Table<BytesCodec, BytesCodec>?

  init(path: String, seed: UInt64) {
    self.path = path
    self.seed = SplitMix(seed)
  }

  // MARK: Opening

  func open() throws {
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 128 << 10
    let environment = try Environment.open(at: path, configuration: configuration)
    table = try environment.table("model", key: BytesCodec.self, value: BytesCodec.self)
    self.environment = environment
  }

  func close() throws {
    try environment?.close()
    environment = nil
    #expect(try Environment.checkIntegrity(at: path).findings == [])
  }

  func reopen() throws {
    try close()
    try open()
    try compareAll()
  }

  private func opened() throws -> (Environment, Table<BytesCodec, BytesCodec>) {
    (try #require(environment), try #require(table))
  }

  // MARK: Rounds

  /// One transaction of its own, read from within as well.
  func alone() throws {
    let (environment, table) = try opened()
    let changes = changes(upTo: 30, prefix: nil)
    let probes = [probe(), probe(), probe()]
    let before = model
    var after = before
    try environment.write { transaction in
      // It may run again when the map has to grow.
      after = before
      for change in changes { try change.run(&transaction, table, &after) }
      for probe in probes { try Self.compare(transaction, table, probe, after) }
    }
    model = after
    count(changes.count, scans: probes.count)
    let later = probe()
    try environment.read { try Self.compare($0, table, later, after) }
    count(0, scans: 1)
  }

  /// One that throws at its end.
  func failed() throws {
    let (environment, table) = try opened()
    let changes = changes(upTo: 30, prefix: nil)
    let before = model
    #expect(throws: Refused.self) {
      try environment.write { transaction in
        var after = before
        for change in changes { try change.run(&transaction, table, &after) }
        throw Refused()
      }
    }
    count(changes.count, scans: 0)
  }

  /// Writers at the same time, each below a prefix of its own; some throw and must leave nothing.
  func group() async throws {
    let (environment, table) = try opened()
    var writers: [Writer] = []
    for number in UInt8(0)..<UInt8(2 + seed.below(6)) {
      let prefix = number * 40
      writers.append(
        Writer(
          environment: environment, table: table, before: model.below(prefix),
          changes: changes(upTo: 12, prefix: prefix), fails: seed.below(4) == 0))
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in writers { group.addTask { try await writer.write() } }
      try await group.waitForAll()
    }
    for writer in writers where !writer.fails {
      for change in writer.changes { change.apply(to: &model) }
    }
    count(writers.reduce(0) { $0 + $1.changes.count }, scans: 0)
  }

  private struct Writer: Sendable {
    let environment: Environment
    let table: Table<BytesCodec, BytesCodec>
    let before: SortedModel
    let changes: [ModelChange]
    let fails: Bool

    func write() async throws {
      do {
        try await environment.write { try run(&$0) }
        if fails { throw ModelChange.Different(what: "a failed write was committed") }
      } catch is Refused {}
    }

    private func run(_ transaction: inout WriteTransaction) throws {
      var own = before
      for change in changes { try change.run(&transaction, table, &own) }
      if fails { throw Refused() }
    }
  }

  private func count(_ operations: Int, scans: Int) {
    operationCount += operations + scans
    scanCount += scans
    entryCountMax = max(entryCountMax, model.count)
  }

  // MARK: Comparing

  func compareAll() throws {
    let (environment, table) = try opened()
    try environment.read { transaction in
      for isReversed in [false, true] {
        try Self.compare(transaction, table, (.all, isReversed, .max), model)
      }
      guard try transaction.count(of: table) == model.count else {
        throw ModelChange.Different(what: "the count")
      }
    }
  }

  typealias Probe = (range: ModelRange, isReversed: Bool, limit: Int)

  private func probe() -> Probe {
    let limit = seed.below(3) == 0 ? 1 + seed.below(20) : Int.max
    return (ModelRange.random(&seed, prefix: nil), seed.below(2) == 0, limit)
  }

  private func changes(upTo countMax: Int, prefix: UInt8?) -> [ModelChange] {
    var changes: [ModelChange] = []
    for _ in 0..<1 + seed.below(countMax) { changes.append(.random(&seed, prefix: prefix)) }
    return changes
  }

  private static func compare<T: Transaction & ~Copyable>(
    _ transaction: borrowing T, _ table: Table<BytesCodec, BytesCodec>,
    _ probe: Probe, _ model: SortedModel
  ) throws {
    var expected = Array(model.indices(probe.range))
    if probe.isReversed { expected.reverse() }
    expected = Array(expected.prefix(probe.limit))
    var found: [(key: Bytes, value: Bytes)] = []
    let limit = probe.limit
    try transaction.scan(table, probe.range.keyRange, reversed: probe.isReversed) { key, value in
      found.append((key.copiedBytes(), value.copiedBytes()))
      return found.count < limit ? .next : .stop
    }
    let isEqual =
      found.count == expected.count
      && zip(found, expected).allSatisfy { entry, index in
        entry.key == model.keys[index] && entry.value == model.values[index]
      }
    guard isEqual else {
      throw ModelChange.Different(what: "\(found.count) entries of \(expected.count), \(probe)")
    }
  }
}
