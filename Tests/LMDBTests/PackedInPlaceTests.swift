import Foundation
import LMDB
import Testing

@Suite("Records that are packed in place")
struct PackedInPlaceTests {
  private let directory: TemporaryDirectory
  private let environment: Environment
  private let table: Table<UInt64Codec, PackedRecordsCodec>

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.path)
    table = try environment.table("t", key: UInt64Codec.self, value: PackedRecordsCodec.self)
  }

  private static func record(_ number: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(number % 251), count: number % 7 == 0 ? 0 : number)
  }

  @Test("are the same bytes as collected ones", arguments: [0, 1, 2, 500])
  func same(count: Int) throws {
    let records = (0..<count).map(Self.record)
    var collected = PackedRecords()
    for record in records { collected.append(record) }
    try environment.write { [collected] transaction in
      try transaction.put(collected, for: 1, in: table)
      try transaction.put(
        recordCount: count, contentByteCount: records.map(\.count).reduce(0, +), for: 2, in: table
      ) { packer in
        for record in records { packer.append(record.span.bytes) }
      }
    }
    let stored = try environment.read { transaction in
      try [1, 2].map { try transaction.bytes(of: $0, in: table)?.copiedBytes() }
    }
    #expect(stored[0] != nil)
    #expect(stored[0] == stored[1])
  }

  @Test("are refused where no value is that large, before anything is packed")
  func tooLarge() throws {
    for (count, byteCount) in [(1, 1 << 30), (1 << 30, 0), (Int.max, 0), (0, Int.max)] {
      var isCalled = false
      let error = #expect(throws: LMDBError.self) {
        try environment.write { transaction in
          try transaction.put(
            recordCount: count, contentByteCount: byteCount, for: 1, in: table
          ) { _ in isCalled = true }
        }
      }
      #expect(error?.code == .valueTooLarge)
      #expect(!isCalled)
    }
  }

  /// Announces 2 records of 3 bytes each and packs what is given; each is a mistake.
  private static func pack(_ records: [[UInt8]]) throws {
    let directory = try TemporaryDirectory()
    let environment = try Environment.open(at: directory.path)
    let table = try environment.table(
      "t", key: UInt64Codec.self, value: PackedRecordsCodec.self)
    try environment.write { transaction in
      try transaction.put(recordCount: 2, contentByteCount: 6, for: 1, in: table) { packer in
        for record in records { packer.append(record.span.bytes) }
      }
    }
  }

  private func expect(_ sentence: String, _ result: ExitTest.Result?) {
    let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(said.contains(sentence))
  }

  @Test("trap when there are more than announced")
  func more() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { try Self.pack([[1, 2], [3, 4], [5]]) }
    expect("LMDB: more records are packed than were announced", result)
  }

  @Test("trap when their bytes are more than announced")
  func longer() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { try Self.pack([[1, 2, 3], [4, 5, 6, 7]]) }
    expect("LMDB: more records are packed than were announced", result)
  }

  @Test("trap when there are fewer than announced")
  func fewer() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { try Self.pack([[1, 2, 3]]) }
    expect("LMDB: fewer records are packed than were announced", result)
  }
}
