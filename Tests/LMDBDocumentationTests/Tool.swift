import Foundation
import Testing

/// A program of the Swift toolchain that is on the path.
enum Tool {
  /// Runs it to its end without holding a thread.
  /// - Returns: what it said on both its outputs.
  static func run(_ name: String, _ arguments: String...) async throws -> (
    status: Int32, said: String
  ) {
    let directory = try TemporaryDirectory()
    let output = directory.file("said")
    try Data().write(to: URL(filePath: output))
    let handle = try #require(FileHandle(forWritingAtPath: output))
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [name] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = handle
    process.standardError = handle
    let status = try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
    return (status, try String(contentsOfFile: output, encoding: .utf8))
  }

  /// Where the built modules and programs lie: beside this test bundle.
  static let products: URL = {
    #if os(macOS)
      for bundle in Bundle.allBundles where bundle.bundlePath.hasSuffix(".xctest") {
        return bundle.bundleURL.deletingLastPathComponent()
      }
    #endif
    return Bundle.main.bundleURL
  }()
}
