import Foundation
import Testing

/// A `hubd` in a process of its own, as the build made it.
final class HubProcess: Sendable {
  let url: URL
  private let process: ChildProcess

  /// Beside the tests themselves.
  static var executable: URL {
    URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
      .appending(path: "hubd")
  }

  /// Starts it and waits for the line that says where it listens.
  init(_ arguments: [String]) async throws {
    process = try ChildProcess(HubProcess.executable, ["serve"] + arguments)
    let process = process
    let line = try await blocking { process.readLine() }
    let prefix = "listening on "
    guard line.hasPrefix(prefix), let url = URL(string: String(line.dropFirst(prefix.count))) else {
      let status = try await blocking { process.wait() }
      throw HubProcessError.notStarted(line, status)
    }
    self.url = url
  }

  deinit { process.kill(SIGKILL) }

  /// Ends it by a signal and waits until it is gone.
  /// - Returns: its exit code, or the negative number of the signal that ended it.
  func end(by signal: Int32) async throws -> Int32 {
    process.kill(signal)
    let process = process
    return try await blocking { process.wait() }
  }

  /// Runs it, or another program, with arguments until it ends by itself.
  static func run(
    _ arguments: [String], of program: URL = executable
  ) async throws -> (status: Int32, output: String) {
    try await blocking {
      let process = try ChildProcess(program, arguments)
      let output = process.readAll()
      return (process.wait(), output)
    }
  }
}

private let spawning = NSLock()

enum HubProcessError: Error {
  case notStarted(String, Int32)
}

/// A child whose standard output and error come through one pipe.
private final class ChildProcess: Sendable {
  private let identifier: pid_t
  private let output: Int32

  init(_ executable: URL, _ arguments: [String]) throws {
    var ends: [Int32] = [-1, -1]
    // One at a time: a child that is started between the two calls would hold the other's pipe.
    spawning.lock()
    defer { spawning.unlock() }
    try #require(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[1]) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
    var words = ([executable.path] + arguments).map { strdup($0) }
    defer { words.forEach { free($0) } }
    words.append(nil)
    var identifier: pid_t = 0
    try #require(
      posix_spawn(&identifier, executable.path, &actions, nil, words, environ) == 0,
      "\(executable.path) cannot be started; build it first")
    self.identifier = identifier
    output = ends[0]
  }

  deinit { close(output) }

  func kill(_ signal: Int32) { _ = Foundation.kill(identifier, signal) }

  func wait() -> Int32 {
    var status: Int32 = 0
    guard waitpid(identifier, &status, 0) == identifier else { return -1 }
    return status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
  }

  func readLine() -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while read(output, &byte, 1) == 1, byte != UInt8(ascii: "\n") { bytes.append(byte) }
    return String(decoding: bytes, as: UTF8.self)
  }

  func readAll() -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while read(output, &byte, 1) == 1 { bytes.append(byte) }
    return String(decoding: bytes, as: UTF8.self)
  }
}
