import Foundation
import LMDB
import Testing

@Suite("An environment")
struct EnvironmentTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func open(
    _ name: String = "env", _ change: (inout Environment.Configuration) -> Void = { _ in }
  ) throws -> Environment {
    var configuration = Environment.Configuration()
    change(&configuration)
    return try Environment.open(at: directory.file(name), configuration: configuration)
  }

  @Test("keeps what was committed when it is opened again")
  func keepsCommitted() throws {
    do {
      let environment = try open()
      let table = try environment.table("t", key: TextCodec.self, value: UInt64Codec.self)
      try environment.write { try $0.put(7, for: "seven", in: table) }
      try environment.close()
    }
    let environment = try open()
    let table = try environment.table("t", key: TextCodec.self, value: UInt64Codec.self)
    #expect(try environment.read { try $0.value(of: "seven", in: table) } == 7)
  }

  @Test("stores nothing of a closure that throws, and passes the error on as it is")
  func throwingUndoes() throws {
    struct Mine: Error, Equatable { let number: Int }
    let environment = try open()
    let table = try environment.table("t", key: TextCodec.self, value: UInt64Codec.self)
    #expect(throws: Mine(number: 3)) {
      try environment.write { transaction in
        try transaction.put(1, for: "one", in: table)
        throw Mine(number: 3)
      }
    }
    #expect(try environment.read { try $0.count(of: table) } == 0)
  }

  @Test("is one object per process, by whatever path it is reached")
  func oneObjectPerFile() throws {
    let first = try open("a")
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("link"), withDestinationPath: directory.file("a"))
    try FileManager.default.createDirectory(
      atPath: directory.file("hard"), withIntermediateDirectories: true)
    try FileManager.default.linkItem(
      atPath: directory.file("a/data.mdb"), toPath: directory.file("hard/data.mdb"))
    #expect(try open("link") === first)
    #expect(try open("a/../a") === first)
    #expect(try open("hard") === first)
  }

  @Test("enlarges its map unnoticed while readers run, and says mapFull only at the ceiling")
  func growsToCeiling() throws {
    let environment = try open {
      $0.mapSizeByteCount = 1 << 20
      $0.mapSizeByteCountMax = 8 << 20
    }
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    let value = [UInt8](repeating: 1, count: 100_000)
    for number in 0..<40 {
      try environment.write { try $0.put(value, for: UInt64(number), in: table) }
      #expect(try environment.read { try $0.count(of: table) } == number + 1)
    }
    #expect(environment.mapByteCount > 1 << 20)
    let error = try #require(throws: LMDBError.self) {
      for number in 40..<200 {
        try environment.write { try $0.put(value, for: UInt64(number), in: table) }
      }
    }
    #expect(error.code == .mapFull)
    // Reading and deleting still work.
    let before = try environment.read { try $0.count(of: table) }
    try environment.write { _ = try $0.delete(0, in: table) }
    #expect(try environment.read { try $0.count(of: table) } == before - 1)
  }

  @Test("enlarges its map for a closure that swallows the error")
  func swallowedMapFull() throws {
    let environment = try open { $0.mapSizeByteCount = 1 << 20 }
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    let value = [UInt8](repeating: 1, count: 400_000)
    try environment.write { transaction in
      for number in 0..<10 {
        do { try transaction.put(value, for: UInt64(number), in: table) } catch {}
      }
    }
    #expect(try environment.read { try $0.count(of: table) } == 10)
  }

  @Test("shares one commit among async writers, and undoes only the one that throws")
  func groupCommit() async throws {
    struct Refused: Error {}
    let environment = try open()
    let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
    let before = environment.commitCount
    let refused = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<UInt64(400) {
        group.addTask {
          do {
            let returned = try await environment.write { transaction in
              try transaction.put(number, for: number, in: table)
              if number % 10 == 3 { throw Refused() }
              return number
            }
            return returned != number
          } catch {
            return true
          }
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(refused == 40)
    let (count, undone, kept) = try environment.read { transaction in
      (
        try transaction.count(of: table), try transaction.value(of: 3, in: table),
        try transaction.value(of: 4, in: table)
      )
    }
    #expect(count == 360)
    #expect(undone == nil)
    #expect(kept == 4)
    #expect(environment.commitCount - before < 360)
  }

  @Test("throws closed after it was closed, and can be opened again")
  func closing() throws {
    let environment = try open()
    try environment.close()
    let error = try #require(throws: LMDBError.self) { try environment.read { _ in } }
    #expect(error.code == .closed)
    #expect(try open() !== environment)
  }

  @Test("opened for reading sees what another handle of another process wrote and refuses writes")
  func readOnly() throws {
    do {
      let environment = try open()
      let table = try environment.table("t", key: TextCodec.self, value: TextCodec.self)
      try environment.write { try $0.put("b", for: "a", in: table) }
      try environment.close()
    }
    let environment = try open { $0.access = .read }
    let table = try environment.table("t", key: TextCodec.self, value: TextCodec.self)
    #expect(try environment.read { try $0.value(of: "a", in: table) } == "b")
    let missing = try #require(throws: LMDBError.self) {
      try environment.table("other", key: TextCodec.self, value: TextCodec.self)
    }
    #expect(missing.code == .tableMissing)
    let error = try #require(throws: LMDBError.self) {
      try environment.write { try $0.put("c", for: "a", in: table) }
    }
    #expect(error.code == .readOnly)
  }
}
