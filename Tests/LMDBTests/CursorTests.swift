import Foundation
import LMDB
import Testing

@Suite("A cursor")
struct CursorTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let table: Table<UInt32Codec, TextCodec>

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("env"))
    table = try environment.table("t", key: UInt32Codec.self, value: TextCodec.self)
    try environment.write { [table] transaction in
      for number in UInt32(0)..<1_000 {
        try transaction.put("value \(number * 2)", for: number * 2, in: table)
      }
    }
  }

  @Test("walks a table forwards and backwards")
  func walks() throws {
    let (up, down) = try environment.read { transaction in
      var cursor = try transaction.cursor(in: table)
      var up: [UInt32] = []
      while try cursor.next() {
        up.append(try cursor.key())
        guard try cursor.value() == "value \(up.last!)" else { return (up, up) }
      }
      var down: [UInt32] = []
      var back = try transaction.cursor(in: table)
      while try back.previous() { down.append(try back.key()) }
      return (up, down)
    }
    #expect(up == (0..<1_000).map { $0 * 2 })
    #expect(down == up.reversed())
  }

  @Test("seeks a key, and the first at or behind one")
  func seeks() throws {
    let found = try environment.read { transaction in
      var cursor = try transaction.cursor(in: table)
      var found: [Int] = []
      func stand(_ isThere: Bool, _ key: UInt32) -> Int { isThere ? Int(key) : -1 }
      var isThere = try cursor.seek(to: 500)
      found.append(stand(isThere, isThere ? try cursor.key() : 0))
      isThere = try cursor.seek(to: 501)
      found.append(stand(isThere, isThere ? try cursor.key() : 0))
      isThere = try cursor.seek(atOrAfter: 501)
      found.append(stand(isThere, isThere ? try cursor.key() : 0))
      isThere = try cursor.previous()
      found.append(stand(isThere, isThere ? try cursor.key() : 0))
      isThere = try cursor.seek(atOrAfter: 1_999)
      found.append(stand(isThere, isThere ? try cursor.key() : 0))
      isThere = try cursor.last()
      found.append(stand(isThere, isThere ? try cursor.key() : 0))
      isThere = try cursor.next()
      found.append(stand(isThere, isThere ? try cursor.key() : 0))
      isThere = try cursor.first()
      found.append(stand(isThere, isThere ? try cursor.key() : 0))
      return found
    }
    #expect(found == [500, -1, 502, 500, -1, 1_998, -1, 0])
  }

  @Test("deletes and replaces where it stands, and goes on to the neighbours")
  func changes() throws {
    let (first, second) = try environment.write { [table] transaction in
      var first: [UInt32] = []
      var second: [String] = []
      do {
        var cursor = try transaction.writeCursor(in: table)
        while try cursor.next() {
          let key = try cursor.key()
          first.append(key)
          if key % 4 == 0 {
            try cursor.delete()
          } else if key % 6 == 0 {
            try cursor.replace(with: String(repeating: "long ", count: 300))
            second.append(try cursor.value())
          }
        }
      }
      return (first, second)
    }
    #expect(first == (0..<1_000).map { $0 * 2 })
    #expect(second.allSatisfy { $0 == String(repeating: "long ", count: 300) })
    let left = try environment.read { transaction in
      var left: [UInt32: String] = [:]
      try transaction.scan(table) { key, value in
        left[try UInt32Codec.decode(key)] = try TextCodec.decode(value)
        return .next
      }
      return left
    }
    let wanted = (0..<1_000).map { UInt32($0 * 2) }.filter { $0 % 4 != 0 }
    #expect(left.keys.sorted() == wanted)
    for key in wanted {
      #expect(
        left[key] == (key % 6 == 0 ? String(repeating: "long ", count: 300) : "value \(key)"))
    }
  }

  @Test("steps back to the entry before the one it deleted")
  func deletesBackwards() throws {
    let seen = try environment.write { [table] transaction in
      var seen: [UInt32] = []
      var cursor = try transaction.writeCursor(in: table)
      while try cursor.previous() {
        seen.append(try cursor.key())
        try cursor.delete()
      }
      return seen
    }
    #expect(seen == (0..<1_000).map { $0 * 2 }.reversed())
    let count = try environment.read { try $0.count(of: table) }
    #expect(count == 0)
  }

  @Test("traps, as its transaction does, on another thread than its own", arguments: [0, 1, 2])
  func trapsElsewhere(kind: Int) async {
    await #expect(processExitsWith: .failure) { [kind = kind as Int] in
      let directory = try TemporaryDirectory()
      let environment = try Environment.open(at: directory.file("env"))
      let table = try environment.table("t", key: UInt32Codec.self, value: TextCodec.self)
      try await environment.write { [table] transaction in
        try transaction.put("one", for: 1, in: table)
        onAnotherThread {
          switch kind {
          case 0: _ = try? transaction.value(of: 1, in: table)
          case 1: _ = try? transaction.put("two", for: 2, in: table)
          default: _ = try? transaction.count(of: table)
          }
        }
      }
    }
  }

  @Test("deletes what a closure picks while it iterates", arguments: [1, 2, 3, 7, 1_000])
  func deletesWhere(step: UInt32) throws {
    let count = try environment.write { [table] transaction in
      try transaction.deleteAll(in: table, .from(100)) { key, _ in
        try UInt32Codec.decode(key) / 2 % step == 0
      }
    }
    let wanted = (0..<1_000).map { UInt32($0 * 2) }.filter { $0 < 100 || $0 / 2 % step != 0 }
    #expect(count == 1_000 - wanted.count)
    let left = try environment.read { transaction in
      var left: [UInt32] = []
      try transaction.scan(table) { key, _ in
        left.append(try UInt32Codec.decode(key))
        return .next
      }
      return left
    }
    #expect(left == wanted)
  }

  @Test("visits no more than the limit", arguments: [0, 1, 17, 999, 1_000, 5_000])
  func limits(limit: Int) throws {
    for reversed in [false, true] {
      let keys = try environment.read { transaction in
        var keys: [UInt32] = []
        try transaction.scan(table, reversed: reversed, limit: limit) { key, _ in
          keys.append(try UInt32Codec.decode(key))
          return .next
        }
        return keys
      }
      let all = (0..<1_000).map { UInt32($0 * 2) }
      #expect(keys == Array((reversed ? all.reversed() : all).prefix(limit)))
    }
  }
}

/// Runs `body` on another thread and waits, which the compiler only allows by looking away; as
/// `DispatchQueue.main.sync` does without.
private func onAnotherThread(_ body: () -> Void) {
  withoutActuallyEscaping(body) { body in
    nonisolated(unsafe) let run = body
    let done = DispatchSemaphore(value: 0)
    Thread {
      run()
      done.signal()
    }.start()
    done.wait()
  }
}

@Suite("Prefetch")
struct PrefetchTests {
  /// Values within a page, on pages of their own, and none; keys in order and shuffled.
  @Test("changes nothing about what a scan visits", arguments: [false, true], [0, 40, 350, 3_000])
  func sameEntries(shuffled: Bool, size: Int) throws {
    let directory = try TemporaryDirectory()
    let environment = try Environment.open(at: directory.file("env"))
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    let count: UInt64 = 4_000
    let keys = shuffled ? (0..<count).map { $0 &* 1_367 % count } : Array(0..<count)
    try environment.write { transaction in
      for key in keys {
        let value = [UInt8](repeating: UInt8(truncatingIfNeeded: key), count: size)
        try transaction.put(value, for: key, in: table)
      }
    }
    func scan(_ range: KeyRange<UInt64>, _ prefetch: ScanPrefetch) throws -> [UInt64] {
      try environment.read { transaction in
        var seen: [UInt64] = []
        try transaction.scan(table, range, prefetch: prefetch) { key, value in
          let key = try UInt64Codec.decode(key)
          let bytes = value.copiedBytes()
          if bytes.count == size, bytes.allSatisfy({ $0 == UInt8(truncatingIfNeeded: key) }) {
            seen.append(key)
          }
          return .next
        }
        return seen
      }
    }
    #expect(try scan(.all, .records) == Array(0..<count))
    #expect(try scan(.after(1_999), .records) == Array(2_000..<count))
    #expect(try scan(.between(100, 3_000), .records) == Array(100..<3_000))
    // A write transaction's own pages lie outside the map.
    let within = try environment.write { transaction in
      try transaction.put([UInt8](repeating: 7, count: size), for: 7, in: table)
      var count: UInt64 = 0
      try transaction.scan(table, prefetch: .records) { _, _ in
        count += 1
        return .next
      }
      return count
    }
    #expect(within == count)
  }
}
