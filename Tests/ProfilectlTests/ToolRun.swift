import Foundation
import Synchronization
import Testing
import ToolSupport

@testable import profilectl

/// What the tool said and how it ended.
struct ToolRun {
  var exitCode: Int32
  var output: String
  var errors: String

  /// Runs it in this process.
  static func inProcess(
    _ directory: URL, _ words: [String], terminalOf columns: Int? = nil
  ) async -> ToolRun {
    let output = MemorySink(columns: columns)
    let errors = MemorySink(columns: nil)
    let console = Console(output: output, errorOutput: errors, environment: [:])
    let code = await ProfilectlTool.tool.run(["--store", directory.path] + words, on: console)
    return ToolRun(exitCode: code.rawValue, output: output.text, errors: errors.text)
  }

  /// Runs the program as the build made it, in a process of its own.
  ///
  /// - Parameter lost: a pipe whose reading end is closed, for the output.
  static func inOwnProcess(
    _ directory: URL, _ words: [String], outputWithoutReader lost: Pipe? = nil
  ) async throws -> ToolRun {
    let process = Process()
    process.executableURL = try executable
    process.arguments = ["--store", directory.path] + words
    let output = lost ?? Pipe()
    let errors = Pipe()
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let said = lost == nil ? try output.fileHandleForReading.readToEnd() ?? Data() : Data()
    let complained = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return ToolRun(
      exitCode: process.terminationStatus, output: String(decoding: said, as: UTF8.self),
      errors: String(decoding: complained, as: UTF8.self))
  }

  /// The JSON that was printed.
  func json() throws -> [String: Any] {
    let value = try JSONSerialization.jsonObject(with: Data(output.utf8))
    return try #require(value as? [String: Any])
  }

  /// The profiles that `list --json` printed.
  func profiles() throws -> [[String: Any]] {
    try #require(try json()["profiles"] as? [[String: Any]])
  }

  /// Beside the tests themselves.
  private static var executable: URL {
    get throws {
      let tests = Bundle.allBundles.map(\.bundleURL) + [Bundle.main.executableURL].compactMap { $0 }
      let candidates = tests.map {
        $0.resolvingSymlinksInPath().deletingLastPathComponent().appending(path: "profilectl")
      }
      return try #require(
        candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) },
        "the program profilectl is not beside the tests: build it first")
    }
  }
}

/// Keeps what was written.
final class MemorySink: ConsoleSink {
  let columns: Int?
  private let written = Mutex("")

  init(columns: Int?) { self.columns = columns }

  var isTerminal: Bool { columns != nil }
  var text: String { written.withLock { $0 } }

  func write(_ text: String) throws(OutputError) { written.withLock { $0 += text } }
}
