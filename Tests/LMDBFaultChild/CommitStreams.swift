import Foundation
import LMDB

/// Commits without end until it is killed, and says each commit that it was told of.
///
/// `commit PATH STREAMS`: first everything that is there is checked and said (`state STREAM LAST`,
/// then `checked ENTRIES`, or `wrong WHAT`); with 0 streams that is all. One stream writes with the
/// blocking call; more write concurrently and so share commits. Each transaction of a stream
/// stores several records, removes those of an old one and notes its own number: all or none.
struct CommitStreams {
  /// How many transactions of a stream stay; older ones are deleted.
  static let windowCount: UInt64 = 40

  let path: String
  let streamCount: Int
  let environment: Environment
  let records: Table<BytesCodec, BytesCodec>
  let lasts: Table<UInt64Codec, UInt64Codec>

  init(_ words: ArraySlice<String>) throws {
    path = try words.word(0)
    streamCount = try words.number(1)
    if access(path + "/data.mdb", F_OK) == 0 {
      let report = try Environment.checkIntegrity(at: path)
      guard report.isIntact else { throw Wrong(what: "\(report.findings)") }
    }
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 256 << 10
    environment = try Environment.open(at: path, configuration: configuration)
    records = try environment.table("records", key: BytesCodec.self, value: BytesCodec.self)
    lasts = try environment.table("lasts", key: UInt64Codec.self, value: UInt64Codec.self)
  }

  func run() throws {
    let known = try check()
    for (stream, last) in known.sorted(by: { $0.key < $1.key }) { say("state \(stream) \(last)") }
    say("checked \(try environment.read { try $0.count(of: records) })")
    switch streamCount {
    case 0: try environment.close()
    case 1:
      var number = known[0, default: 0]
      while true {
        number += 1
        try environment.write { [number] in try store(0, number, &$0) }
        say("done 0 \(number)")
      }
    default:
      try waitFor {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for stream in 0..<UInt64(streamCount) {
            group.addTask { try await commitForEver(stream, after: known[stream, default: 0]) }
          }
          try await group.waitForAll()
        }
      }
    }
  }

  private func commitForEver(_ stream: UInt64, after last: UInt64) async throws {
    var number = last
    while true {
      number += 1
      if (number &+ stream) % 5 == 3 { try await failOnce(stream, number) }
      try await environment.write { [number] in try store(stream, number, &$0) }
      say("done \(stream) \(number)")
    }
  }

  private struct Refused: Error {}

  /// A write that stores something and then fails, in the middle of the others' group.
  private func failOnce(_ stream: UInt64, _ number: UInt64) async throws {
    do {
      try await environment.write { transaction in
        try transaction.put([1, 2, 3], for: Self.key(stream, number, 999), in: records)
        throw Refused()
      }
    } catch is Refused {}
  }

  private func store(
    _ stream: UInt64, _ number: UInt64, _ transaction: inout WriteTransaction
  ) throws {
    for index in 0..<Self.recordCount(stream, number) {
      try transaction.put(
        Self.value(stream, number, index), for: Self.key(stream, number, index), in: records)
    }
    if number > Self.windowCount {
      let old = number - Self.windowCount
      let prefix = Array(Self.key(stream, old, 0).prefix(16))
      try transaction.deleteAll(in: records, .prefix(prefix))
    }
    try transaction.put(number, for: stream, in: lasts)
  }

  // MARK: What must be there

  struct Wrong: Error {
    let what: String
  }

  /// Each stream's last number, once everything was found as it must be.
  private func check() throws -> [UInt64: UInt64] {
    try environment.read { transaction in
      var known: [UInt64: UInt64] = [:]
      try transaction.scan(lasts) { key, value in
        known[key.loadBigEndian()] = try UInt64Codec.decode(value)
        return .next
      }
      var expected: [[UInt8]] = []
      for (stream, last) in known.sorted(by: { $0.key < $1.key }) {
        let first = last > Self.windowCount ? last - Self.windowCount + 1 : 1
        for number in first...last {
          for index in 0..<Self.recordCount(stream, number) {
            expected.append(Self.key(stream, number, index))
          }
        }
      }
      for isReversed in [false, true] {
        var rest = (isReversed ? expected.reversed() : expected)[...]
        try transaction.scan(records, reversed: isReversed) { key, value in
          guard let next = rest.popFirst() else { throw Wrong(what: "more records") }
          let bytes = key.copiedBytes()
          guard bytes == next else { throw Wrong(what: "\(bytes) where \(next) belongs") }
          if !isReversed {
            let stream: UInt64 = key.loadBigEndian(at: 0)
            let number: UInt64 = key.loadBigEndian(at: 8)
            let index: UInt64 = key.loadBigEndian(at: 16)
            let whole = Data(Self.value(stream, number, index))
            guard value.copiedData() == whole else { throw Wrong(what: "the value of \(next)") }
          }
          return .next
        }
        guard rest.isEmpty else { throw Wrong(what: "\(rest.count) records are missing") }
      }
      let count = try transaction.count(of: records)
      guard count == expected.count else {
        throw Wrong(what: "the count \(count) of \(expected.count)")
      }
      return known
    }
  }

  private static func hash(_ stream: UInt64, _ number: UInt64, _ index: UInt64) -> UInt64 {
    var z = (stream &* 1_000_003 &+ number) &* 0x9E37_79B9_7F4A_7C15 &+ index
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    return z ^ (z >> 31)
  }

  private static func recordCount(_ stream: UInt64, _ number: UInt64) -> UInt64 {
    1 + hash(stream, number, 1_000) % 8
  }

  private static func key(_ stream: UInt64, _ number: UInt64, _ index: UInt64) -> [UInt8] {
    var key: [UInt8] = []
    for part in [stream, number, index] {
      for shift in stride(from: 56, through: 0, by: -8) {
        key.append(UInt8(truncatingIfNeeded: part >> UInt64(shift)))
      }
    }
    return key
  }

  /// Mostly a few hundred bytes; some of several pages, and a few that make the map grow.
  private static func value(_ stream: UInt64, _ number: UInt64, _ index: UInt64) -> [UInt8] {
    let hash = hash(stream, number, index)
    let byteCount =
      switch hash % 200 {
      case 0: 200_000
      case 1..<20: Int(hash >> 8 % 9_000)
      default: Int(hash >> 8 % 400)
      }
    var value = [UInt8](repeating: UInt8(truncatingIfNeeded: hash >> 40), count: byteCount)
    for (place, byte) in key(stream, number, index).enumerated() where place < byteCount {
      value[place] = byte
    }
    return value
  }
}
