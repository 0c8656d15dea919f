import Foundation
import Testing

/// A directory with a store and what lies beside it, on the machine's memory file system where there is
/// one: these tests make thousands of commits, whose time would be that of the disk.
final class StoreDirectory: Sendable {
  let url: URL
  /// Where the store is.
  var store: URL { url.appending(path: "store", directoryHint: .isDirectory) }

  init(on disk: SmallDisk? = nil) throws {
    Self.sweep
    let base =
      disk?.path ?? (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory())
    url = URL(
      filePath: base + "/crash-test-\(getpid())-" + UUID().uuidString, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  /// Removes what runs have left that were killed themselves; once.
  private static let sweep: Void = Leftovers.sweep("crash-test-", in: "/dev/shm")

  deinit {
    do { try FileManager.default.removeItem(at: url) } catch {
      Issue.record("the directory \(url.path) stays: \(error)")
    }
  }
}

/// A file system of its own, in memory and small, for one test; unmounted with it.
final class SmallDisk: Sendable {
  let path: String

  /// Whether this process may mount: asked once, by mounting.
  static let isPermitted: Bool = {
    do {
      _ = try SmallDisk(byteCount: 1 << 20)
      return true
    } catch {
      print("skipped: tests that mount a disk need root (\(error))")
      return false
    }
  }()
  static let reason: Comment = "a small disk can be mounted by root only"

  struct CannotMount: Error {
    let number: Int32
  }

  /// Unmounts and removes what runs have left that were killed themselves; once.
  private static let sweep: Void = Leftovers.sweep("crash-disk-", in: NSTemporaryDirectory())

  init(byteCount: Int) throws {
    Self.sweep
    path = NSTemporaryDirectory() + "/crash-disk-\(getpid())-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    guard mount("tmpfs", path, "tmpfs", 0, "size=\(byteCount)") == 0 else {
      let number = errno
      rmdir(path)
      throw CannotMount(number: number)
    }
  }

  /// Allows or forbids to write.
  func setReadOnly(_ isReadOnly: Bool) throws {
    let flags = UInt(MS_REMOUNT) | (isReadOnly ? UInt(MS_RDONLY) : 0)
    guard mount("tmpfs", path, "tmpfs", flags, nil) == 0 else { throw CannotMount(number: errno) }
  }

  deinit {
    // Lazily: what a failed test left open must not keep it.
    if umount2(path, Int32(MNT_DETACH)) != 0 { print("could not unmount \(path): error \(errno)") }
    rmdir(path)
  }
}

/// What a run that was killed could not remove. Its directories bear the number of its process.
private enum Leftovers {
  static func sweep(_ prefix: String, in base: String) {
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: base) else { return }
    for name in names where name.hasPrefix(prefix) {
      let number = name.dropFirst(prefix.count).prefix { $0 != "-" }
      guard let process = pid_t(number), kill(process, 0) != 0, errno == ESRCH else { continue }
      let path = base + "/" + name
      // Of what was no mount this changes nothing.
      umount2(path, Int32(MNT_DETACH))
      do {
        try FileManager.default.removeItem(atPath: path)
        print("left by a run that was killed: \(path)")
      } catch { print("could not remove \(path): \(error)") }
    }
  }
}
