import Foundation
import LMDB
import Testing

/// A point in time to the millisecond; byte order is time order.
enum MomentCodec: FixedKeyCodec {
  static var byteCount: Int { 8 }

  static func encode(_ key: Date, into buffer: inout KeyBuffer) {
    Int64Codec.encode(Int64((key.timeIntervalSince1970 * 1_000).rounded()), into: &buffer)
  }

  static func decode(_ bytes: RawSpan) throws(LMDBError) -> Date {
    Date(timeIntervalSince1970: Double(try Int64Codec.decode(bytes)) / 1_000)
  }
}

@Suite("The examples of Choosing keys")
struct ChoosingKeysTests {
  let directory: TemporaryDirectory
  let environment: Environment

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("environment"))
  }

  @Test("ranges are those of the values")
  func ranges() throws {
    let names = try environment.table("names", key: TextCodec.self, value: UInt64Codec.self)
    try environment.write { transaction in
      for (number, name) in ["Ada", "Ben", "Bertha", "Carl"].enumerated() {
        try transaction.put(UInt64(number), for: name, in: names)
      }
    }
    try environment.read { transaction in
      let all = try transaction.keys(in: names)
      let withB = try transaction.keys(in: names, .prefix("B"))
      let fromBen = try transaction.keys(in: names, .from("Ben"), limit: 2)
      let behindBen = try transaction.keys(in: names, .after("Ben"))
      let beforeBen = try transaction.keys(in: names, .before("Ben"))
      let newestFirst = try transaction.keys(in: names, .upThrough("Bertha"), reversed: true)

      #expect(all == ["Ada", "Ben", "Bertha", "Carl"])
      #expect(withB == ["Ben", "Bertha"])
      #expect(fromBen == ["Ben", "Bertha"])
      #expect(behindBen == ["Bertha", "Carl"])
      #expect(beforeBen == ["Ada"])
      #expect(newestFirst == ["Bertha", "Ben", "Ada"])
    }
  }

  @Test("a composite key is one range per first part")
  func composite() async throws {
    typealias RoomAndNumber = PairCodec<TextCodec, UInt64Codec>
    let messages = try environment.table(
      "messages", key: RoomAndNumber.self, value: TextCodec.self)

    try await environment.write { transaction in
      try transaction.put("Hello", for: ("kitchen", 1), in: messages)
      try transaction.put("Who has the key?", for: ("kitchen", 2), in: messages)
      try transaction.put("Rain", for: ("garden", 1), in: messages)
    }
    let latest = try environment.read { transaction in
      try transaction.firstEntry(
        in: messages, RoomAndNumber.range(first: "kitchen"), reversed: true)?.value
    }
    #expect(latest == "Who has the key?")
  }

  @Test("a codec of one's own is ten lines")
  func ownCodec() throws {
    let log = try environment.table(
      "log", key: PairCodec<MomentCodec, UInt32Codec>.self, value: TextCodec.self)
    let noon = Date(timeIntervalSince1970: 1_800_000_000)
    try environment.write { transaction in
      try transaction.put("second", for: (noon, 2), in: log)
      try transaction.put("first", for: (noon, 1), in: log)
      try transaction.put("before 1970", for: (Date(timeIntervalSince1970: -1), 1), in: log)
    }
    let lines = try environment.read { try $0.entries(in: log) }
    #expect(lines.map(\.value) == ["before 1970", "first", "second"])
    #expect(lines.last?.key.0 == noon)
  }

  @Test("keys that come in order are appended")
  func append() throws {
    let events = try environment.table("events", key: UInt64Codec.self, value: TextCodec.self)
    for text in ["one", "two"] {
      try environment.write { transaction in
        let last = try transaction.firstKey(in: events, reversed: true) ?? 0
        try transaction.append(text, for: last + 1, in: events)
      }
    }
    #expect(try environment.read { try $0.entries(in: events).map(\.value) } == ["one", "two"])
  }

  @Test("an index is kept in the same transaction as what it points to")
  func index() async throws {
    let notes = try environment.table("notes", key: UInt64Codec.self, value: TextCodec.self)
    let byTag = try environment.multiTable("byTag", key: TextCodec.self, value: UInt64Codec.self)

    try await environment.write { transaction in
      try transaction.put("Buy bread", for: 7, in: notes)
      try transaction.insert(7, for: "errand", in: byTag)
      try transaction.put("Call Ada", for: 9, in: notes)
      try transaction.insert(9, for: "errand", in: byTag)
    }
    let errands = try environment.read { transaction in
      try transaction.values(of: "errand", in: byTag).compactMap { number in
        try transaction.value(of: number, in: notes)
      }
    }
    try await environment.write { transaction in
      try transaction.delete(7, in: notes)
      try transaction.delete(7, for: "errand", in: byTag)
    }

    #expect(errands == ["Buy bread", "Call Ada"])
    #expect(try environment.read { try $0.values(of: "errand", in: byTag) } == [9])
  }

  @Test("what is written and read together is one value")
  func packed() async throws {
    let pages = try environment.table(
      "pages", key: UInt64Codec.self, value: PackedRecordsCodec.self)
    let downloaded: [[UInt8]] = [[1], [2, 2], []]

    var page = PackedRecords()
    for record in downloaded { page.append(record) }
    try await environment.write { [page] in try $0.put(page, for: 1, in: pages) }

    let sizes = try environment.read { transaction in
      var sizes: [Int] = []
      guard let page = try transaction.view(of: 1, in: pages) else { return sizes }
      try page.forEach { record in sizes.append(record.byteCount) }
      return sizes
    }
    #expect(sizes == [1, 2, 0])
  }

  @Test("a value that just fits a page costs half of one that just does not")
  func inlineCliff() throws {
    // The numbers that the page gives: 8 + key + value <= 2,038.
    func pages(valueByteCount: Int) throws -> Int {
      let table = try environment.table(
        "v\(valueByteCount)", key: UInt64Codec.self, value: BytesCodec.self)
      let value = [UInt8](repeating: 1, count: valueByteCount)
      try environment.write { transaction in
        for key in UInt64(0)..<200 { try transaction.append(value, for: key, in: table) }
      }
      let statistics = try environment.detailedStatistics()
      return try #require(statistics.tables[table.name]).pageCount
    }
    let (inline, outside) = (try pages(valueByteCount: 2_022), try pages(valueByteCount: 2_023))
    #expect(inline < 105)
    #expect(outside > 200)
  }
}
