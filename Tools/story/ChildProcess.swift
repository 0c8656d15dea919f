import Foundation
import ToolSupport

/// Another program of the product, run to its end, or as a server until it is stopped.
enum ChildProcess {
  /// Runs a program and returns what it printed.
  /// - Throws: ``StoryFailure`` when it does not end with 0.
  static func output(_ program: String, _ arguments: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let bytes = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw StoryFailure(
        sentence: "\(program) \(arguments.first ?? "") ended with \(process.terminationStatus)")
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// A running `hubd`, stopped with the story, also when it is interrupted.
final class HubProcess {
  private let process = Process()
  private let registration: Interrupts.Registration
  let url: URL

  /// Starts it and waits until it says where it listens.
  init(hubd: String, configuration: String) throws {
    process.executableURL = URL(filePath: hubd)
    process.arguments = ["serve", "--config", configuration]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let pid = process.processIdentifier
    registration = Interrupts.onInterrupt { _ in kill(pid, SIGTERM) }
    var line = Data()
    while let byte = try pipe.fileHandleForReading.read(upToCount: 1), byte != Data("\n".utf8) {
      line.append(byte)
    }
    let text = String(decoding: line, as: UTF8.self)
    guard let address = text.split(separator: " ").last, let url = URL(string: String(address)),
      text.hasPrefix("listening on ")
    else {
      process.terminate()
      throw ToolFailure(.unavailable, "hubd did not say where it listens")
    }
    self.url = url
  }

  deinit { end() }

  /// Stops it, however it ends.
  func end() {
    guard registration.cancel() else { return }
    process.terminate()
    process.waitUntilExit()
  }

  /// Stops it in order.
  func stop() throws {
    end()
    guard process.terminationStatus == 0 else {
      throw StoryFailure(sentence: "hubd ended with \(process.terminationStatus)")
    }
  }
}
