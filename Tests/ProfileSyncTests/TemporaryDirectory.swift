import Foundation
import Testing

/// A directory that is removed when the test lets go of it.
final class TemporaryDirectory: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(
      path: "sync-test-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(at: url) } catch {
      Issue.record("the temporary directory \(url.path) stays: \(error)")
    }
  }
}
