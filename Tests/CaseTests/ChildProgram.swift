import Foundation
import HubServer
import SyncTestSupport
import Testing

/// A program of this package in a process of its own, as the build made it.
final class ChildProgram: Sendable {
  enum Ending: Hashable, Sendable {
    case exited(Int32)
    case signal(Int32)
  }

  private static let starting = NSLock()
  /// Beside the tests themselves.
  private static let directory = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent()

  private let identifier: pid_t
  private let output: FileHandle
  private let input: FileHandle

  init(_ name: String, _ arguments: [String]) throws {
    let program = Self.directory.appending(path: name).path
    let (from, to) = (Pipe(), Pipe())
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, from.fileHandleForWriting.fileDescriptor, 1)
    posix_spawn_file_actions_adddup2(&actions, to.fileHandleForReading.fileDescriptor, 0)
    var strings = ([program] + arguments).map { strdup($0) }
    defer { strings.forEach { free($0) } }
    strings.append(nil)
    var identifier: pid_t = 0
    // One at a time: a child that is started between the two would keep the other's pipe open.
    Self.starting.lock()
    defer { Self.starting.unlock() }
    for handle in [
      from.fileHandleForReading, from.fileHandleForWriting, to.fileHandleForReading,
      to.fileHandleForWriting,
    ] { _ = fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC) }
    try #require(
      posix_spawn(&identifier, program, &actions, nil, strings, environ) == 0,
      "\(program) cannot be started; build it first")
    self.identifier = identifier
    output = from.fileHandleForReading
    input = to.fileHandleForWriting
    try from.fileHandleForWriting.close()
    try to.fileHandleForReading.close()
  }

  /// The next line; nil at the end of the output.
  func line() async -> String? {
    await onThread { [output] in
      var bytes: [UInt8] = []
      var byte: UInt8 = 0
      while read(output.fileDescriptor, &byte, 1) == 1 {
        if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
        bytes.append(byte)
      }
      // What stands behind the last newline was cut by a kill: no line.
      return nil
    }
  }

  /// All lines up to the end of the output.
  func lines() async -> [String] {
    var lines: [String] = []
    while let line = await line() { lines.append(line) }
    return lines
  }

  func send(_ line: String) throws { try input.write(contentsOf: Data((line + "\n").utf8)) }

  func kill(_ signal: Int32 = SIGKILL) { _ = Foundation.kill(identifier, signal) }

  /// Closes its input and waits until it is gone.
  func end() async throws -> Ending {
    try input.close()
    return await onThread { [identifier] in
      var status: Int32 = 0
      while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
      return status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .signal(status & 0x7F)
    }
  }
}

/// A `case-child`.
enum CaseChild {
  /// - Parameter words: what the task needs besides hub, directory and token.
  static func start(
    _ task: String, _ hub: TestHub, _ directory: URL, as account: String, _ words: [String] = []
  ) throws -> ChildProgram {
    try ChildProgram(
      "case-child",
      [task, hub.server.url.absoluteString, directory.path, try hub.token(for: account)] + words)
  }

  /// Runs one to its end.
  static func run(
    _ task: String, _ hub: TestHub, _ directory: URL, as account: String, _ words: [String] = []
  ) async throws -> (lines: [String], ending: ChildProgram.Ending) {
    let child = try start(task, hub, directory, as: account, words)
    let lines = await child.lines()
    return (lines, try await child.end())
  }
}

/// Runs what blocks on a thread that nobody waits for.
private func onThread<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: body()) }
  }
}
