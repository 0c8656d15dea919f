import Foundation
import LMDB
import Testing

@Suite("A data file that is not what it should be")
struct DamageTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let environment = try Environment.open(at: directory.file("env"))
    let table = try environment.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    try environment.write { transaction in
      for number in 0..<UInt64(200) {
        try transaction.put([UInt8](repeating: 7, count: 900), for: number, in: table)
      }
    }
    try environment.close()
  }

  private var file: String { directory.file("env/data.mdb") }

  private func openError() throws -> LMDBError {
    try #require(throws: LMDBError.self) { try Environment.open(at: directory.file("env")) }
  }

  @Test("is an error when it was cut anywhere, never a crash")
  func truncated() throws {
    let whole = try Data(contentsOf: URL(fileURLWithPath: file))
    for count in Array(stride(from: 0, to: whole.count, by: 4096)) + [
      1, 100, 4095, 4097, whole.count - 1,
    ] {
      try whole.prefix(count).write(to: URL(fileURLWithPath: file))
      #expect(try openError().code == .damaged, "cut to \(count) bytes")
    }
    try whole.write(to: URL(fileURLWithPath: file))
    _ = try Environment.open(at: directory.file("env"))
  }

  @Test("is an error when its newest commit stands on the other one's meta page")
  func otherMetaPage() throws {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    let places = [144, 4_096 + 144]
    let newest = places.max { bytes[$0] < bytes[$1] } ?? 0
    let older = newest == places[0] ? places[1] : places[0]
    // Two commits later, which is written where the newest is.
    bytes[older] = bytes[newest] + 2
    try bytes.write(to: URL(fileURLWithPath: file))
    #expect(try openError().code == .damaged)
    let report = try Environment.checkIntegrity(at: directory.file("env"))
    #expect(report.findings.contains { $0.kind == .damagedHead })
  }

  @Test("is an error when it is garbage or of another version")
  func garbage() throws {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    var foreign = bytes
    foreign[20] = 99
    foreign[4096 + 20] = 99
    try foreign.write(to: URL(fileURLWithPath: file))
    #expect(try openError().code == .versionMismatch)
    for index in 0..<8192 { bytes[index] = UInt8(truncatingIfNeeded: index &* 17) }
    try bytes.write(to: URL(fileURLWithPath: file))
    #expect(try openError().code == .damaged)
  }

  @Test("is an error when the place is a file, or missing and not to be made")
  func places() throws {
    let path = directory.file("plain")
    try Data("x".utf8).write(to: URL(fileURLWithPath: path))
    let notADirectory = try #require(throws: LMDBError.self) { try Environment.open(at: path) }
    #expect(notADirectory.code == .notADirectory)
    var configuration = Environment.Configuration()
    configuration.access = .read
    let missing = try #require(throws: LMDBError.self) {
      try Environment.open(at: directory.file("nothing"), configuration: configuration)
    }
    #expect(missing.code == .missing)
    #expect(!FileManager.default.fileExists(atPath: directory.file("nothing")))
  }
}
