import LMDB

/// The same stream of numbers for the same seed.
struct SplitMix: RandomNumberGenerator {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
}

/// One operation on a table and on what it must be like.
enum ModelChange: Sendable {
  case put([UInt8], [UInt8])
  case putIfAbsent([UInt8], [UInt8])
  case append([UInt8], [UInt8])
  case delete([UInt8])
  case deleteRange(ModelRange)
  case deleteAll

  struct Different: Error {
    let what: String
  }

  static func random(_ seed: inout SplitMix, prefix: UInt8?) -> ModelChange {
    let key = [UInt8].randomKey(&seed, prefix: prefix)
    switch seed.below(100) {
    case 0..<50: return .put(key, .randomValue(&seed))
    case 50..<60: return .putIfAbsent(key, .randomValue(&seed))
    case 60..<65: return prefix == nil ? .append(key, .randomValue(&seed)) : .delete(key)
    case 65..<96: return .delete(key)
    case 96..<99: return .deleteRange(.random(&seed, prefix: prefix, isNarrow: true))
    default: return prefix == nil && seed.below(10) == 0 ? .deleteAll : .delete(key)
    }
  }

  /// Does it in a transaction, and says where the answer is not the model's.
  func run(
    _ transaction: inout WriteTransaction, _ table: Table<BytesCodec, BytesCodec>,
    _ model: inout SortedModel
  ) throws {
    let expected = apply(to: &model)
    let found = try answer(&transaction, table)
    guard found == expected else { throw Different(what: "\(self): \(found), not \(expected)") }
  }

  private func answer(
    _ transaction: inout WriteTransaction, _ table: Table<BytesCodec, BytesCodec>
  ) throws -> Int {
    switch self {
    case .put(let key, let value):
      try transaction.put(value, for: key, in: table)
      return 1
    case .putIfAbsent(let key, let value):
      return try transaction.putIfAbsent(value, for: key, in: table) ? 1 : 0
    case .append(let key, let value):
      do {
        try transaction.append(value, for: key, in: table)
      } catch {
        guard error.code == .keyExists else { throw error }
        return 0
      }
      return 1
    case .delete(let key): return try transaction.delete(key, in: table) ? 1 : 0
    case .deleteRange(let range):
      return try transaction.deleteAll(in: table, range.keyRange)
    case .deleteAll:
      try transaction.deleteAll(in: table)
      return 0
    }
  }

  /// - Returns: what the call must answer.
  @discardableResult
  func apply(to model: inout SortedModel) -> Int {
    switch self {
    case .put(let key, let value):
      model.put(value, for: key)
      return 1
    case .putIfAbsent(let key, let value):
      guard model.value(of: key) == nil else { return 0 }
      model.put(value, for: key)
      return 1
    case .append(let key, let value):
      if let last = model.keys.last, !last.lexicographicallyPrecedes(key) { return 0 }
      model.put(value, for: key)
      return 1
    case .delete(let key): return model.delete(key) ? 1 : 0
    case .deleteRange(let range):
      let indices = model.indices(range)
      model.remove(indices)
      return indices.count
    case .deleteAll:
      model = SortedModel()
      return 0
    }
  }
}

extension SortedModel {
  /// The part whose keys begin with a byte.
  func below(_ prefix: UInt8) -> SortedModel {
    var part = SortedModel()
    for index in indices(.prefix([prefix])) { part.put(values[index], for: keys[index]) }
    return part
  }
}

extension ModelRange {
  /// - Parameter isNarrow: one that leaves most of a table alone.
  static func random(
    _ seed: inout SplitMix, prefix: UInt8?, isNarrow: Bool = false
  ) -> ModelRange {
    let pair = [[UInt8].randomKey(&seed, prefix: prefix), .randomKey(&seed, prefix: prefix)]
    let low = pair[0].lexicographicallyPrecedes(pair[1]) ? pair[0] : pair[1]
    let high = low == pair[0] ? pair[1] : pair[0]
    if isNarrow {
      // Within what the prefix leaves to a writer, and not half of the table each time.
      let near = Array(low.prefix(510)) + [UInt8(seed.below(256))]
      return switch seed.below(5) {
      case 0: .through(low, near)
      case 1: .between(low, near)
      case 2: .afterThrough(low, near)
      case 3: .encodedPrefix(low)
      default: .prefix(low)
      }
    }
    return switch seed.below(12) {
    case 0: .all
    case 1: .from(low)
    case 2: .after(low)
    case 3: .before(low)
    case 4: .upThrough(low)
    case 5: .through(low, high)
    case 6: .between(low, high)
    case 7: .afterThrough(low, high)
    case 8: .encodedPrefix(low)
    // The wrong way round: nothing is in there.
    case 9: .through(high, low)
    default: .prefix(low)
    }
  }

  var keyRange: KeyRange<[UInt8]> {
    switch self {
    case .all: .all
    case .from(let a): .from(a)
    case .after(let a): .after(a)
    case .before(let a): .before(a)
    case .upThrough(let a): .upThrough(a)
    case .through(let a, let b): .through(a, b)
    case .between(let a, let b): .between(a, b)
    case .afterThrough(let a, let b): .afterThrough(a, b)
    case .prefix(let a): .prefix(a)
    case .encodedPrefix(let a): .encodedPrefix(a)
    }
  }
}

extension [UInt8] {
  /// Few different bytes, the extreme ones among them, so that keys meet; a few are of 511 bytes.
  fileprivate static func randomKey(_ seed: inout SplitMix, prefix: UInt8?) -> [UInt8] {
    let bytes: [UInt8] = [0, 1, 40, 80, 120, 160, 0xFE, 0xFF]
    let length = seed.below(60) == 0 ? 511 : 1 + seed.below(4)
    var key = prefix.map { [$0] } ?? []
    while key.count < length { key.append(bytes[seed.below(bytes.count)]) }
    return key
  }

  /// Mostly short; some empty, some on pages of their own.
  fileprivate static func randomValue(_ seed: inout SplitMix) -> [UInt8] {
    let length =
      switch seed.below(50) {
      case 0: 2_000 + seed.below(7_000)
      case 1: 0
      case 2..<10: seed.below(900)
      default: seed.below(40)
      }
    return [UInt8](repeating: UInt8(truncatingIfNeeded: seed.next()), count: length)
  }
}
