import Foundation
import LMDB
import Testing

// The files that this process has seen are forgotten by each of these tests: one after the other.
@Suite("A small file that is sealed when it is closed", .serialized)
struct SealTests {
  let directory: TemporaryDirectory
  private var file: String { directory.file("env/data.mdb") }
  private var seal: String { directory.file("env/data.seal") }

  /// Whether it says anything.
  private var isSealed: Bool {
    get throws { try !Data(contentsOf: URL(filePath: seal)).isEmpty }
  }

  init() throws {
    directory = try TemporaryDirectory()
    try write(count: 50)
  }

  private func open(limit: Int = 1 << 20) throws -> Environment {
    Environment.forgetSeenFiles()
    var configuration = Environment.Configuration()
    configuration.sealedByteCountMax = limit
    return try Environment.open(at: directory.file("env"), configuration: configuration)
  }

  /// Commits once, and closes it.
  private func write(count: UInt64, limit: Int = 1 << 20) throws {
    let environment = try open(limit: limit)
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    try environment.writeBlocking { transaction in
      for number in 0..<count {
        try transaction.put([UInt8](repeating: 7, count: 900), for: number, in: table)
      }
      try transaction.put([UInt8](repeating: 9, count: 9_000), for: 1_000, in: table)
    }
    try environment.close()
  }

  /// Changes one bit where the file has these bytes, in place.
  private func flip(_ place: Int) throws {
    let handle = try FileHandle(forUpdating: URL(filePath: file))
    defer { handle.closeFile() }
    try handle.seek(toOffset: UInt64(place))
    let byte = try #require(try handle.read(upToCount: 1)?.first)
    try handle.seek(toOffset: UInt64(place))
    try handle.write(contentsOf: Data([byte ^ 0x10]))
  }

  private func place(of byte: UInt8) throws -> Int {
    let bytes = try Data(contentsOf: URL(filePath: file))
    return try #require(bytes.firstRange(of: Data(repeating: byte, count: 100))?.lowerBound) + 50
  }

  @Test("a compacted copy that is written over it is read: it has the same commit, and other pages")
  func compactedCopy() async throws {
    // Leaves free pages behind, which a compacted copy has not.
    try write(count: 80)
    try write(count: 20)
    let copy = directory.file("copy")
    let environment = try open()
    try await environment.copy(to: copy, compacting: true)
    try environment.close()
    #expect(try isSealed)
    // In place: the file's number stays.
    let bytes = try Data(contentsOf: URL(filePath: copy + "/data.mdb"))
    let handle = try FileHandle(forUpdating: URL(filePath: file))
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: bytes)
    handle.closeFile()
    let restored = try open()
    let table = try restored.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    #expect(try restored.read { try $0.count(of: table) } == 81)
    try restored.close()
  }

  @Test("one that was changed in its meta page alone is damaged")
  func changedHead() throws {
    var harmed = 0
    // Each byte of both meta pages: what was the last page, what the newest commit, where the trees begin.
    for place in (16..<152).flatMap({ [$0, 4_096 + $0] }) {
      try flip(place)
      do { try open().close() } catch let error as LMDBError {
        #expect(error.code != .missing)
        harmed += 1
      }
      try flip(place)
      try open().close()
    }
    #expect(harmed >= 136, "of each pair of places one at least is the newest commit's")
  }

  @Test("is damaged once a bit of a value has changed, on a leaf or on pages of its own")
  func changedValue() throws {
    for byte in [7, 9] as [UInt8] {
      let place = try place(of: byte)
      try flip(place)
      let error = try #require(throws: LMDBError.self) { try open() }
      #expect(error.code == .damaged)
      try flip(place)
      try open().close()
    }
  }

  @Test("tells nothing of values once the seal is gone or cut, but of the pages' form")
  func withoutSeal() throws {
    let place = try place(of: 7)
    try flip(place)
    for byteCount in [47, 0] {
      #expect(truncate(seal, off_t(byteCount)) == 0)
      try open().close()
    }
    #expect(unlink(seal) == 0)
    try open().close()
    // The number that a page bears, in its first bytes.
    try flip(place / 4_096 * 4_096)
    #expect(try #require(throws: LMDBError.self) { try open() }.code == .damaged)
  }

  @Test("loses its seal with the first commit, and gets another when it is closed")
  func nextCommit() throws {
    let before = try Data(contentsOf: URL(filePath: seal))
    let environment = try open()
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    #expect(try isSealed)
    try environment.writeBlocking { try $0.put([1], for: 1, in: table) }
    #expect(try !isSealed)
    try environment.close()
    #expect(try Data(contentsOf: URL(filePath: seal)) != before)
    try open().close()
  }

  @Test("makes no file when it is closed, in a directory that somebody may be removing")
  func removed() throws {
    let environment = try open()
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    try environment.writeBlocking { try $0.put([1], for: 1, in: table) }
    #expect(unlink(seal) == 0)
    try environment.close()
    #expect(!FileManager.default.fileExists(atPath: seal))
  }

  @Test("may be replaced by another file, of which the seal says nothing")
  func replaced() throws {
    try flip(try place(of: 7))
    let other = directory.file("other")
    try FileManager.default.copyItem(atPath: file, toPath: other)
    #expect(rename(other, file) == 0)
    try open().close()
  }

  @Test("is damaged when the older head claims to be the newer one")
  func heads() throws {
    let bytes = try Data(contentsOf: URL(filePath: file))
    let transactions = [144, 4_096 + 144].map { bytes[$0] }
    let older = transactions[0] < transactions[1] ? 144 : 4_096 + 144
    // Sixteen or more commits ahead of where it is.
    try flip(older)
    #expect(try #require(throws: LMDBError.self) { try open() }.code == .damaged)
  }

  @Test("is neither checked nor sealed when it is larger than that")
  func large() throws {
    #expect(unlink(seal) == 0)
    try write(count: 60, limit: 8_192)
    #expect(try !isSealed)
    try flip(try place(of: 7) / 4_096 * 4_096)
    try open(limit: 8_192).close()
  }

  @Test("that this process has closed itself is not read again")
  func seen() throws {
    try open().close()
    try flip(try place(of: 7))
    var configuration = Environment.Configuration()
    configuration.sealedByteCountMax = 1 << 20
    try Environment.open(at: directory.file("env"), configuration: configuration).close()
    #expect(throws: LMDBError.self) { try open() }
  }
}
