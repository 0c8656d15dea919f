import Foundation
import HubClient
import ToolSupport

/// A `hubd` of this build in a process of its own, with a key and data of its own.
final class HubProcess {
  let url: URL
  let data: String
  private let key: String
  private let process = Process()
  private let registration: Interrupts.Registration
  private let standardOutput = Pipe()

  /// Beside this program.
  private static var executable: String {
    URL(filePath: CommandLine.executable).deletingLastPathComponent().appending(path: "hubd")
      .path(percentEncoded: false)
  }

  /// Starts it and waits until it says where it listens.
  /// - Parameter directory: its data and its key go there.
  init(in directory: String) throws {
    key = directory + "/key.jwk"
    data = directory + "/data"
    guard FileManager.default.isExecutableFile(atPath: Self.executable) else {
      throw BenchFailure(sentence: "hubd is not beside bench: build it with the same settings")
    }
    _ = try ChildProcess.output(
      Self.executable, ["key", "--algorithm", "ES256", "--out", key])
    process.executableURL = URL(filePath: Self.executable)
    process.arguments = ["serve", "--key", key, "--data", data, "--port", "0"]
    process.standardOutput = standardOutput
    process.standardError = FileHandle.nullDevice
    try process.run()
    let identifier = process.processIdentifier
    registration = Interrupts.onInterrupt { _ in kill(identifier, SIGTERM) }
    var line = Data()
    while let byte = try standardOutput.fileHandleForReading.read(upToCount: 1),
      byte != Data("\n".utf8)
    {
      line.append(byte)
    }
    let text = String(decoding: line, as: UTF8.self)
    guard text.hasPrefix("listening on "),
      let address = text.split(separator: " ").last, let url = URL(string: String(address))
    else {
      process.terminate()
      throw BenchFailure(sentence: "hubd did not say where it listens")
    }
    self.url = url
  }

  deinit { end() }

  /// A token that it takes, for a day.
  func token(for account: String) throws -> String {
    try ChildProcess.output(
      Self.executable, ["token", "--key", key, "--account", account, "--ttl", "86400"]
    ).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// The data file of its store.
  var dataFile: String { data + "/store/data.mdb" }

  /// Stops it in order.
  func end() {
    guard registration.cancel() else { return }
    process.terminate()
    process.waitUntilExit()
  }
}
