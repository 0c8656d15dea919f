import Foundation
import Testing

@Suite("A lock file", .ownThread)
struct LockFileTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    let session = try FaultChild(["session"])
    try session.expect("open \(scratch.file("env"))")
    try session.expect("put 0 10 100")
    try session.expect("close")
  }

  private var path: String { scratch.file("env") }
  private var lock: String { scratch.file("env/lock.mdb") }

  @Test("that was deleted while nobody had it open is made again")
  func deletedWhileClosed() throws {
    let session = try FaultChild(["session"])
    for _ in 0..<3 {
      #expect(unlink(lock) == 0)
      try session.expect("use \(path)", "ok 10 10")
    }
  }

  @Test("that is garbage, empty or short is made again or refused, and never ends the process")
  func garbage() throws {
    var seed = FaultSeed(300)
    for size in [0, 1, 64, 4_096, 65_536, 65_600, 70_000] {
      for isZero in [true, false] {
        let bytes = (0..<size).map { _ in isZero ? 0 : UInt8(truncatingIfNeeded: seed.next()) }
        try Data(bytes).write(to: URL(filePath: lock))
        let session = try FaultChild(["session"])
        try session.expect("use \(path)", "ok 10 10", "\(size) bytes")
      }
    }
  }

  @Test("that was deleted while another process has it open keeps newcomers out, not the others")
  func deletedWhileOpen() throws {
    let first = try FaultChild(["session"])
    let second = try FaultChild(["session"])
    for process in [first, second] { try process.expect("open \(path)") }
    #expect(unlink(lock) == 0)
    for access in ["write", "read"] {
      let third = try FaultChild(["session"])
      // With a lock of its own it would write beside the others, or read what they reuse.
      try third.expect("open \(path) access=\(access)", "lockMismatch", prefix: true)
    }
    try first.expect("put 100 10 100")
    try second.expect("put 200 10 100")
    try first.expect("scan", "ok 30")
    try first.expect("close")
    second.killAndWait()
    let fourth = try FaultChild(["session"])
    try fourth.expect("use \(path)", "ok 30 30")
  }

  @Test("that was deleted and made anew by a stranger keeps newcomers out")
  func replacedWhileOpen() throws {
    let first = try FaultChild(["session"])
    try first.expect("open \(path)")
    #expect(unlink(lock) == 0)
    try Data().write(to: URL(filePath: lock))
    let second = try FaultChild(["session"])
    try second.expect("open \(path)", "lockMismatch", prefix: true)
    try first.expect("put 100 10 100")
    first.killAndWait()
    try second.expect("open \(path)")
    try second.expect("scan", "ok 20")
  }

  @Test(
    "or a data file or directory that may not be read is noPermission",
    .enabled(if: geteuid() == 0, "another user's files can be tried by root only"))
  func permissions() throws {
    let nobody = 65_534
    let files = ["env/lock.mdb", "env/data.mdb", "env"]
    chmod(scratch.path, 0o755)
    func setModes(_ modes: [mode_t]) {
      for (file, mode) in zip(files, modes) { chmod(scratch.file(file), mode) }
    }
    // lock.mdb, data.mdb, the directory; how it is opened; what is answered.
    let cases: [([mode_t], String, String)] = [
      ([0o600, 0o600, 0o700], "write", "noPermission "),
      ([0o600, 0o600, 0o700], "read", "noPermission "),
      ([0o666, 0o600, 0o755], "write", "noPermission "),
      ([0o666, 0o600, 0o755], "read", "noPermission "),
      ([0o666, 0o644, 0o755], "write", "noPermission "),
      ([0o666, 0o644, 0o755], "read", "ok"),
      ([0o600, 0o666, 0o755], "write", "noPermission "),
      ([0o600, 0o666, 0o755], "read", "noPermission "),
      ([0o644, 0o644, 0o755], "read", "noPermission "),
      ([0o666, 0o666, 0o555], "write", "ok"),
      ([0o666, 0o666, 0o755], "write", "ok"),
    ]
    for (modes, access, expected) in cases {
      setModes(modes)
      let session = try FaultChild(["session"])
      try session.expect("become \(nobody)")
      let answer = try session.ask("open \(path) access=\(access)")
      #expect(
        answer.hasPrefix(expected),
        "\(modes.map { String($0, radix: 8) }) \(access): \(answer)")
      if answer == "ok" { try session.expect("scan", "ok 10") }
    }
    // A copy without a lock file in a directory that cannot be written.
    unlink(lock)
    setModes([0, 0o666, 0o555])
    for (access, expected) in [("write", "noPermission "), ("read", "ok")] {
      let session = try FaultChild(["session"])
      try session.expect("become \(nobody)")
      #expect(try session.ask("open \(path) access=\(access)").hasPrefix(expected), "\(access)")
    }
    #expect(Foundation.access(lock, F_OK) != 0)
    setModes([0, 0o600, 0o700])
    let session = try FaultChild(["session"])
    try session.expect("use \(path)", "ok 10 10")
  }

  @Test(
    "on a file system that is read-only: reading works, writing is readOnly",
    .enabled(if: Mount.isPermitted, Mount.reason), arguments: [true, false])
  func readOnlyFileSystem(hasLock: Bool) throws {
    if !hasLock { unlink(lock) }
    let mount = try Mount(.readOnlyView(of: scratch.path))
    let session = try FaultChild(["session"])
    try session.expect("open \(mount.file("env")) access=read")
    try session.expect("scan", "ok 10")
    try session.expect("put 1 1 1", "readOnly", prefix: true)
    try session.expect("close")
    try session.expect("open \(mount.file("env")) access=write", "readOnly", prefix: true)
    try session.expect("use \(scratch.file("env"))", "ok 10 10")
  }
}
