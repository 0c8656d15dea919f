import Foundation
import LMDB

/// Tables of each kind that the module can make, with awkward keys and values.
struct Contents {
  let bytes: Table<BytesCodec, BytesCodec>
  let numbers: Table<UInt64Codec, UInt64Codec>
  let index: MultiTable<BytesCodec, UInt64Codec>
  let words: MultiTable<UInt64Codec, TextCodec>

  static let names = ["Größe of bytes", "index", "numbers", "words"]

  init(_ environment: Environment) throws {
    bytes = try environment.table(Self.names[0], key: BytesCodec.self, value: BytesCodec.self)
    index = try environment.multiTable("index", key: BytesCodec.self, value: UInt64Codec.self)
    numbers = try environment.table("numbers", key: UInt64Codec.self, value: UInt64Codec.self)
    words = try environment.multiTable("words", key: UInt64Codec.self, value: TextCodec.self)
  }

  /// Keys with zeros, backslashes, the largest and the longest bytes; values of 0 bytes, a page and more.
  func fill(_ transaction: inout WriteTransaction) throws {
    let keys: [[UInt8]] = [
      [0], [0, 0], [0, 1], [92, 48, 48], [10], [255], [255, 255], Array("ключ".utf8),
      [UInt8](repeating: 255, count: 511), Array(0...255),
    ]
    for (number, key) in keys.enumerated() {
      let size = [0, 1, 4_096, 100_000, 2_022, 2_023][number % 6]
      try transaction.put(
        (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }, for: key, in: bytes)
    }
    for number in 0..<UInt64(2_000) {
      try transaction.put(number &* 0x9E37_79B9_7F4A_7C15, for: number &* number, in: numbers)
    }
    for number in 0..<UInt64(1_500) {
      try transaction.insert(number, for: [0, 255], in: index)
      try transaction.insert(number &* 3, for: [1, UInt8(number % 100)], in: index)
      try transaction.insert("word \(number)\u{0}", for: number % 7, in: words)
      try transaction.insert(
        String(repeating: "ä", count: Int(number % 250) + 1), for: 99, in: words)
    }
  }

  /// Every key and value of each table, in order, in hexadecimal.
  func all(_ environment: Environment) throws -> [String: [[String]]] {
    try environment.read { transaction in
      var all: [String: [[String]]] = [:]
      func add(_ name: String, _ key: RawSpan, _ value: RawSpan) -> ScanStep {
        all[name, default: []].append([hexadecimal(key), hexadecimal(value)])
        return .next
      }
      try transaction.scan(bytes) { add(Self.names[0], $0, $1) }
      try transaction.scan(index) { add("index", $0, $1) }
      try transaction.scan(numbers) { add("numbers", $0, $1) }
      try transaction.scan(words) { add("words", $0, $1) }
      return all
    }
  }
}

func hexadecimal(_ span: RawSpan) -> String {
  let digits = Array("0123456789abcdef".utf8)
  return String(
    decoding: span.copiedBytes().flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
    as: UTF8.self)
}
