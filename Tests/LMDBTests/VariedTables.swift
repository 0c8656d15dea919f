import LMDB

/// Tables with every kind of page: values in leaves and on overflow pages, several values per key in
/// sub-pages and in trees of their own, of one size and of many; free pages in long and short lists.
struct VariedTables {
  let plain: Table<UInt64Codec, BytesCodec>
  let large: Table<TextCodec, BytesCodec>
  let fixed: MultiTable<UInt64Codec, UInt64Codec>
  let varied: MultiTable<TextCodec, TextCodec>

  init(_ environment: Environment) throws {
    plain = try environment.table("plain", key: UInt64Codec.self, value: BytesCodec.self)
    large = try environment.table("large", key: TextCodec.self, value: BytesCodec.self)
    fixed = try environment.multiTable("fixed", key: UInt64Codec.self, value: UInt64Codec.self)
    varied = try environment.multiTable("varied", key: TextCodec.self, value: TextCodec.self)
  }

  /// Stores some entries in each table and removes some.
  func change<G: RandomNumberGenerator>(
    _ transaction: inout WriteTransaction, _ random: inout G, count: Int
  ) throws {
    for _ in 0..<count {
      let number = UInt64.random(in: 0..<2_000, using: &random)
      let size = Int.random(in: 0..<400, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<3: try transaction.put([UInt8](repeating: 7, count: size), for: number, in: plain)
      case 3: try transaction.delete(number, in: plain)
      case 4:
        try transaction.put(
          [UInt8](repeating: 9, count: size * 60), for: "large \(number % 100)", in: large)
      case 5: try transaction.delete("large \(number % 100)", in: large)
      case 6:
        // Key 0 gets a tree of its own, the others a sub-page.
        for value in 0..<UInt64(20) {
          try transaction.insert(
            number &* 31 &+ value, for: number % 3 == 0 ? 0 : number, in: fixed)
        }
      case 7: try transaction.delete(number &* 31, for: 0, in: fixed)
      case 8:
        for value in 0..<10 {
          let text = String(repeating: "x", count: size % 200) + "\(number) \(value)"
          try transaction.insert(
            text, for: number % 3 == 0 ? "many" : "some \(number % 50)", in: varied)
        }
      default: try transaction.deleteAll(for: "some \(number % 50)", in: varied)
      }
    }
  }
}

/// Numbers that look random and are the same in each run. Corresponds to SplitMix64.
struct SeededNumbers: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
