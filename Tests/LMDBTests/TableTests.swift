import Foundation
import LMDB
import Testing

@Suite("A table")
struct TableTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let table: Table<BytesCodec, UInt64Codec>

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
    table = try environment.table("t", key: BytesCodec.self, value: UInt64Codec.self)
    try environment.write { [table] transaction in
      for (number, key) in Self.keys.enumerated() {
        try transaction.put(UInt64(number), for: key, in: table)
      }
    }
  }

  static let keys: [[UInt8]] = [
    [1], [1, 0], [1, 5], [1, 255], [1, 255, 255], [2], [3, 3], [255], [255, 255],
  ]

  private func keys(_ range: KeyRange<[UInt8]>, reversed: Bool = false) throws -> [[UInt8]] {
    try environment.read { transaction in
      var found: [[UInt8]] = []
      try transaction.scan(table, range, reversed: reversed) { key, _ in
        found.append(key.copiedBytes())
        return .next
      }
      return found
    }
  }

  @Test(
    "scans each kind of range in order and backwards",
    arguments: [
      (KeyRange<[UInt8]>.all, Array(0..<9)),
      (.from([1, 5]), Array(2..<9)),
      (.from([1, 6]), Array(3..<9)),
      (.after([1, 5]), Array(3..<9)),
      (.after([1, 6]), Array(3..<9)),
      (.through([1, 0], [2]), [1, 2, 3, 4, 5]),
      (.through([1, 1], [2, 9]), [2, 3, 4, 5]),
      (.through([4], [5]), []),
      (.prefix([1]), [0, 1, 2, 3, 4]),
      (.prefix([1, 255]), [3, 4]),
      (.prefix([255]), [7, 8]),
      (.prefix([4]), []),
      (.after([255, 255]), []),
    ])
  func ranges(range: KeyRange<[UInt8]>, expected: [Int]) throws {
    let wanted = expected.map { Self.keys[$0] }
    #expect(try keys(range) == wanted)
    #expect(try keys(range, reversed: true) == wanted.reversed())
  }

  @Test("gives the entries and keys of a range decoded, up to a limit, also backwards")
  func entries() throws {
    try environment.read { transaction in
      let entries = try transaction.entries(in: table, .prefix([1]), limit: 3)
      let keys = try transaction.keys(in: table, .from([2]), reversed: true)
      let last = try transaction.firstEntry(in: table, reversed: true)
      var visited: [UInt64] = []
      try transaction.scan(decoding: table, .from([1, 5])) { key, value in
        visited.append(value)
        return key == [2] ? .stop : .next
      }
      #expect(entries.map(\.key) == Array(Self.keys[..<3]))
      #expect(entries.map(\.value) == [0, 1, 2])
      #expect(keys == Self.keys[5...].reversed())
      #expect(last?.key == Self.keys.last)
      #expect(last?.value == 8)
      #expect(visited == [2, 3, 4, 5])
      #expect(try transaction.firstEntry(in: table, .prefix([4])) == nil)
    }
  }

  @Test("removes a range and nothing beside it")
  func deleteRange() throws {
    let count = try environment.write { try $0.deleteAll(in: table, .prefix([1])) }
    #expect(count == 5)
    #expect(try keys(.all) == Array(Self.keys[5...]))
  }

  @Test(
    "takes keys of 1 to 511 bytes and refuses others before the call", arguments: [0, 1, 511, 512])
  func keySizes(size: Int) throws {
    let key = [UInt8](repeating: 9, count: size)
    if size == 1 || size == 511 {
      try environment.write { try $0.put(1, for: key, in: table) }
      #expect(try environment.read { try $0.value(of: key, in: table) } == 1)
    } else {
      let error = try #require(throws: LMDBError.self) {
        try environment.write { try $0.put(1, for: key, in: table) }
      }
      #expect(error.code == .badKeySize)
      #expect(error.description.contains("\(size) bytes"))
      let onRead = try #require(throws: LMDBError.self) {
        try environment.read { try $0.value(of: key, in: table) }
      }
      #expect(onRead.code == .badKeySize)
    }
  }

  @Test(
    "lends values of 0 bytes, a page and 64 MiB as they were stored",
    arguments: [0, 4096, 64 << 20])
  func valueSizes(size: Int) throws {
    let values = try environment.table("v", key: TextCodec.self, value: BytesCodec.self)
    let value = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      for index in 0..<size { buffer[index] = UInt8(truncatingIfNeeded: index &* 31) }
      count = size
    }
    try environment.write { try $0.put(value, for: "k", in: values) }
    try environment.read { transaction in
      let bytes = try #require(try transaction.value(of: "k", in: values))
      #expect(bytes == value)
    }
  }

  @Test("append stores behind the last key and refuses what is out of order")
  func append() throws {
    try environment.write { try $0.append(9, for: [255, 255, 1], in: table) }
    let error = try #require(throws: LMDBError.self) {
      try environment.write { try $0.append(9, for: [1], in: table) }
    }
    #expect(error.code == .keyExists)
    #expect(try environment.read { try $0.value(of: [1], in: table) } == 0)
  }

  @Test("putIfAbsent keeps what is there")
  func putIfAbsent() throws {
    let stored = try environment.write { try $0.putIfAbsent(77, for: [2], in: table) }
    #expect(!stored)
    #expect(try environment.read { try $0.value(of: [2], in: table) } == 5)
  }

  @Test("integers keep number order as keys")
  func integerOrder() throws {
    let numbers = try environment.table("n", key: UInt64Codec.self, value: UInt64Codec.self)
    let wanted: [UInt64] = [0, 1, 255, 256, 257, 1 << 40, .max]
    try environment.write { transaction in
      for number in wanted.shuffled() { try transaction.put(number, for: number, in: numbers) }
    }
    let found = try environment.read { transaction in
      var found: [UInt64] = []
      try transaction.scan(numbers) { key, _ in
        found.append(key.loadBigEndian())
        return .next
      }
      return found
    }
    #expect(found == wanted)
  }

  @Test("a name that C would cut is refused, as it would be another table's")
  func zeroInName() throws {
    let kept = try environment.table("k", key: UInt16Codec.self, value: TextCodec.self)
    try environment.write { try $0.put("kept", for: 1, in: kept) }
    for name in ["k\0other", "", "\0", String(repeating: "n", count: 512)] {
      #expect(throws: LMDBError.self, "\(name.utf8.count) bytes") {
        _ = try environment.table(name, key: UInt16Codec.self, value: TextCodec.self)
      }
    }
    let longest = try environment.table(
      String(repeating: "n", count: 511), key: UInt16Codec.self, value: TextCodec.self)
    try environment.write { try $0.put("other", for: 1, in: longest) }
    #expect(try environment.tableNames() == ["k", longest.name, "t"])
  }

  @Test("an empty prefix begins every key")
  func emptyPrefix() throws {
    let table = try environment.table("p", key: TextCodec.self, value: TextCodec.self)
    try environment.write { transaction in
      try transaction.put("1", for: "a", in: table)
      try transaction.put("2", for: "b", in: table)
    }
    let (up, down) = try environment.read { transaction in
      (
        try transaction.keys(in: table, .prefix("")),
        try transaction.keys(in: table, .encodedPrefix([]), reversed: true)
      )
    }
    #expect(up == ["a", "b"])
    #expect(down == ["b", "a"])
  }
}
