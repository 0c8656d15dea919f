import LMDB
import Testing

@Suite("A table with several values per key")
struct MultiTableTests {
  let directory: TemporaryDirectory
  let environment: Environment

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
  }

  @Test("keeps each key's values in order, once each")
  func inserts() throws {
    let table = try environment.multiTable("t", key: TextCodec.self, value: Int32Codec.self)
    #expect(table.valueByteCount == 4)
    let (again, fresh) = try environment.write { transaction in
      for number in (Int32(-500)..<500).reversed() {
        try transaction.insert(number, for: number % 2 == 0 ? "even" : "odd", in: table)
      }
      let again = try transaction.insert(4, for: "even", in: table)
      let fresh = try transaction.insert(4, for: "odd", in: table)
      return (again, fresh)
    }
    #expect(!again)
    #expect(fresh)
    let read = try environment.read { transaction in
      (
        even: try transaction.values(of: "even", in: table),
        odd: try transaction.values(of: "odd", in: table),
        none: try transaction.values(of: "none", in: table),
        counts: [
          try transaction.count(of: table),
          try transaction.valueCount(of: "odd", in: table),
          try transaction.valueCount(of: "none", in: table),
        ],
        contains: [
          try transaction.contains(-500, for: "even", in: table),
          try transaction.contains(-500, for: "odd", in: table),
          try transaction.contains(1, for: "none", in: table),
        ]
      )
    }
    #expect(read.even == (-250..<250).map { $0 * 2 })
    #expect(read.odd == (((-250..<250).map { $0 * 2 + 1 }) + [4]).sorted())
    #expect(read.none == [])
    #expect(read.counts == [1_001, 501, 0])
    #expect(read.contains == [true, false, false])
  }

  @Test("removes a key by its only value, and no other", arguments: [UInt64(1), 2, 3])
  func removesSingles(seed: UInt64) throws {
    let table = try environment.multiTable("t", key: TextCodec.self, value: UInt64Codec.self)
    var state = seed
    func number(below end: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % end
    }
    var model: [String: Set<UInt64>] = [:]
    for _ in 0..<6_000 {
      model["key-\(number(below: 4_000))", default: []].insert(number(below: 3))
    }
    try environment.write { transaction in
      for (key, values) in model {
        for value in values { try transaction.insert(value, for: key, in: table) }
      }
      for _ in 0..<6_000 {
        let (key, value) = ("key-\(number(below: 4_200))", number(below: 3))
        let isRemoved = try transaction.delete(key, ifItsOnlyValueIs: value, in: table)
        #expect(isRemoved == (model[key] == [value]))
        if isRemoved { model[key] = nil }
      }
    }
    let read = try environment.read { transaction in
      var read: [String: Set<UInt64>] = [:]
      try transaction.scan(table) { key, value in
        read[try TextCodec.decode(key), default: []].insert(try UInt64Codec.decode(value))
        return .next
      }
      return read
    }
    #expect(read == model)
    #expect(read.count > 1_000 && read.contains { $0.value.count > 1 })
  }

  @Test("scans pairs by key and value, in both directions")
  func scans() throws {
    let table = try environment.multiTable("t", key: UInt8Codec.self, value: TextCodec.self)
    #expect(table.valueByteCount == nil)
    try environment.write { transaction in
      for key in UInt8(1)...3 {
        for value in ["a", "b", "cc"] { try transaction.insert(value, for: key, in: table) }
      }
    }
    func pairs(_ range: KeyRange<UInt8>, _ reversed: Bool) throws -> [String] {
      try environment.read { transaction in
        var found: [String] = []
        try transaction.scan(table, range, reversed: reversed) { key, value in
          found.append("\(try UInt8Codec.decode(key))\(try TextCodec.decode(value))")
          return .next
        }
        return found
      }
    }
    let ranges: [(KeyRange<UInt8>, [String])] = [
      (.all, ["1a", "1b", "1cc", "2a", "2b", "2cc", "3a", "3b", "3cc"]),
      (.from(2), ["2a", "2b", "2cc", "3a", "3b", "3cc"]),
      (.after(2), ["3a", "3b", "3cc"]),
      (.before(2), ["1a", "1b", "1cc"]),
      (.upThrough(1), ["1a", "1b", "1cc"]),
      (.between(1, 2), ["1a", "1b", "1cc"]),
      (.through(2, 2), ["2a", "2b", "2cc"]),
      (.afterThrough(1, 2), ["2a", "2b", "2cc"]),
    ]
    for (range, wanted) in ranges {
      #expect(try pairs(range, false) == wanted)
      #expect(try pairs(range, true) == wanted.reversed())
    }
  }

  @Test("takes and lends values of one size a page at a time")
  func blocks() throws {
    let table = try environment.multiTable("t", key: UInt8Codec.self, value: UInt64Codec.self)
    let numbers = (UInt64(0)..<5_000).map { $0 * 3 }
    let bigEndian = numbers.map(\.bigEndian)
    let bytes = bigEndian.span.bytes.copiedBytes()
    let first = Array(bytes[..<8])
    try environment.write { transaction in
      try transaction.insertAll(values: bytes.span.bytes, for: 1, in: table)
      try transaction.insertAll(values: first.span.bytes, for: 2, in: table)
      try transaction.insertAll(values: RawSpan(), for: 3, in: table)
    }
    let (found, blockCount, single, none) = try environment.read { transaction in
      var found: [UInt64] = []
      var blockCount = 0
      try transaction.scanValueBlocks(of: 1, in: table) { block in
        blockCount += 1
        for index in 0..<block.byteCount / 8 {
          found.append(block.loadBigEndian(at: index * 8))
        }
        return .next
      }
      var single: [UInt64] = []
      try transaction.scanValueBlocks(of: 2, in: table) { block in
        single.append(block.loadBigEndian())
        return .next
      }
      let none = try transaction.valueCount(of: 3, in: table)
      return (found, blockCount, single, none)
    }
    #expect(found == numbers)
    #expect(blockCount < 50)
    #expect(single == [0])
    #expect(none == 0)
  }

  @Test("begins at a value, and deletes the pairs that a closure picks", arguments: [1, 2, 700])
  func picksPairs(step: UInt16) throws {
    let table = try environment.multiTable("t", key: UInt8Codec.self, value: UInt16Codec.self)
    try environment.write { transaction in
      for key in UInt8(1)...3 {
        for value in UInt16(0)..<(key == 2 ? 1 : 1_500) {
          try transaction.insert(value * 2, for: key, in: table)
        }
      }
    }
    func values(_ key: UInt8, from first: UInt16, limit: Int = .max) throws -> [UInt16] {
      try environment.read { transaction in
        var found: [UInt16] = []
        try transaction.scanValues(of: key, from: first, in: table, limit: limit) { value in
          found.append(try UInt16Codec.decode(value))
          return .next
        }
        return found
      }
    }
    #expect(try values(1, from: 2_991) == [2_992, 2_994, 2_996, 2_998])
    #expect(try values(1, from: 2_999) == [])
    #expect(try values(1, from: 0, limit: 2) == [0, 2])
    #expect(try values(2, from: 0) == [0])
    #expect(try values(2, from: 1) == [])
    #expect(try values(9, from: 0) == [])
    let count = try environment.write { transaction in
      try transaction.deleteAll(in: table, .from(2)) { _, value in
        try UInt16Codec.decode(value) / 2 % step == 0
      }
    }
    let left = try (UInt8(1)...3).map { try values($0, from: 0) }
    let wanted = (UInt16(0)..<1_500).filter { $0 % step != 0 }.map { $0 * 2 }
    #expect(left == [(UInt16(0)..<1_500).map { $0 * 2 }, [], wanted])
    #expect(count == 1_501 - wanted.count)
  }

  @Test("deletes pairs, keys and ranges of keys as a sorted model does")
  func deletes() throws {
    let table = try environment.multiTable("t", key: UInt16Codec.self, value: UInt16Codec.self)
    var model: [UInt16: Set<UInt16>] = [:]
    var random = SplitMix64(state: 42)
    for _ in 0..<200 {
      let changes = (0..<50).map { _ in
        (random.next() % 10, UInt16(random.next() % 40), UInt16(random.next() % 400))
      }
      try environment.write { transaction in
        for (kind, key, value) in changes {
          switch kind {
          case 0: _ = try transaction.deleteAll(for: key, in: table)
          case 1...3: _ = try transaction.delete(value, for: key, in: table)
          case 4 where value < 20:
            _ = try transaction.deleteAll(in: table, .through(key, key + 2))
          default: _ = try transaction.insert(value, for: key, in: table)
          }
        }
      }
      for (kind, key, value) in changes {
        switch kind {
        case 0: model[key] = nil
        case 1...3: model[key]?.remove(value)
        case 4 where value < 20: for key in key...key + 2 { model[key] = nil }
        default: model[key, default: []].insert(value)
        }
      }
      let found = try environment.read { transaction in
        var found: [UInt16: Set<UInt16>] = [:]
        var last: (UInt16, UInt16)?
        try transaction.scan(table) { key, value in
          let pair = (try UInt16Codec.decode(key), try UInt16Codec.decode(value))
          if let last, !(last < pair) { return .stop }
          last = pair
          found[pair.0, default: []].insert(pair.1)
          return .next
        }
        return found
      }
      try #require(found == model.filter { !$0.value.isEmpty })
    }
    try environment.write { try $0.deleteAll(in: table) }
    let count = try environment.read { try $0.count(of: table) }
    #expect(count == 0)
  }

  @Test("refuses a table of another kind under its name, now and after it was opened again")
  func kinds() throws {
    func codes(_ environment: Environment) -> [LMDBError.Code?] {
      func code(_ body: () throws -> Void) -> LMDBError.Code? {
        do {
          try body()
          return nil
        } catch {
          return (error as? LMDBError)?.code
        }
      }
      return [
        code { _ = try environment.table("one", key: TextCodec.self, value: TextCodec.self) },
        code { _ = try environment.multiTable("one", key: TextCodec.self, value: TextCodec.self) },
        code { _ = try environment.multiTable("many", key: TextCodec.self, value: TextCodec.self) },
        code { _ = try environment.table("many", key: TextCodec.self, value: TextCodec.self) },
        code {
          _ = try environment.multiTable("many", key: TextCodec.self, value: UInt64Codec.self)
        },
      ]
    }
    let wanted: [LMDBError.Code?] = [nil, .incompatible, nil, .incompatible, .incompatible]
    #expect(codes(environment) == wanted)
    try environment.close()
    let again = try Environment.open(at: directory.file("env"))
    #expect(codes(again) == wanted)
  }

  @Test("refuses another size of values than it has, which LMDB would cut or fill up")
  func valueSizeOfAnotherCodec() throws {
    let table = try environment.multiTable("t", key: UInt16Codec.self, value: UInt64Codec.self)
    _ = try environment.write { try $0.insert(.max, for: 1, in: table) }
    func openNarrow() throws -> MultiTable<UInt16Codec, UInt32Codec> {
      try environment.multiTable("t", key: UInt16Codec.self, value: UInt32Codec.self)
    }
    #expect(try #require(throws: LMDBError.self) { _ = try openNarrow() }.code == .incompatible)
    let path = environment.path
    try environment.close()
    let again = try Environment.open(at: path)
    let error = try #require(throws: LMDBError.self) {
      _ = try again.multiTable("t", key: UInt16Codec.self, value: UInt32Codec.self)
    }
    #expect(error.code == .incompatible)
    let same = try again.multiTable("t", key: UInt16Codec.self, value: UInt64Codec.self)
    #expect(try again.read { try $0.values(of: 1, in: same) } == [.max])
  }

  @Test("refuses a value that has not the size its codec promises")
  func valueSizeOfWrongCodec() throws {
    let table = try environment.multiTable("t", key: UInt16Codec.self, value: ShortCodec.self)
    _ = try environment.write { try $0.insert(8, for: 1, in: table) }
    let error = try #require(throws: LMDBError.self) {
      try environment.write { try $0.insert(7, for: 1, in: table) }
    }
    #expect(error.code == .badForm)
    #expect(try environment.read { try $0.values(of: 1, in: table) } == [8])
  }

  @Test("refuses values of 0 and more than 511 bytes", arguments: [0, 511, 512])
  func sizes(count: Int) throws {
    let table = try environment.multiTable("t", key: TextCodec.self, value: BytesCodec.self)
    let value = [UInt8](repeating: 1, count: count)
    do {
      try environment.write { _ = try $0.insert(value, for: "k", in: table) }
      #expect(count == 511)
    } catch let error as LMDBError {
      #expect(error.code == .badKeySize)
      #expect(count != 511)
    }
  }
}

/// A small generator with a seed, so that a failure can be repeated.
struct SplitMix64 {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// Promises 8 bytes, and keeps that for even numbers.
private enum ShortCodec: FixedKeyCodec {
  static var byteCount: Int { 8 }
  static func encode(_ key: UInt64, into buffer: inout KeyBuffer) {
    if key % 2 == 0 { buffer.append(bigEndian: key) } else { buffer.append(UInt8(key)) }
  }
  static func decode(_ bytes: RawSpan) throws(LMDBError) -> UInt64 {
    try UInt64Codec.decode(bytes)
  }
}
