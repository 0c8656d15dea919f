import Foundation

/// Another program, run to its end.
enum ChildProcess {
  /// Runs a program and returns what it printed.
  /// - Throws: ``BenchFailure`` when it does not end with 0.
  static func output(_ program: String, _ arguments: [String], input: String = "") throws -> String
  {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    let output = Pipe()
    let errors = Pipe()
    let toProgram = Pipe()
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = toProgram
    try process.run()
    try toProgram.fileHandleForWriting.write(contentsOf: Data(input.utf8))
    try toProgram.fileHandleForWriting.close()
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    let complaint = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      let name = URL(filePath: program).lastPathComponent
      throw BenchFailure(
        sentence: "\(name) ended with \(process.terminationStatus): "
          + String(decoding: complaint.prefix(500), as: UTF8.self))
    }
    return String(decoding: printed, as: UTF8.self)
  }

  /// Where a program is, as the shell would find it.
  static func find(_ name: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }
}

extension CommandLine {
  /// This program.
  static var executable: String {
    Bundle.main.executablePath ?? ProcessInfo.processInfo.arguments[0]
  }
}
