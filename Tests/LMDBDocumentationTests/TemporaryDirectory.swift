import Foundation

/// A directory of its own for one test, removed with it.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/lmdb-documentation-" + UUID().uuidString
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
}
