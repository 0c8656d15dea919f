import Foundation
import LMDB
import Testing

@Suite("Several names of one environment", .ownThread)
struct AliasTests {
  let scratch: Scratch
  let names: [String]

  init() throws {
    scratch = try Scratch()
    let files = FileManager.default
    let session = try FaultChild(["session"])
    try session.expect("open \(scratch.file("env"))")
    try session.expect("put 0 10 100")
    try session.expect("close")
    try files.createSymbolicLink(
      atPath: scratch.file("link"), withDestinationPath: scratch.file("env"))
    try files.createDirectory(atPath: scratch.file("hard"), withIntermediateDirectories: false)
    try files.linkItem(
      atPath: scratch.file("env/data.mdb"), toPath: scratch.file("hard/data.mdb"))
    names = ["link", "hard", "env/../env", "env/."].map(scratch.file)
  }

  @Test("are one object in one process")
  func oneObject() throws {
    let first = try Environment.open(at: scratch.file("env"))
    for name in names { #expect(try Environment.open(at: name) === first) }
    // No second lock came into being.
    #expect(access(scratch.file("hard/lock.mdb"), F_OK) != 0)
    try first.close()
  }

  @Test("share one lock between processes, or are refused")
  func oneLock() throws {
    for name in names {
      let first = try FaultChild(["session"])
      let second = try FaultChild(["session"])
      try first.expect("open \(scratch.file("env"))")
      try first.expect("hold")
      let answer = try second.ask("open \(name)")
      if name.hasSuffix("hard") {
        // Its lock file would be another: both would write at once.
        #expect(answer.hasPrefix("lockMismatch "), "\(name)")
        try first.expect("put 0 10 100")
      } else {
        #expect(answer == "ok", "\(name)")
        try second.expect("put 20 10 100")
        try first.expect("get 20", "ok 100")
      }
    }
  }

  @Test("a directory that is renamed while it is open stays the same environment")
  func renamed() throws {
    let first = try Environment.open(at: scratch.file("env"))
    let table = try first.table("t", key: UInt64Codec.self, value: BytesCodec.self)
    try FileManager.default.moveItem(atPath: scratch.file("env"), toPath: scratch.file("moved"))
    try first.write { try $0.put([1], for: 100, in: table) }
    #expect(try Environment.open(at: scratch.file("moved")) === first)
    let second = try FaultChild(["session"])
    try second.expect("open \(scratch.file("moved"))")
    try second.expect("put 200 1 100")
    #expect(try first.read { try $0.count(of: table) } == 12)
    // The old name is free for another environment.
    let other = try Environment.open(at: scratch.file("env"))
    #expect(other !== first)
    try other.close()
    try first.close()
  }
}
