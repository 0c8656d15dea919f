import Foundation

/// A program that is run to its end, with what it wrote.
struct CommandLineTool {
  let status: Int32
  let output: String
  let errors: String

  /// Runs a program that is found on `PATH`, or at an absolute path.
  ///
  /// Its output goes to files, so that no pipe can fill up; no thread of the task pool waits.
  static func run(
    _ name: String, _ arguments: [String], input: String? = nil
  ) async throws -> CommandLineTool {
    let directory = try TemporaryDirectory()
    func handle(_ file: String) throws -> FileHandle {
      _ = FileManager.default.createFile(atPath: directory.file(file), contents: nil)
      return try FileHandle(forWritingTo: URL(fileURLWithPath: directory.file(file)))
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [name] + arguments
    process.standardOutput = try handle("output")
    process.standardError = try handle("errors")
    if let input {
      process.standardInput = try FileHandle(forReadingFrom: URL(fileURLWithPath: input))
    } else {
      process.standardInput = FileHandle.nullDevice
    }
    let status: Int32 = try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
    func text(_ file: String) throws -> String {
      String(
        decoding: try Data(contentsOf: URL(fileURLWithPath: directory.file(file))), as: UTF8.self)
    }
    return CommandLineTool(status: status, output: try text("output"), errors: try text("errors"))
  }

  /// The output in sections (a line that is not indented, without its number, begins one), each with
  /// its `name: number` lines.
  var sections: [String: [String: UInt64]] {
    var sections: [String: [String: UInt64]] = [:]
    var current = ""
    for line in output.split(separator: "\n") {
      guard line.hasPrefix(" ") else {
        current = String(line)
        continue
      }
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, let number = UInt64(parts[1].trimmingCharacters(in: .whitespaces))
      else { continue }
      sections[current, default: [:]][parts[0].trimmingCharacters(in: .whitespaces)] = number
    }
    return sections
  }
}
