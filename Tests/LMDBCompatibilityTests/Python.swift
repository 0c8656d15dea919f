import Foundation
import Testing

/// PyPI's `lmdb`, which brings an LMDB of its own, in the place where `Tools/test` installs it.
enum Python {
  static var interpreter: String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent(".build/python/bin/python").path
  }

  /// Runs a script to its end.
  /// - Returns: what it wrote.
  static func run(
    _ script: String, _ arguments: [String], mayBeKilled: Bool = false,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    try #require(
      FileManager.default.isExecutableFile(atPath: interpreter),
      "PyPI's lmdb is missing: run Tools/test once, which installs it",
      sourceLocation: sourceLocation)
    let tool = try await CommandLineTool.run(interpreter, ["-c", script] + arguments)
    try #require(tool.status == 0 || mayBeKilled, "\(tool.errors)", sourceLocation: sourceLocation)
    return tool.output
  }
}
