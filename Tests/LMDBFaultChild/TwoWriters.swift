import Foundation
import LMDB

/// `count PATH FIRST STEP COUNT`: COUNT transactions, each storing one record of its own and adding
/// one to the number that every writer shares; says `ok` at the end.
struct TwoWriters {
  let path: String
  let first: UInt64
  let step: UInt64
  let count: UInt64

  init(_ words: ArraySlice<String>) throws {
    path = try words.word(0)
    first = UInt64(try words.number(1))
    step = UInt64(try words.number(2))
    count = UInt64(try words.number(3))
  }

  func run() throws {
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 256 << 10
    let environment = try Environment.open(at: path, configuration: configuration)
    let records = try environment.table("records", key: UInt64Codec.self, value: BytesCodec.self)
    let sums = try environment.table("sums", key: TextCodec.self, value: UInt64Codec.self)
    say("ready")
    _ = readLine()
    for index in 0..<count {
      let key = first + index * step
      let value = [UInt8](repeating: UInt8(truncatingIfNeeded: key), count: Int(key % 1_500))
      try environment.write { transaction in
        try transaction.put(value, for: key, in: records)
        let sum = try transaction.value(of: "sum", in: sums) ?? 0
        try transaction.put(sum + 1, for: "sum", in: sums)
      }
      if index % 500 == 0 {
        // Its own last record is there at once, whatever the other process does to the map.
        let length = try environment.read { try $0.bytes(of: key, in: records)?.byteCount }
        guard length == value.count else { throw CommitStreams.Wrong(what: "own write") }
      }
    }
    say("ok \(environment.mapByteCount)")
  }
}
