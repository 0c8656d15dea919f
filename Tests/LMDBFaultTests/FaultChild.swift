import Foundation
import Testing

/// A process that the tests start, ask and kill; by default the build's `lmdb-fault-child`.
///
/// Its standard output comes line by line; its standard input takes commands. What
/// has not ended by itself is killed with the object. Every wait has a deadline, so that a child
/// that hangs is a finding and not a test that never ends.
final class FaultChild: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): each object is used by one test, which hands it to one thread at
  // a time; the process number does not change.

  /// How a process ended.
  enum Ending: Equatable, CustomStringConvertible {
    case exited(Int32)
    case signal(Int32)

    var description: String {
      switch self {
      case .exited(let code): "exit code \(code)"
      case .signal(let number): "signal \(number)"
      }
    }
  }

  let identifier: pid_t
  private let connection: Int32
  private var pendingBytes: [UInt8] = []
  private var ending: Ending?

  /// Beside the tests themselves.
  static var executable: String {
    URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
      .appending(path: "lmdb-fault-child").path
  }

  init(_ arguments: [String], program: String = executable) throws {
    var ends: [Int32] = [-1, -1]
    // Closed in every child that another test starts, so that the end of this one is the end of its
    // output. Sockets, because a pipe whose reader was killed would end this process by SIGPIPE.
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
    defer { close(ends[1]) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    var words = ([program] + arguments).map { strdup($0) }
    // A child that crashes is a finding; the trace of it would only take time.
    var environment = ProcessInfo.processInfo.environment
    environment["SWIFT_BACKTRACE"] = "enable=no"
    var settings = environment.map { strdup("\($0.key)=\($0.value)") }
    defer { (words + settings).forEach { free($0) } }
    words.append(nil)
    settings.append(nil)
    var identifier: pid_t = 0
    try #require(
      posix_spawn(&identifier, program, &actions, nil, words, settings) == 0,
      "\(program) cannot be started; build it first")
    self.identifier = identifier
    connection = ends[0]
  }

  deinit {
    if ending == nil {
      kill()
      var status: Int32 = 0
      waitpid(identifier, &status, 0)
    }
    close(connection)
  }

  func kill(_ signal: Int32 = SIGKILL) { _ = Foundation.kill(identifier, signal) }

  /// The next line, or nil at the end of the output.
  func readLine(within seconds: Int = 60) throws -> String? {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      if let end = pendingBytes.firstIndex(of: UInt8(ascii: "\n")) {
        defer { pendingBytes.removeFirst(end + 1) }
        return String(decoding: pendingBytes[..<end], as: UTF8.self)
      }
      var buffer = [UInt8](repeating: 0, count: 16_384)
      let count = try receive(&buffer, until: deadline)
      guard count > 0 else {
        // What stands behind the last newline was cut by a kill: no line.
        pendingBytes = []
        return nil
      }
      pendingBytes += buffer[..<count]
    }
  }

  /// All lines up to the end of the output.
  func readLines(within seconds: Int = 60) throws -> [String] {
    var lines: [String] = []
    while let line = try readLine(within: seconds) { lines.append(line) }
    return lines
  }

  private func receive(
    _ buffer: inout [UInt8], until deadline: ContinuousClock.Instant
  ) throws -> Int {
    while true {
      let left = (deadline - .now).components
      let milliseconds = left.seconds * 1_000 + left.attoseconds / 1_000_000_000_000_000
      var polled = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
      let ready = poll(&polled, 1, Int32(clamping: max(milliseconds, 0)))
      if ready < 0, errno == EINTR { continue }
      guard ready != 0 else {
        kill()
        throw FaultChildError.hung
      }
      let count = read(connection, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      return count
    }
  }

  /// Sends a command and returns the child's answer.
  /// - Throws: `ended` with how it ended when there is none.
  func ask(_ command: String, within seconds: Int = 60) throws -> String {
    send(command)
    guard let answer = try readLine(within: seconds) else {
      throw FaultChildError.ended(wait(), command)
    }
    return answer
  }

  /// Asks, and expects an answer that is, or with `prefix` begins with, what is given.
  func expect(
    _ command: String, _ answer: String = "ok", prefix: Bool = false, _ comment: String = "",
    at location: SourceLocation = #_sourceLocation
  ) throws {
    let found = try ask(command)
    let isAsExpected = prefix ? found.hasPrefix(answer + " ") : found == answer
    #expect(
      isAsExpected, "\(command): \(found), not \(answer) \(comment)", sourceLocation: location)
  }

  func send(_ command: String) {
    let bytes = Array((command + "\n").utf8)
    _ = Foundation.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Waits until it is gone.
  @discardableResult
  func wait() -> Ending {
    if let ending { return ending }
    var status: Int32 = 0
    while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
    let ended: Ending =
      status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .signal(status & 0x7F)
    ending = ended
    return ended
  }

  /// Kills it and waits until it is gone.
  func killAndWait() {
    kill()
    wait()
  }

  /// Runs a program until it ends by itself.
  static func run(
    _ arguments: [String], program: String = executable, within seconds: Int = 60
  ) throws -> (ending: Ending, lines: [String]) {
    let child = try FaultChild(arguments, program: program)
    let lines = try child.readLines(within: seconds)
    return (child.wait(), lines)
  }
}

enum FaultChildError: Error {
  case hung
  case ended(FaultChild.Ending, String)
}
