import Foundation
import Testing

/// A directory with a store and what lies beside it, on the machine's memory file system where there is
/// one: these tests make thousands of commits, whose time would be that of the disk.
final class StoreDirectory: Sendable {
  let url: URL
  /// Where the store is.
  var store: URL { url.appending(path: "store", directoryHint: .isDirectory) }

  init(on disk: SmallDisk? = nil) throws {
    let base =
      disk?.path ?? (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory())
    url = URL(
      filePath: base + "/crash-test-\(getpid())-" + UUID().uuidString, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

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

  init(byteCount: Int) throws {
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
