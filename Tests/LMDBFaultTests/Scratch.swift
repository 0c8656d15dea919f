import Foundation
import Testing

/// A directory of its own for one test, removed with it.
final class Scratch: Sendable {
  let path: String

  /// - Parameter inMemory: on the machine's memory file system where there is one: for tests of
  ///   many commits, whose time would be that of the disk.
  init(inMemory: Bool = false) throws {
    let base =
      inMemory && access(Self.memory, W_OK) == 0 ? Self.memory : NSTemporaryDirectory()
    Self.sweep
    path = base + "/\(Self.prefix)\(getpid())-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      print("could not remove \(path): \(error)")
    }
  }

  func file(_ name: String) -> String { path + "/" + name }

  private static let memory = "/dev/shm"
  private static let prefix = "lmdb-fault-"

  /// Removes what runs have left that were killed themselves, their mounts first; once.
  private static let sweep: Void = {
    for base in [memory, NSTemporaryDirectory()] {
      for name in (try? FileManager.default.contentsOfDirectory(atPath: base)) ?? []
      where name.hasPrefix(prefix) {
        let number = name.dropFirst(prefix.count).prefix { $0 != "-" }
        guard let process = pid_t(number), kill(process, 0) != 0, errno == ESRCH else { continue }
        let path = base + "/" + name
        Mount.unmount(path + "/mount")
        print("left by a run that was killed: \(path)")
        do {
          try FileManager.default.removeItem(atPath: path)
        } catch {
          print("could not remove \(path): \(error)")
        }
      }
    }
  }()
}

/// A file system of its own for one test, unmounted with it.
final class Mount: Sendable {
  let path: String
  private let scratch: Scratch

  /// Whether this process may mount: asked once, by mounting.
  static let isPermitted: Bool = {
    do {
      _ = try Mount(.memory(byteCount: 1 << 20))
      return true
    } catch {
      return false
    }
  }()

  /// Whether an ext4 file system may be made and mounted.
  static let hasLoop: Bool = {
    do {
      _ = try Mount(.ext4(byteCount: 4 << 20))
      return true
    } catch {
      return false
    }
  }()

  static let reason: Comment =
    "this process may not mount a file system; it runs as root, as in CI"
  static let loopReason: Comment =
    "no ext4 file system could be made in a file and mounted (root and e2fsprogs needed)"

  enum Kind: Sendable {
    case memory(byteCount: Int)
    /// In a file, through a loop device.
    case ext4(byteCount: Int)
    /// Another view of a directory, read-only.
    case readOnlyView(of: String)
  }

  init(_ kind: Kind) throws {
    scratch = try Scratch()
    path = scratch.file("mount")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    switch kind {
    case .memory(let byteCount):
      try Self.run("mount", ["-t", "tmpfs", "-o", "size=\(byteCount)", "tmpfs", path])
    case .ext4(let byteCount):
      let image = scratch.file("image")
      try Data().write(to: URL(filePath: image))
      try #require(truncate(image, off_t(byteCount)) == 0)
      try Self.run("mkfs.ext4", ["-q", "-F", "-m", "0", image])
      try Self.run("mount", ["-o", "loop", image, path])
    case .readOnlyView(let directory):
      try Self.run("mount", ["--bind", directory, path])
      do {
        try Self.run("mount", ["-o", "remount,ro,bind", path])
      } catch {
        Self.unmount(path)
        throw error
      }
    }
  }

  deinit { Self.unmount(path) }

  /// Unmounts what is mounted there, if anything is. Lazily: what a failed test left open must not
  /// keep it.
  fileprivate static func unmount(_ path: String) {
    guard umount2(path, Int32(MNT_DETACH)) != 0, errno != EINVAL, errno != ENOENT else {
      return
    }
    print("could not unmount \(path): error \(errno)")
  }

  func file(_ name: String) -> String { path + "/" + name }

  /// Leaves no more room than that, with a file called `ballast`.
  func fill(leaving byteCount: Int = 0) throws {
    let descriptor = open(file("ballast"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    for size in [1 << 20, 1 << 16, 1 << 12, 1 << 9, 1] {
      let chunk = [UInt8](repeating: 1, count: size)
      while freeByteCount - byteCount >= size || byteCount == 0 {
        guard write(descriptor, chunk, size) == size else { break }
      }
    }
    // Delayed allocation counts only what is written back.
    fsync(descriptor)
  }

  /// Gives the room back that `fill` took.
  func empty() throws {
    unlink(file("ballast"))
    // ext4 reuses blocks only after its journal has committed, which happens in its own time.
    for _ in 0..<500 {
      if canAllocate(512 << 10) { return }
      usleep(10_000)
    }
    throw MountError.failed("the room of a removed file did not come back")
  }

  private func canAllocate(_ byteCount: Int) -> Bool {
    let descriptor = open(file("probe"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    defer {
      close(descriptor)
      unlink(file("probe"))
    }
    return posix_fallocate(descriptor, 0, off_t(byteCount)) == 0 && fsync(descriptor) == 0
  }

  var freeByteCount: Int {
    var numbers = statvfs()
    guard statvfs(path, &numbers) == 0 else { return 0 }
    return Int(numbers.f_bavail) * Int(numbers.f_frsize)
  }

  private static func run(_ program: String, _ arguments: [String]) throws {
    let places = ["/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"]
    guard let place = places.first(where: { access($0 + program, X_OK) == 0 }) else {
      throw MountError.failed(program)
    }
    // What it has to say goes to standard error.
    let ending = try FaultChild.run(arguments, program: place + program).ending
    guard ending == .exited(0) else { throw MountError.failed(program) }
  }
}

enum MountError: Error {
  case failed(String)
}
