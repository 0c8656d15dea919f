import LMDB
import Testing

@Suite("The examples of Reading fast")
struct ReadingFastTests {
  let directory: TemporaryDirectory
  let environment: Environment
  let samples: Table<UInt64Codec, BytesCodec>

  init() throws {
    directory = try TemporaryDirectory()
    environment = try Environment.open(at: directory.file("environment"))
    samples = try environment.table("samples", key: UInt64Codec.self, value: BytesCodec.self)
    try environment.write { [samples] transaction in
      for number in UInt64(0)..<100 {
        try transaction.append([UInt8](repeating: 1, count: 16), for: number, in: samples)
      }
    }
  }

  @Test("lent bytes are read in place")
  func lent() throws {
    let checksum = try environment.read { transaction in
      var checksum: UInt64 = 0
      if let bytes = try transaction.bytes(of: 7, in: samples) {
        checksum = bytes.loadBigEndian(UInt64.self) ^ bytes.loadBigEndian(UInt64.self, at: 8)
      }
      return checksum
    }
    let copy = try environment.read { try $0.value(of: 7, in: samples) }

    #expect(checksum == 0)
    #expect(copy?.count == 16)
  }

  @Test("a scan decides by keys and decodes little")
  func scan() throws {
    let byteCount = try environment.read { transaction in
      var byteCount = 0
      try transaction.scan(samples, .from(50), prefetch: .records) { key, value in
        if try UInt64Codec.decode(key) % 2 == 0 { byteCount += value.byteCount }
        return byteCount < 160 ? .next : .stop
      }
      return byteCount
    }
    #expect(byteCount == 160)
  }

  @Test("a lazy codec decodes on demand")
  func lazy() throws {
    struct Person: Codable { var name: String }
    let people = try environment.table(
      "people", key: TextCodec.self, value: LazyCodec<JSONCodec<Person>>.self)
    try environment.write { transaction in
      try transaction.put(.init(Person(name: "Ada")), for: "a", in: people)
      try transaction.put(.init(Person(name: "Ben")), for: "b", in: people)
    }
    let name = try environment.read { transaction in
      try transaction.view(of: "b", in: people)?.decoded().name
    }
    #expect(name == "Ben")
  }

  @Test("pages of a list continue behind their last key, each in a snapshot of its own")
  func paging() throws {
    /// The next page, and where the one after it begins.
    func page(after last: UInt64?) throws -> [(key: UInt64, value: [UInt8])] {
      try environment.read { transaction in
        try transaction.entries(in: samples, last.map { .after($0) } ?? .all, limit: 40)
      }
    }
    var sizes: [Int] = []
    var last: UInt64?
    while true {
      let page = try page(after: last)
      guard let end = page.last else { break }
      sizes.append(page.count)
      last = end.key
    }
    #expect(sizes == [40, 40, 20])
  }

  @Test("a cursor finds keys that lie close together with few steps")
  func manyKeys() throws {
    let wanted: [UInt64] = [80, 3, 5, 4, 1_000]
    let found = try environment.read { transaction in
      var found = 0
      var cursor = try transaction.cursor(in: samples)
      for key in wanted.sorted() where try cursor.seek(to: key) {
        found += cursor.valueBytes.byteCount
      }
      return found
    }
    #expect(found == 4 * 16)
  }

  @Test("two cursors walk two tables side by side")
  func merge() throws {
    let marks = try environment.table("marks", key: UInt64Codec.self, value: TextCodec.self)
    try environment.write { transaction in
      for key: UInt64 in [3, 40, 200] { try transaction.put("x", for: key, in: marks) }
    }
    let marked = try environment.read { transaction in
      var marked: [UInt64] = []
      var sample = try transaction.cursor(in: samples)
      var mark = try transaction.cursor(in: marks)
      while try mark.next() {
        let key = try mark.key()
        guard try sample.seek(atOrAfter: key) else { break }
        if try sample.key() == key { marked.append(key) }
      }
      return marked
    }
    #expect(marked == [3, 40])
  }

  @Test("a value lent by a cursor ends where the cursor moves")
  func cursorScope() throws {
    let total = try environment.read { transaction in
      var total = 0
      var cursor = try transaction.cursor(in: samples)
      while try cursor.next() {
        do {
          let value = cursor.valueBytes
          total += value.byteCount
        }
        guard try cursor.next() else { break }
      }
      return total
    }
    #expect(total == 50 * 16)
  }

  @Test("a file that was not read lately is asked for at once")
  func warmUp() throws {
    let byteCount = try environment.warmUp()
    #expect(byteCount > 0)
  }

  @Test("a read inside a write sees the last commit, the write's own transaction what it changed")
  func readInsideWrite() async throws {
    let counts = try await environment.write { [environment, samples] transaction in
      try transaction.deleteAll(in: samples)
      let before = try environment.read { try $0.count(of: samples) }
      return [before, try transaction.count(of: samples)]
    }
    #expect(counts == [100, 0])
  }
}
