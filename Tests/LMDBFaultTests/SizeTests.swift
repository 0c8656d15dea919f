import Foundation
import LMDB
import Testing

@Suite("The size of a key or value", .ownThread)
struct SizeTests {
  let scratch: Scratch
  let environment: Environment

  init() throws {
    scratch = try Scratch(inMemory: true)
    var configuration = Environment.Configuration()
    configuration.mapSizeByteCount = 1 << 20
    environment = try Environment.open(at: scratch.file("env"), configuration: configuration)
  }

  @Test("keys of 1 and 511 bytes are kept, of 0 and 512 refused by every call")
  func keys() throws {
    let table = try environment.table("t", key: BytesCodec.self, value: BytesCodec.self)
    let other = [UInt8]("other".utf8)
    try environment.write { try $0.put([1], for: other, in: table) }
    for size in [1, 2, 510, 511] {
      let key = [UInt8](repeating: 0xFF, count: size)
      try environment.write { try $0.put([2], for: key, in: table) }
      #expect(try environment.read { try $0.value(of: key, in: table) } == [2])
      #expect(try environment.read { try $0.firstKey(in: table, .from(key)) } == key)
      #expect(try environment.write { try $0.delete(key, in: table) })
    }
    for size in [0, 512, 513, 1_000, 5_000] {
      let key = [UInt8](repeating: 0xFF, count: size)
      func isRefused(_ body: () throws -> Void) -> Bool {
        do {
          try body()
          return false
        } catch {
          return (error as? LMDBError)?.code == .badKeySize
        }
      }
      #expect(isRefused { try environment.write { try $0.put([3], for: key, in: table) } })
      #expect(isRefused { try environment.write { try $0.append([3], for: key, in: table) } })
      #expect(isRefused { _ = try environment.write { try $0.delete(key, in: table) } })
      #expect(isRefused { _ = try environment.read { try $0.value(of: key, in: table) } })
      #expect(isRefused { _ = try environment.read { try $0.contains(key, in: table) } })
      #expect(
        isRefused { try environment.read { try $0.scan(table, .from(key)) { _, _ in .next } } })
      #expect(
        isRefused { _ = try environment.write { try $0.deleteAll(in: table, .after(key)) } })
    }
    // The refusals did no harm to what is there.
    #expect(try environment.read { try $0.count(of: table) } == 1)
  }

  @Test("values of 0 bytes, around a page and the end of a leaf, and of 64 MiB are kept whole")
  func values() throws {
    let table = try environment.table("v", key: UInt64Codec.self, value: BytesCodec.self)
    // 8 bytes of node and 8 of key leave 2,022 for a value in its leaf; a page of its own begins
    // with 16 bytes.
    let sizes =
      [0, 1] + (2_018...2_026) + (4_076...4_100) + [8_175, 8_176, 8_177, 65_536, 64 << 20]
    for (key, size) in sizes.enumerated() {
      let value = [UInt8](repeating: UInt8(truncatingIfNeeded: size | 1), count: size)
      try environment.write { try $0.put(value, for: UInt64(key), in: table) }
    }
    try environment.read { transaction in
      for (key, size) in sizes.enumerated() {
        let value = try #require(try transaction.value(of: UInt64(key), in: table))
        #expect(value.count == size)
        let expected = [UInt8](repeating: UInt8(truncatingIfNeeded: size | 1), count: size)
        #expect(Data(value) == Data(expected), "\(size) bytes")
      }
    }
    // Each in place of each other.
    for (key, size) in sizes.reversed().enumerated() where size < 1 << 20 {
      let value = [UInt8](repeating: 9, count: size)
      try environment.write { try $0.put(value, for: UInt64(key), in: table) }
      #expect(try environment.read { try $0.value(of: UInt64(key), in: table)?.count } == size)
    }
  }

  @Test("a value above 1 GiB is refused before anything is copied")
  func tooLarge() throws {
    let table = try environment.table("v", key: UInt64Codec.self, value: BytesCodec.self)
    let size = (1 << 30) + 1
    // Reserved, never touched.
    let memory = try #require(
      mmap(nil, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
    try #require(memory != MAP_FAILED)
    defer { munmap(memory, size) }
    let error = try #require(throws: LMDBError.self) {
      try environment.write { transaction in
        try transaction.put(
          bytes: UnsafeRawBufferPointer(start: memory, count: size).bytes, for: 1, in: table)
      }
    }
    #expect(error.code == .valueTooLarge)
    #expect(try environment.read { try $0.count(of: table) } == 0)
    #expect(environment.mapByteCount == 1 << 20)
  }
}
