package import Foundation

/// A program of the Swift toolchain that is on the path, or one that was built.
package enum Tool {
  /// What a program said on both its outputs before it ended.
  package struct Run {
    package let status: Int32
    package let said: String
  }

  /// It ended with another status than 0.
  package struct Failed: Error, CustomStringConvertible {
    package let description: String
  }

  /// Where the built modules and programs lie: beside this test bundle.
  package static let products: URL = {
    #if os(macOS)
      for bundle in Bundle.allBundles where bundle.bundlePath.hasSuffix(".xctest") {
        return bundle.bundleURL.deletingLastPathComponent()
      }
    #endif
    return Bundle.main.bundleURL
  }()

  /// Runs it to its end without holding a thread.
  package static func run(_ name: String, _ arguments: [String]) async throws -> Run {
    let output = FileManager.default.temporaryDirectory.appending(path: "said-\(UUID())")
    try Data().write(to: output)
    let handle = try FileHandle(forWritingTo: output)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [name] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = handle
    process.standardError = handle
    let status: Int32 = try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
    let said = try String(contentsOf: output, encoding: .utf8)
    try FileManager.default.removeItem(at: output)
    return Run(status: status, said: said)
  }

  /// Runs it and expects that all is well.
  /// - Returns: what it said.
  @discardableResult
  package static func succeed(_ name: String, _ arguments: [String]) async throws -> String {
    let run = try await run(name, arguments)
    guard run.status == 0 else {
      throw Failed(description: "\(name) ended with \(run.status): \(run.said)")
    }
    return run.said
  }
}
