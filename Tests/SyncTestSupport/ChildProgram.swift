import Foundation
import Testing

/// A program of this package in a process of its own, as the build made it.
package final class ChildProgram: Sendable {
  package enum Ending: Hashable, Sendable {
    case exited(Int32)
    case signal(Int32)
  }

  private static let starting = NSLock()
  /// Beside the tests themselves.
  private static let directory = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent()

  package let identifier: Int32
  private let output: FileHandle
  private let input: FileHandle

  package init(_ name: String, _ arguments: [String]) throws {
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
    // A child that crashes is a finding; the trace of it would only take time.
    var environment = ProcessInfo.processInfo.environment
    environment["SWIFT_BACKTRACE"] = "enable=no"
    var settings = environment.map { strdup("\($0.key)=\($0.value)") }
    defer { settings.forEach { free($0) } }
    settings.append(nil)
    var identifier: pid_t = 0
    // One at a time: a child that is started between the two would keep the other's pipe open.
    Self.starting.lock()
    defer { Self.starting.unlock() }
    for handle in [
      from.fileHandleForReading, from.fileHandleForWriting, to.fileHandleForReading,
      to.fileHandleForWriting,
    ] { _ = fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC) }
    try #require(
      posix_spawn(&identifier, program, &actions, nil, strings, settings) == 0,
      "\(program) cannot be started; build it first")
    self.identifier = identifier
    output = from.fileHandleForReading
    input = to.fileHandleForWriting
    try from.fileHandleForWriting.close()
    try to.fileHandleForReading.close()
  }

  /// The next line; nil at the end of the output.
  package func line() async -> String? {
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
  package func lines() async -> [String] {
    await onThread { [output] in
      var all: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while true {
        let count = read(output.fileDescriptor, &buffer, buffer.count)
        guard count > 0 else { break }
        all += buffer[..<count]
      }
      // As for one line, what stands behind the last newline is none.
      return all.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
        .map { String(decoding: $0, as: UTF8.self) }
    }
  }

  package func send(_ line: String) throws { try input.write(contentsOf: Data((line + "\n").utf8)) }

  package func kill(_ signal: Int32 = SIGKILL) { _ = Foundation.kill(identifier, signal) }

  /// Closes its input and waits until it is gone.
  package func end() async throws -> Ending {
    try input.close()
    return await onThread { [identifier] in
      var status: Int32 = 0
      while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
      return status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .signal(status & 0x7F)
    }
  }
}

/// Runs what blocks on a thread that nobody waits for.
private func onThread<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: body()) }
  }
}
