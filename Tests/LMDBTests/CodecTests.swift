import Foundation
import LMDB
import Testing

@Suite("A key codec")
struct KeyCodecTests {
  /// The stored bytes.
  static func bytes<K: KeyCodec>(_ codec: K.Type, _ key: K.Key) -> [UInt8] {
    K.withEncodedKey(key) { $0.copiedBytes() }
  }

  /// Order of bytes as LMDB has it.
  static func isAscending(_ keys: [[UInt8]]) -> Bool {
    zip(keys, keys.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) }
  }

  @Test("keeps the order of signed integers in their bytes")
  func signed() throws {
    let keys: [Int64] = [.min, .min + 1, -65_537, -256, -255, -2, -1, 0, 1, 255, 256, .max]
    let stored = keys.map { Self.bytes(Int64Codec.self, $0) }
    #expect(Self.isAscending(stored))
    #expect(try stored.map { bytes in try Int64Codec.decode(bytes.span.bytes) } == keys)
    let small: [Int16] = [.min, -256, -1, 0, 1, 255, 256, .max]
    #expect(Self.isAscending(small.map { Self.bytes(Int16Codec.self, $0) }))
    #expect(Self.bytes(Int8Codec.self, -1) == [0x7F])
    #expect(Self.bytes(Int8Codec.self, 0) == [0x80])
  }

  @Test("keeps the order of unsigned integers in their bytes, whatever their width")
  func unsigned() throws {
    #expect(Self.bytes(UInt8Codec.self, 7) == [7])
    #expect(Self.bytes(UInt16Codec.self, 258) == [1, 2])
    #expect(Self.bytes(UInt32Codec.self, 0x0102_0304) == [1, 2, 3, 4])
    #expect(Self.bytes(UInt64Codec.self, 1) == [0, 0, 0, 0, 0, 0, 0, 1])
    let keys: [UInt64] = [0, 1, 255, 256, 257, 65_535, 65_536, .max]
    #expect(Self.isAscending(keys.map { Self.bytes(UInt64Codec.self, $0) }))
  }

  @Test("keeps the total order of floating-point numbers")
  func floats() throws {
    let keys: [Double] = [
      -.infinity, -.greatestFiniteMagnitude, -2, -1, -.leastNonzeroMagnitude, -0.0, 0,
      .leastNonzeroMagnitude, 0.5, 1, 2, .greatestFiniteMagnitude, .infinity, .nan,
    ]
    let stored = keys.map { Self.bytes(DoubleCodec.self, $0) }
    #expect(Self.isAscending(stored))
    let back = try stored.map { try DoubleCodec.decode($0.span.bytes).bitPattern }
    #expect(back == keys.map(\.bitPattern))
  }

  @Test("reads a UUID from whatever holds its bytes, optimised or not")
  func uuids() throws {
    for number in UInt64(0)..<100 {
      let halves = [number &* 0x9E37_79B9_7F4A_7C15, ~number]
      let uuid = halves.span.bytes.loadUUID()
      let stored = Self.bytes(UUIDCodec.self, uuid)
      #expect(stored == halves.span.bytes.copiedBytes())
      #expect(try UUIDCodec.decode(stored.span.bytes) == uuid)
    }
  }

  @Test("keeps the order of pairs, whatever the parts hold")
  func pairs() throws {
    typealias Codec = PairCodec<TextCodec, Int32Codec>
    let texts = ["", "\0", "\0\0", "\0a", "a", "a\0", "a\0\u{1}", "aa", "b", "\u{FF}", "é"]
    var keys: [(String, Int32)] = []
    for text in texts.sorted(by: { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }) {
      for number in [Int32.min, -1, 0, 1, .max] { keys.append((text, number)) }
    }
    let stored = keys.map { Self.bytes(Codec.self, $0) }
    #expect(Self.isAscending(stored))
    for (key, bytes) in zip(keys, stored) {
      let back = try Codec.decode(bytes.span.bytes)
      #expect(back == key)
    }
  }

  @Test("keeps the order of triples and finds all that share the first parts")
  func triples() throws {
    typealias Codec = PairCodec<UInt16Codec, PairCodec<BytesCodec, UUIDCodec>>
    let directory = try TemporaryDirectory()
    let environment = try Environment.open(at: directory.file("env"))
    let table = try environment.table("t", key: Codec.self, value: UInt64Codec.self)
    let uuids = (0..<3).map { _ in UUID() }
    try environment.write { transaction in
      for number in UInt16(0)..<4 {
        for bytes in [[], [0], [0, 0], [255], [1, 0, 255]] as [[UInt8]] {
          for uuid in uuids {
            try transaction.put(UInt64(number), for: (number, (bytes, uuid)), in: table)
          }
        }
      }
    }
    let found = try environment.read { transaction in
      var found: [UInt16] = []
      try transaction.scan(table, Codec.range(first: 2)) { key, _ in
        found.append(try Codec.decode(key).0)
        return .next
      }
      return found
    }
    #expect(found == [UInt16](repeating: 2, count: 15))
  }

  @Test(
    "refuses bytes that are no such key",
    arguments: [[], [0], [97], [97, 0], [97, 0, 1, 0, 0, 0, 0], [97, 0, 0, 1, 2, 3]] as [[UInt8]])
  func refuses(bytes: [UInt8]) {
    let error = #expect(throws: LMDBError.self) {
      try PairCodec<TextCodec, Int32Codec>.decode(bytes.span.bytes)
    }
    #expect(error?.code == .badForm)
    #expect(throws: LMDBError.self) { try UInt64Codec.decode(bytes.span.bytes) }
    #expect(throws: LMDBError.self) { try UUIDCodec.decode(bytes.span.bytes) }
  }

  @Test(
    "keys of 511 bytes are stored, others refused by every call", arguments: [0, 1, 511, 512, 600])
  func lengths(count: Int) throws {
    let directory = try TemporaryDirectory()
    let environment = try Environment.open(at: directory.file("env"))
    let bytes = try environment.table("b", key: BytesCodec.self, value: BytesCodec.self)
    let texts = try environment.table("t", key: TextCodec.self, value: BytesCodec.self)
    let key = [UInt8](repeating: 97, count: count)
    let text = String(repeating: "a", count: count)
    let isStored = (1...511).contains(count)
    func code(_ body: () throws -> Void) -> LMDBError.Code? {
      do {
        try body()
        return nil
      } catch let error as LMDBError {
        return error.code
      } catch {
        return .other
      }
    }
    let wanted: LMDBError.Code? = isStored ? nil : .badKeySize
    #expect(code { try environment.write { try $0.put([1], for: key, in: bytes) } } == wanted)
    #expect(code { try environment.write { try $0.put([1], for: text, in: texts) } } == wanted)
    #expect(code { try environment.read { _ = try $0.value(of: key, in: bytes) } } == wanted)
    #expect(code { try environment.read { _ = try $0.contains(text, in: texts) } } == wanted)
    #expect(
      code { try environment.read { try $0.scan(bytes, .from(key)) { _, _ in .next } } } == wanted)
    #expect(
      code {
        try environment.read { transaction in
          var cursor = try transaction.cursor(in: texts)
          _ = try cursor.seek(to: text)
        }
      } == wanted)
    #expect(code { _ = try environment.write { try $0.delete(key, in: bytes) } } == wanted)
    let found = try isStored ? environment.read { try $0.value(of: text, in: texts) } : [1]
    #expect(found == [1])
  }
}

@Suite("A value codec")
struct ValueCodecTests {
  let directory: TemporaryDirectory
  let environment: Environment

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
  }

  @Test("decodes later")
  func lazy() throws {
    let table = try environment.table(
      "t", key: UInt64Codec.self, value: LazyCodec<TextCodec>.self)
    try environment.write { transaction in
      try transaction.put(LazyCodec<TextCodec>.Value("later"), for: 1, in: table)
      try transaction.put(bytes: ([0xFF] as [UInt8]).span.bytes, for: 2, in: table)
    }
    let (kept, viewed, failed) = try environment.read { transaction in
      let kept = try transaction.value(of: 1, in: table)
      let viewed = try transaction.view(of: 1, in: table)?.decoded()
      // Bytes that are no text are an error only when they are asked for.
      let bad = try transaction.view(of: 2, in: table)
      var failed = false
      do { _ = try bad?.decoded() } catch { failed = (error as? LMDBError)?.code == .badForm }
      return (kept, viewed, failed)
    }
    #expect(try kept?.decoded() == "later")
    #expect(viewed == "later")
    #expect(failed)
  }

  @Test("packs many records into one value and lends them in place", arguments: [0, 1, 500])
  func packed(count: Int) throws {
    let table = try environment.table("t", key: UInt64Codec.self, value: PackedRecordsCodec.self)
    var records = PackedRecords()
    func record(_ number: Int) -> [UInt8] {
      [UInt8](repeating: UInt8(number % 251), count: number % 7 == 0 ? 0 : number)
    }
    for number in 0..<count { records.append(record(number)) }
    let written = records
    try environment.write { try $0.put(written, for: 1, in: table) }
    records.removeAll()
    #expect(records.count == 0)
    let (size, isSame, decoded) = try environment.read { transaction in
      guard let view = try transaction.view(of: 1, in: table) else { return (-1, false, -1) }
      var isSame = true
      for index in 0..<view.count {
        if try view.record(at: index).copiedBytes() != record(index) { isSame = false }
      }
      var next = 0
      try view.forEach { bytes in
        if bytes.copiedBytes() != record(next) { isSame = false }
        next += 1
      }
      if next != count { isSame = false }
      return (view.count, isSame, try transaction.value(of: 1, in: table)?.count ?? -1)
    }
    #expect(size == count)
    #expect(isSame)
    #expect(decoded == count)
  }

  @Test("refuses bytes that are no packed records")
  func packedDamaged() throws {
    var records = PackedRecords()
    for number in 0..<20 { records.append([UInt8](repeating: 1, count: number)) }
    let whole = try PackedRecordsCodec.withEncoded(records) { $0.copiedBytes() }
    #expect(throws: Never.self) { try PackedRecordsCodec.decode(whole.span.bytes) }
    for count in 0..<whole.count {
      let error = #expect(throws: LMDBError.self) {
        let part = Array(whole[..<count])
        return try PackedRecordsCodec.decode(part.span.bytes)
      }
      #expect(error?.code == .badForm)
    }
    // Ends that go backwards or beyond the value.
    for place in 0..<20 {
      var bytes = whole
      bytes[4 + 4 * place + 2] ^= 0x40
      #expect(throws: LMDBError.self) { try PackedRecordsCodec.decode(bytes.span.bytes) }
    }
  }

  private struct Note: Codable, Equatable {
    var title: String
    var weight: Double
  }

  @Test("stores Codable values as JSON, and says which could not be coded without quoting them")
  func json() throws {
    let table = try environment.table("t", key: TextCodec.self, value: JSONCodec<Note>.self)
    let note = Note(title: "a/b", weight: 0.5)
    try environment.write { transaction in
      try transaction.put(note, for: "good", in: table)
      try transaction.put(bytes: Array("{}".utf8).span.bytes, for: "bad", in: table)
    }
    let (good, raw) = try environment.read { transaction in
      (
        try transaction.value(of: "good", in: table),
        try transaction.bytes(of: "good", in: table)?.copiedBytes() ?? []
      )
    }
    #expect(good == note)
    #expect(String(decoding: raw, as: UTF8.self) == #"{"title":"a/b","weight":0.5}"#)
    let decoding = #expect(throws: LMDBError.self) {
      try environment.read { _ = try $0.value(of: "bad", in: table) }
    }
    #expect(decoding?.code == .badForm)
    let encoding = #expect(throws: LMDBError.self) {
      try environment.write { transaction in
        try transaction.put(Note(title: "secret", weight: .nan), for: "nan", in: table)
      }
    }
    #expect(encoding?.code == .badForm)
    #expect(encoding?.description.contains("secret") == false)
  }

  @Test("keeps a set of keys, and bytes of one length")
  func setsAndFixedBytes() throws {
    let set = try environment.table(
      "s", key: InlineBytesCodec<4>.self, value: EmptyCodec.self)
    let hashes = try environment.table(
      "h", key: UInt8Codec.self, value: InlineBytesCodec<3>.self)
    try environment.write { transaction in
      try transaction.put((), for: [1, 2, 3, 4], in: set)
      try transaction.put([7, 8, 9], for: 1, in: hashes)
    }
    let (isIn, isOut, last) = try environment.read { transaction in
      (
        try transaction.contains([1, 2, 3, 4], in: set),
        try transaction.contains([1, 2, 3, 5], in: set),
        try transaction.value(of: 1, in: hashes)?[2]
      )
    }
    #expect(isIn)
    #expect(!isOut)
    #expect(last == 9)
    #expect(throws: LMDBError.self) {
      try InlineBytesCodec<3>.decode(([1, 2] as [UInt8]).span.bytes)
    }
    #expect(throws: LMDBError.self) { try EmptyCodec.decode(([1] as [UInt8]).span.bytes) }
  }

  @Test("fills a value in place, and leaves nothing unfilled behind")
  func reserved() throws {
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    try environment.write { transaction in
      try transaction.put(byteCount: 5_000, for: 1, in: table) { output in
        for number in 0..<100 { output.append(UInt8(number), as: UInt8.self) }
      }
      try transaction.put(byteCount: 0, for: 2, in: table) { _ in }
      try transaction.put(byteCount: 3, for: 3, in: table) { output in
        for number in 1...3 { output.append(UInt8(number), as: UInt8.self) }
      }
    }
    let values = try environment.read { transaction in
      try (UInt64(1)...3).map { try transaction.value(of: $0, in: table) }
    }
    #expect(values[0] == (0..<100).map { UInt8($0) } + [UInt8](repeating: 0, count: 4_900))
    #expect(values[1] == [])
    #expect(values[2] == [1, 2, 3])
  }

  @Test("stores a batch through one cursor as it stores one by one, across several tables")
  func batches() throws {
    let tables = try (0..<6).map {
      try environment.table("t\($0)", key: UInt64Codec.self, value: UInt64Codec.self)
    }
    try environment.write { transaction in
      for number in UInt64(0)..<3_000 {
        let key = number &* 2_654_435_761 % 3_001
        try transaction.put(number, for: key, in: tables[Int(number % 6)])
        if number % 5 == 0 { try transaction.delete(key, in: tables[Int(number % 6)]) }
        if number == 1_500 { try transaction.deleteAll(in: tables[1]) }
      }
    }
    var wanted = [[UInt64: UInt64]](repeating: [:], count: 6)
    for number in UInt64(0)..<3_000 {
      let key = number &* 2_654_435_761 % 3_001
      wanted[Int(number % 6)][key] = number % 5 == 0 ? nil : number
      if number == 1_500 { wanted[1] = [:] }
    }
    for (table, wanted) in zip(tables, wanted) {
      let found = try environment.read { transaction in
        var found: [UInt64: UInt64] = [:]
        try transaction.scan(table) { key, value in
          found[try UInt64Codec.decode(key)] = try UInt64Codec.decode(value)
          return .next
        }
        return found
      }
      #expect(found == wanted)
    }
  }
}
