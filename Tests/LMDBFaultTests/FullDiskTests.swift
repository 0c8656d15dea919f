import Foundation
import Testing

/// The file systems that these tests fill.
enum Disk: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case memory
  case ext4

  var testDescription: String { rawValue }

  func mount(byteCount: Int) throws -> Mount {
    switch self {
    case .memory: try Mount(.memory(byteCount: byteCount))
    case .ext4: try Mount(.ext4(byteCount: byteCount))
    }
  }

  /// Those that can be mounted here.
  static var available: [Disk] {
    (Mount.isPermitted ? [.memory] : []) + (Mount.hasLoop ? [.ext4] : [])
  }
}

@Suite("A full disk", .ownThread, .enabled(if: Mount.isPermitted, Mount.reason))
struct FullDiskTests {
  @Test(
    "refuses the write as diskFull, loses nothing, and takes it when there is room",
    arguments: Disk.available)
  func fullAndRecovered(disk: Disk) throws {
    let mount = try disk.mount(byteCount: 8 << 20)
    let session = try FaultChild(["session"])
    try session.expect("open \(mount.file("env")) map=65536")
    try session.expect("put 0 100 3000")
    for round in 0..<3 {
      try mount.fill()
      // Until the pages that the file has free are used, writes still succeed.
      let answer = try session.ask("put \(1_000 * (round + 1)) 900 3000")
      #expect(answer.hasPrefix("diskFull "), "round \(round): \(answer)")
      // What was committed before is all there, and nothing else.
      let count = try session.ask("count")
      #expect(try session.ask("scan") == count)
      for key in 0..<100 { try session.expect("get \(key)", "ok 3000") }
      try session.expect("put 1 1 900000", "diskFull", prefix: true)
      try session.expect("get 1", "ok 3000")
      try mount.empty()
      try session.expect("put \(1_000 * (round + 1)) 100 3000")
      try session.expect("deleteAll")
      try session.expect("put 0 100 3000")
    }
    try session.expect("close")
    try session.expect("intact \(mount.file("env"))", "ok intact")
    try session.expect("use \(mount.file("env"))", "ok 100 100")
  }

  @Test("lets every record be deleted one by one, and read meanwhile", arguments: Disk.available)
  func deletes(disk: Disk) throws {
    let mount = try disk.mount(byteCount: 8 << 20)
    let session = try FaultChild(["session"])
    try session.expect("open \(mount.file("env"))")
    try session.expect("put 0 300 3000")
    try mount.fill()
    try session.expect("put 1000 2000 1000", "diskFull", prefix: true)
    let filled = try session.ask("count")
    try session.expect("delete 0 150")
    try session.expect("delete 1000 2000")
    try session.expect("count", "ok 150", "of \(filled)")
    try session.expect("scan", "ok 150")
    // What is left is left to deletes, until there is room on the disk again.
    try session.expect("put 0 50 3000", "diskFull", prefix: true)
    try session.expect("count", "ok 150")
    try mount.empty()
    try session.expect("put 0 50 3000")
    try session.expect("close")
    try session.expect("intact \(mount.file("env"))", "ok intact")
    try session.expect("open \(mount.file("env"))")
    try session.expect("count", "ok 200")
  }

  @Test(
    "is diskFull in a directory that was renamed while it is open, too", arguments: Disk.available)
  func renamed(disk: Disk) throws {
    let mount = try disk.mount(byteCount: 4 << 20)
    let session = try FaultChild(["session"])
    try session.expect("open \(mount.file("env"))")
    try session.expect("put 0 20 3000")
    try FileManager.default.moveItem(atPath: mount.file("env"), toPath: mount.file("moved"))
    // Room for a part of a write: LMDB reports that as EIO, and the space has to be asked for.
    try mount.fill(leaving: 100 << 10)
    try session.expect("put 100 1 900000", "diskFull", prefix: true)
    try session.expect("get 0", "ok 3000")
    try mount.empty()
    try session.expect("put 200 20 3000")
  }

  @Test(
    "an environment is not made, and can be made there when there is room",
    arguments: Disk.available, [0, 4_096, 8_192, 12_288, 16_384, 20_480, 28_672])
  func making(disk: Disk, free: Int) throws {
    let mount = try disk.mount(byteCount: 4 << 20)
    let session = try FaultChild(["session"])
    try FileManager.default.createDirectory(
      atPath: mount.file("env"), withIntermediateDirectories: false)
    try mount.fill(leaving: free)
    let answer = try session.ask("open \(mount.file("env"))")
    #expect(answer == "ok" || answer.hasPrefix("diskFull "), "with \(free) bytes free")
    if free == 0 { #expect(answer.hasPrefix("diskFull ")) }
    try mount.empty()
    try session.expect("use \(mount.file("env"))", "ok 0 0", "after \(answer)")
  }

  @Test(
    "an environment whose lock file is gone is opened, or refused as diskFull",
    arguments: Disk.available)
  func lockFile(disk: Disk) throws {
    let mount = try disk.mount(byteCount: 4 << 20)
    let session = try FaultChild(["session"])
    try session.expect("open \(mount.file("env"))")
    try session.expect("put 0 20 3000")
    try session.expect("close")
    unlink(mount.file("env/lock.mdb"))
    try mount.fill()
    let answer = try session.ask("open \(mount.file("env"))")
    #expect(answer == "ok" || answer.hasPrefix("diskFull "))
    try mount.empty()
    try session.expect("use \(mount.file("env"))", "ok 20 20")
  }

  @Test("takes as many readers as there are slots", arguments: Disk.available)
  func readers(disk: Disk) throws {
    let mount = try disk.mount(byteCount: 4 << 20)
    let session = try FaultChild(["session"])
    try session.expect("open \(mount.file("env")) readers=200")
    try session.expect("put 0 20 3000")
    try mount.fill()
    var held = 0
    while held < 250 {
      let answer = try session.ask("hold")
      guard answer == "ok" else {
        #expect(answer.hasPrefix("readersFull ") || answer.hasPrefix("diskFull "))
        break
      }
      held += 1
    }
    #expect((64...200).contains(held))
    try session.expect("release")
    try session.expect("count", "ok 20")
  }

  @Test("tells each of 64 callers of a group its own outcome", arguments: Disk.available)
  func group(disk: Disk) throws {
    let mount = try disk.mount(byteCount: 8 << 20)
    let path = mount.file("env")
    let roundCount = 12
    let child = try FaultChild(["group", path, "64", "2500", "\(roundCount)"])
    #expect(try child.readLine() == "ready")
    var seed = FaultSeed(200)
    var committed: Set<Int> = []
    var refused = 0
    var fullRounds = 0
    for round in 0..<roundCount {
      // From no room at all to room for some of the callers.
      if round % 4 != 3 { try mount.fill(leaving: Int(seed.next() % 300) * 1_024) }
      child.send("go")
      var outcomes = 0
      var refusedNow = 0
      while let line = try child.readLine() {
        let words = line.split(separator: " ")
        if words[0] == "round" { break }
        let key = try #require(Int(words[1]))
        outcomes += 1
        if words[0] == "committed" {
          #expect(committed.insert(key).inserted)
        } else {
          #expect(words.count > 2 && words[2] == "diskFull", "\(line)")
          refusedNow += 1
        }
      }
      #expect(outcomes == 64, "round \(round)")
      if refusedNow > 0 { fullRounds += 1 }
      refused += refusedNow
      try mount.empty()
    }
    #expect(fullRounds > 0, "the disk was never full")
    #expect(child.wait() == .exited(0))
    let session = try FaultChild(["session"])
    try session.expect("intact \(path)", "ok intact")
    try session.expect("open \(path)")
    try session.expect("count", "ok \(committed.count)")
    for key in committed { try session.expect("get \(key)", "ok 2500", "key \(key)") }
    print("full disk in a group: \(committed.count) committed, \(refused) refused")
  }
}
