import Foundation
import Testing

/// The Swift compiler, as a client of the modules built beside the test bundle starts it.
package enum Compiler {
  /// One error, with the file it is about.
  package struct Refusal: Sendable {
    package let file: String
    package let message: String
  }

  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  private static let products: URL = {
    #if os(macOS)
      for bundle in Bundle.allBundles where bundle.bundlePath.hasSuffix(".xctest") {
        return bundle.bundleURL.deletingLastPathComponent()
      }
    #endif
    return Bundle.main.bundleURL
  }()

  /// Compiles files as one module, with no flag but the language mode.
  ///
  /// Not with `-typecheck`: what may not escape is found behind the type checker.
  /// - Parameter sources: the text of each file by its name, which needs no ending.
  /// - Returns: the errors; none when all is well.
  package static func refusals(of sources: [String: String]) async throws -> [Refusal] {
    let directory = FileManager.default.temporaryDirectory.appending(
      path: "holdfast-compile-\(UUID())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    var files: [String] = []
    for (name, text) in sources {
      let file = directory.appending(path: "\(name).swift")
      try text.write(to: file, atomically: false, encoding: .utf8)
      files.append(file.path)
    }
    let said = directory.appending(path: "said")
    try Data().write(to: said)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      [
        "swiftc", "-swift-version", "6", "-whole-module-optimization", "-Onone", "-emit-sil",
        "-o", "/dev/null", "-module-name", "Client", "-suppress-warnings",
        "-diagnostic-style", "llvm",
        "-I", products.appending(path: "Modules").path,
        "-Xcc", "-fmodule-map-file=\(root.path)/Sources/CLMDB/module.modulemap",
      ] + files
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = try FileHandle(forWritingTo: said)
    let status = try await ended(process)
    let text = try String(contentsOf: said, encoding: .utf8)
    let refusals = text.matches(of: /([^\/\n]+)\.swift:\d+:\d+: error: (.*)/).map {
      Refusal(file: String($0.output.1), message: String($0.output.2))
    }
    // Neither a missing compiler nor its crash is a refusal.
    try #require((status == 0) == refusals.isEmpty, "the compiler ended with \(status): \(text)")
    return refusals
  }

  /// Runs it to its end without holding a thread.
  private static func ended(_ process: Process) async throws -> Int32 {
    try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
  }
}
