import Foundation
import Testing

@testable import LMDB

@Suite("What LMDB and the system report")
struct ErrorTests {
  @Test(
    "is told by what it means and how to mend it",
    arguments: [
      (-30_799, LMDBError.Code.keyExists), (-30_798, .tableMissing), (-30_797, .damaged),
      (-30_796, .damaged), (-30_795, .broken), (-30_794, .versionMismatch), (-30_793, .damaged),
      (-30_792, .mapFull), (-30_791, .tablesFull), (-30_790, .readersFull),
      (-30_788, .transactionFull), (-30_787, .transactionFull), (-30_786, .transactionFull),
      (-30_785, .mapResized), (-30_784, .incompatible), (-30_782, .transactionFailed),
      (-30_781, .badKeySize), (EAGAIN, .outOfResources), (ENOMEM, .outOfResources),
      (EMFILE, .outOfResources), (ENFILE, .outOfResources), (ENOSPC, .diskFull),
      (EDQUOT, .diskFull), (EROFS, .readOnly), (EACCES, .noPermission), (EPERM, .noPermission),
      (ENOENT, .missing), (ENOTDIR, .notADirectory), (ENOLCK, .noLocks), (EINVAL, .other),
    ] as [(Int32, LMDBError.Code)])
  func mapping(_ raw: Int32, _ code: LMDBError.Code) {
    let error = LMDBError.from(raw, operation: "call", path: "/place")
    #expect(error.code == code)
    #expect(error.rawCode == raw)
    #expect(error.description.hasPrefix("call: "))
    #expect(error.description.contains("/place"))
    #expect(error.description.contains("[\(raw)]"))
    if code != .other { #expect(!error.description.contains("call: refused")) }
  }

  @Test("is a full disk only where it is full, when LMDB says EIO")
  func inputOutput() throws {
    let directory = try TemporaryDirectory()
    #expect(LMDBError.from(EIO, operation: "call", path: directory.path).code == .ioFailed)
    #if os(Linux)
      if geteuid() == 0 {
        let disk = try FilledDisk()
        #expect(LMDBError.from(EIO, operation: "call", path: disk.path).code == .ioFailed)
        try Data(count: 8 << 20 - 65_536).write(to: URL(fileURLWithPath: disk.path + "/filler"))
        #expect(LMDBError.from(EIO, operation: "call", path: disk.path).code == .diskFull)
      }
    #endif
  }

  @Test(
    "is refused on a network file system, by its name",
    arguments: [
      (0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0xFE53_4D42, "SMB 2"), (0x0102_1997, "9p"),
      (0x6573_5546, "FUSE"), (-2, "remote"),
    ] as [(Int64, String)])
  func networkFileSystem(_ kind: Int64, _ name: String) throws {
    var configuration = Environment.Configuration()
    let error = try #require(throws: LMDBError.self) {
      try FileSystem(kind: kind).requireLocal("/place", configuration)
    }
    #expect(error.code == .networkFileSystem)
    #expect(error.detail == name)
    configuration.allowsNetworkFileSystem = true
    try FileSystem(kind: kind).requireLocal("/place", configuration)
  }

  @Test(
    "is nothing on a local file system",
    arguments: [0xEF53, 0x0102_1994, 0x9123_683E, 0x5846_5342, 0x794C_7630, 0] as [Int64])
  func localFileSystem(_ kind: Int64) throws {
    try FileSystem(kind: kind).requireLocal("/place", Environment.Configuration())
    try FileSystem(of: NSTemporaryDirectory()).requireLocal("/place", Environment.Configuration())
  }
}

@Suite("An environment's durability")
struct DurabilityTests {
  @Test(
    "keeps what was committed when the process is killed, on every level",
    arguments: [0, 1, 2])
  func killed(_ level: Int) async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, level = level as Int] in
      var configuration = Environment.Configuration()
      configuration.durability = [.durable, .mayLoseLastCommit, .unsafeWithoutSync][level]
      let environment = try Environment.open(at: path, configuration: configuration)
      let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
      for number in 0..<UInt64(100) {
        try await environment.write { try $0.put(number, for: number, in: table) }
        if number == 50 { try await environment.sync() }
      }
      kill(getpid(), SIGKILL)
    }
    let environment = try Environment.open(at: path)
    let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
    let count = try environment.read { try $0.count(of: table) }
    #expect(count == 100)
  }

  @Test("cannot be made sure of where nothing may be written, or after closing")
  func refused() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("env")
    let writable = try Environment.open(at: path)
    try writable.sync()
    try writable.close()
    #expect(try #require(throws: LMDBError.self) { try writable.sync() }.code == .closed)
    var configuration = Environment.Configuration()
    configuration.access = .read
    let readable = try Environment.open(at: path, configuration: configuration)
    #expect(try #require(throws: LMDBError.self) { try readable.sync() }.code == .readOnly)
  }
}
