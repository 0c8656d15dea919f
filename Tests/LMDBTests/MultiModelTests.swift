import Foundation
import LMDB
import Testing

/// Random changes of tables with several values per key, of one size and of many, beside a
/// dictionary of sets that they are made to as well.
@Suite("Random changes of several values per key")
struct MultiModelTests {
  let directory: TemporaryDirectory
  let environment: Environment

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
  }

  typealias Model<Value: Hashable> = [UInt16: Set<Value>]

  private static func change<V: KeyCodec, G: RandomNumberGenerator>(
    _ transaction: inout WriteTransaction, _ table: MultiTable<UInt16Codec, V>,
    _ model: inout Model<V.Key>, _ random: inout G, _ value: (inout G) -> V.Key
  ) throws -> String? where V.Key: Hashable & Comparable {
    let key = UInt16.random(in: 0..<12, using: &random)
    switch Int.random(in: 0..<30, using: &random) {
    case 0..<12:
      for _ in 0..<Int.random(in: 1..<8, using: &random) {
        let value = value(&random)
        let isNew = try transaction.insert(value, for: key, in: table)
        if isNew != model[key, default: []].insert(value).inserted { return "insert" }
      }
      let other = value(&random)
      let isFirst = try transaction.insertFirst(other, for: key ^ 1, in: table)
      if isFirst != (model[key ^ 1] == nil) { return "insertFirst" }
      if isFirst { model[key ^ 1] = [other] }
    case 12..<19:
      for _ in 0..<Int.random(in: 1..<12, using: &random) {
        guard let value = model[key]?.randomElement(using: &random) else { break }
        if try !transaction.delete(value, for: key, in: table) { return "delete" }
        model[key]?.remove(value)
      }
      if model[key]?.isEmpty == true { model[key] = nil }
      if try transaction.delete(value(&random), for: 99, in: table) { return "delete nothing" }
    case 19:
      let isThere = try transaction.deleteAll(for: key, in: table)
      if isThere != (model.removeValue(forKey: key) != nil) { return "deleteAll of a key" }
    case 20:
      let end = UInt16.random(in: key...12, using: &random)
      let count = try transaction.deleteAll(in: table, .between(key, end))
      let gone = model.keys.filter { $0 >= key && $0 < end }
      if count != gone.count { return "deleteAll of a range" }
      for key in gone { model[key] = nil }
    case 21 where Int.random(in: 0..<20, using: &random) == 0:
      try transaction.deleteAll(in: table)
      model = [:]
    case 22..<25:
      let value = value(&random)
      if try transaction.contains(value, for: key, in: table)
        != (model[key]?.contains(value) ?? false)
      {
        return "contains"
      }
      if try transaction.valueCount(of: key, in: table) != model[key]?.count ?? 0 {
        return "valueCount"
      }
    default:
      let reversed = Bool.random(using: &random)
      let end = UInt16.random(in: key...12, using: &random)
      var found: [V.Key] = []
      try transaction.scan(table, .afterThrough(key, end), reversed: reversed) { _, value in
        found.append(try V.decode(value))
        return .next
      }
      let wanted = model.keys.filter { $0 > key && $0 <= end }.sorted()
        .flatMap { model[$0, default: []].sorted() }
      if found != (reversed ? wanted.reversed() : wanted) { return "scan" }
    }
    return nil
  }

  private func run<V: KeyCodec>(
    _ codec: V.Type, seed: UInt64, _ value: (inout SeededNumbers) -> V.Key,
    _ check: (borrowing ReadTransaction, MultiTable<UInt16Codec, V>, Model<V.Key>) throws -> Void
  ) throws where V.Key: Hashable & Comparable {
    let table = try environment.multiTable("t", key: UInt16Codec.self, value: V.self)
    var random = SeededNumbers(seed: seed)
    var model = Model<V.Key>()
    for _ in 0..<25 {
      var changed = model
      var failed: String?
      do {
        try environment.write { transaction in
          var attempt = model
          for _ in 0..<Int.random(in: 1..<120, using: &random) {
            failed = try Self.change(&transaction, table, &attempt, &random, value)
            if failed != nil { return }
          }
          if Int.random(in: 0..<8, using: &random) == 0 { throw Undo() }
          changed = attempt
        }
        model = changed
      } catch is Undo {}
      guard failed == nil else {
        Issue.record("seed \(seed): \(failed ?? "")")
        return
      }
      try environment.read { transaction in
        let count = try transaction.count(of: table)
        #expect(count == model.values.map(\.count).reduce(0, +), "seed \(seed)")
        for key in UInt16(0)..<12 {
          let values = try transaction.values(of: key, in: table)
          #expect(values == model[key, default: []].sorted(), "seed \(seed)")
        }
        try check(transaction, table, model)
      }
    }
  }

  @Test("of one size do what they do to a dictionary of sets", arguments: 0..<20 as Range<UInt64>)
  func fixed(seed: UInt64) throws {
    try run(UInt64Codec.self, seed: seed) { random in
      UInt64.random(in: 0..<(seed % 2 == 0 ? 60 : 6_000), using: &random)
    } _: { transaction, table, model in
      for key in UInt16(0)..<12 {
        var values: [UInt64] = []
        try transaction.scanValueBlocks(of: key, in: table) { block in
          for place in 0..<block.byteCount / 8 {
            values.append(block.loadBigEndian(at: place * 8))
          }
          return .next
        }
        #expect(values == model[key, default: []].sorted(), "seed \(seed)")
      }
    }
  }

  @Test("of many sizes do what they do to a dictionary of sets", arguments: 0..<20 as Range<UInt64>)
  func varied(seed: UInt64) throws {
    try run(TextCodec.self, seed: seed) { random in
      let count = Int.random(in: 0..<(seed % 2 == 0 ? 12 : 500), using: &random)
      return String(repeating: "x", count: count) + String(Int.random(in: 0..<40, using: &random))
    } _: { _, _, _ in
    }
  }

  @Test("given many at once are what they are one by one", arguments: 0..<20 as Range<UInt64>)
  func blocks(seed: UInt64) throws {
    var random = SeededNumbers(seed: seed)
    let table = try environment.multiTable("t", key: UInt16Codec.self, value: UInt64Codec.self)
    var model = Model<UInt64>()
    for _ in 0..<30 {
      let key = UInt16.random(in: 0..<6, using: &random)
      var block = (0..<Int.random(in: 0..<900, using: &random)).map { _ in
        UInt64.random(in: 0..<2_000, using: &random)
      }
      if Bool.random(using: &random) { block.sort() }
      var bytes: [UInt8] = []
      for number in block { UInt64Codec.withEncodedKey(number) { bytes += $0.copiedBytes() } }
      try environment.write { [bytes] transaction in
        try transaction.insertAll(values: bytes.span.bytes, for: key, in: table)
      }
      if !block.isEmpty { model[key, default: []].formUnion(block) }
      if let gone = model[key]?.randomElement(using: &random) {
        _ = try environment.write { try $0.delete(gone, for: key, in: table) }
        model[key]?.remove(gone)
      }
      try environment.read { transaction in
        for key in UInt16(0)..<6 {
          let values = try transaction.values(of: key, in: table)
          #expect(values == model[key, default: []].sorted(), "seed \(seed)")
        }
      }
    }
    let report = try environment.checkIntegrity()
    #expect(report.findings.isEmpty, "\(report.findings)")
  }

  @Test(
    "of many writers at once, some of them undone, are each their own",
    arguments: 0..<6 as Range<UInt64>)
  func shared(seed: UInt64) async throws {
    let table = try environment.multiTable("t", key: UInt16Codec.self, value: TextCodec.self)
    let plain = try environment.table("p", key: UInt64Codec.self, value: BytesCodec.self)
    let kept = try await withThrowingTaskGroup(of: [(UInt64, Int)].self) { group in
      for task in 0..<24 as Range<UInt64> {
        group.addTask { [environment] in
          var random = SeededNumbers(seed: seed * 100 + task)
          var kept: [UInt64: Int] = [:]
          for _ in 0..<30 {
            let isUndone = Int.random(in: 0..<4, using: &random) == 0
            // Neighbours of other tasks' keys, on the same pages.
            let changes = (0..<12).map { _ in
              (
                UInt64.random(in: 0..<40, using: &random) * 24 + task,
                Int.random(in: -400..<700, using: &random)
              )
            }
            do {
              try await environment.write { transaction in
                for (key, size) in changes {
                  try transaction.delete("\(key)", for: UInt16(key % 7), in: table)
                  guard size >= 0 else {
                    try transaction.delete(key, in: plain)
                    continue
                  }
                  try transaction.put([UInt8](repeating: 1, count: size), for: key, in: plain)
                  try transaction.insert("\(key)", for: UInt16(key % 7), in: table)
                }
                if isUndone { throw Undo() }
              }
              for (key, size) in changes { kept[key] = size >= 0 ? size : nil }
            } catch is Undo {
              guard isUndone else { throw Undo() }
            }
          }
          return kept.map { ($0.key, $0.value) }
        }
      }
      return try await group.reduce(into: [UInt64: Int]()) { kept, own in
        for (key, size) in own { kept[key] = size }
      }
    }
    let (entries, pairs) = try environment.read { transaction in
      (
        try transaction.entries(in: plain),
        try (0..<7).map { try transaction.values(of: $0, in: table) }
      )
    }
    #expect(Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value.count) }) == kept)
    for (rest, values) in pairs.enumerated() {
      #expect(values == kept.keys.filter { $0 % 7 == rest }.map { "\($0)" }.sorted())
    }
    let report = try await environment.checkIntegrity()
    #expect(report.findings.isEmpty, "\(report.findings)")
  }
}
