import Foundation
import Testing

/// A directory of a test's own, removed afterwards.
final class TemporaryDirectory: Sendable {
  let url = FileManager.default.temporaryDirectory
    .appending(path: "profilectl-\(UUID().uuidString)", directoryHint: .isDirectory)

  init() throws {
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
  }

  deinit {
    #expect(throws: Never.self) { try FileManager.default.removeItem(at: url) }
  }
}
