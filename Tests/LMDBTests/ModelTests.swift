import Foundation
import LMDB
import Testing

/// What a write throws to be undone.
struct Undo: Error {}

/// Random changes beside a sorted dictionary that they are made to as well.
@Suite("Random changes")
struct ModelTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let plain: Table<BytesCodec, BytesCodec>
  let beside: Table<BytesCodec, BytesCodec>

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
    plain = try environment.table("plain", key: BytesCodec.self, value: BytesCodec.self)
    beside = try environment.table("beside", key: BytesCodec.self, value: BytesCodec.self)
  }

  typealias Model = [[UInt8]: [UInt8]]

  private static func key<G: RandomNumberGenerator>(_ random: inout G) -> [UInt8] {
    let count = Int.random(in: 1...4, using: &random)
    var key = (0..<count).map { _ in [0, 1, 127, 254, 255].randomElement(using: &random)! as UInt8 }
    if Int.random(in: 0..<20, using: &random) == 0 {
      key += [UInt8](repeating: 255, count: Int.random(in: 0...(511 - count), using: &random))
    }
    return key
  }

  private static func value<G: RandomNumberGenerator>(_ random: inout G) -> [UInt8] {
    let count =
      switch Int.random(in: 0..<10, using: &random) {
      case 0: Int.random(in: 1_900...9_000, using: &random)
      case 1..<4: Int.random(in: 300...1_200, using: &random)
      default: Int.random(in: 0...40, using: &random)
      }
    return [UInt8](repeating: .random(in: 0...255, using: &random), count: count)
  }

  private static func ranges<G: RandomNumberGenerator>(
    _ random: inout G
  ) -> (KeyRange<[UInt8]>, ([UInt8]) -> Bool) {
    let one = key(&random)
    let other = key(&random)
    switch Int.random(in: 0..<10, using: &random) {
    case 0: return (.all, { _ in true })
    case 1: return (.from(one), { !Self.precedes($0, one) })
    case 2: return (.after(one), { Self.precedes(one, $0) })
    case 3: return (.before(one), { Self.precedes($0, one) })
    case 4: return (.upThrough(one), { !Self.precedes(one, $0) })
    case 5: return (.through(one, other), { !Self.precedes($0, one) && !Self.precedes(other, $0) })
    case 6: return (.between(one, other), { !Self.precedes($0, one) && Self.precedes($0, other) })
    case 7:
      return (.afterThrough(one, other), { Self.precedes(one, $0) && !Self.precedes(other, $0) })
    case 8: return (.prefix(one), { $0.starts(with: one) })
    default: return (.encodedPrefix(one), { $0.starts(with: one) })
    }
  }

  private static func precedes(_ first: [UInt8], _ second: [UInt8]) -> Bool {
    first.lexicographicallyPrecedes(second)
  }

  private static func change<G: RandomNumberGenerator>(
    _ transaction: inout WriteTransaction, _ table: Table<BytesCodec, BytesCodec>,
    _ model: inout Model, _ random: inout G
  ) throws -> String? {
    let key = key(&random)
    let value = value(&random)
    switch Int.random(in: 0..<40, using: &random) {
    case 0..<14:
      try transaction.put(value, for: key, in: table)
      model[key] = value
    case 14..<17:
      let isStored = try transaction.putIfAbsent(value, for: key, in: table)
      if isStored != (model[key] == nil) { return "putIfAbsent" }
      if isStored { model[key] = value }
    case 17..<20:
      let last = model.keys.max(by: Self.precedes)
      do {
        try transaction.append(value, for: key, in: table)
        if let last, !precedes(last, key) { return "append out of order" }
        model[key] = value
      } catch {
        guard error.code == .keyExists else { throw error }
        if last.map({ precedes($0, key) }) ?? true { return "append refused" }
      }
    case 20..<23:
      try transaction.put(byteCount: value.count, for: key, in: table) { output in
        for byte in value { output.append(byte) }
      }
      model[key] = value
    case 23..<30:
      let isThere = try transaction.delete(key, in: table)
      if isThere != (model.removeValue(forKey: key) != nil) { return "delete" }
    case 30:
      let (range, contains) = ranges(&random)
      if case .all = range { return nil }
      let count = try transaction.deleteAll(in: table, range)
      let gone = model.keys.filter(contains)
      if count != gone.count { return "deleteAll \(range): \(count), not \(gone.count)" }
      for key in gone { model[key] = nil }
    case 31:
      let (range, contains) = ranges(&random)
      _ = try transaction.deleteAll(in: table, range) { $1.byteCount % 3 == $0.byteCount % 3 }
      for (key, value) in model where contains(key) && value.count % 3 == key.count % 3 {
        model[key] = nil
      }
    case 32 where Int.random(in: 0..<30, using: &random) == 0:
      try transaction.deleteAll(in: table)
      model = [:]
    case 33..<36:
      let (range, contains) = ranges(&random)
      let reversed = Bool.random(using: &random)
      var found: [[UInt8]] = []
      try transaction.scan(table, range, reversed: reversed) { key, _ in
        found.append(key.copiedBytes())
        return .next
      }
      let wanted = model.keys.filter(contains).sorted(by: precedes)
      if found != (reversed ? wanted.reversed() : wanted) { return "scan \(range) \(reversed)" }
    case 36..<39:
      return try walk(&transaction, table, &model, &random)
    default:
      if try transaction.value(of: key, in: table) != model[key] { return "value" }
    }
    return nil
  }

  private static func walk<G: RandomNumberGenerator>(
    _ transaction: inout WriteTransaction, _ table: Table<BytesCodec, BytesCodec>,
    _ model: inout Model, _ random: inout G
  ) throws -> String? {
    var cursor = try transaction.writeCursor(in: table)
    var keys = model.keys.sorted(by: precedes)
    // The gap before keys[place], or keys[place] itself.
    var place = 0
    var isOn = false
    var isNew = true
    var trace = ""
    for _ in 0..<Int.random(in: 1..<60, using: &random) {
      let step = Int.random(in: 0..<12, using: &random)
      trace += "\(step) "
      var wanted: Bool
      let found: Bool
      switch step {
      case 0..<4:
        found = try cursor.next()
        if isOn { place += 1 }
        wanted = place < keys.count
      case 4..<7:
        found = try cursor.previous()
        if isNew { place = keys.count }
        place -= 1
        wanted = place >= 0
        if !wanted { place = 0 }
      case 7 where Int.random(in: 0..<4, using: &random) == 0:
        found = try cursor.first()
        place = 0
        wanted = !keys.isEmpty
      case 7 where Int.random(in: 0..<4, using: &random) == 0:
        found = try cursor.last()
        place = max(keys.count - 1, 0)
        wanted = !keys.isEmpty
      case 7, 8:
        let key = key(&random)
        let isExact = Bool.random(using: &random)
        found = try isExact ? cursor.seek(to: key) : cursor.seek(atOrAfter: key)
        place = keys.firstIndex { !precedes($0, key) } ?? keys.count
        wanted = place < keys.count && (!isExact || keys[place] == key)
      case 9 where isOn:
        try cursor.delete()
        model[keys.remove(at: place)] = nil
        found = false
        wanted = false
      case 10 where isOn:
        let value = value(&random)
        try cursor.replace(with: value)
        model[keys[place]] = value
        found = true
        wanted = true
      default: continue
      }
      isNew = false
      isOn = found
      if found != wanted || found != cursor.isOnEntry { return "walk \(trace): \(found)" }
      if found {
        let key = try cursor.key()
        if key != keys[place] { return "walk \(trace): key \(key), not \(keys[place])" }
        if try cursor.value() != model[key] { return "walk \(trace): value" }
      }
    }
    return nil
  }

  @Test("to a table do what they do to a dictionary", arguments: 0..<40 as Range<UInt64>)
  func plain(seed: UInt64) throws {
    var random = SeededNumbers(seed: seed)
    var models = [Model(), Model()]
    let tables = [plain, beside]
    for _ in 0..<25 {
      var changed = models
      var failed: String?
      do {
        try environment.write { transaction in
          var attempt = models
          for _ in 0..<Int.random(in: 1..<80, using: &random) {
            let which = Int.random(in: 0..<2, using: &random)
            failed = try Self.change(&transaction, tables[which], &attempt[which], &random)
            if failed != nil { return }
          }
          if Int.random(in: 0..<8, using: &random) == 0 { throw Undo() }
          changed = attempt
        }
        models = changed
      } catch is Undo {}
      guard failed == nil else {
        Issue.record("seed \(seed): \(failed ?? "")")
        return
      }
      try environment.read { transaction in
        for (table, model) in zip(tables, models) {
          let entries = try transaction.entries(in: table)
          #expect(entries.map(\.key) == model.keys.sorted(by: Self.precedes), "seed \(seed)")
          #expect(entries.allSatisfy { model[$0.key] == $0.value }, "seed \(seed)")
        }
      }
    }
  }
}
