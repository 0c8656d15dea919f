import Foundation
import HubClient
import Measuring
import ProfileSync
import Synchronization
import ToolSupport

/// `bench replayed`: replays an account's records into a fresh store, and prints how much memory that
/// took beyond what the process had before.
///
/// `bench` starts itself with it, so that nothing else's memory is counted.
enum ReplayedCommand {
  static let hub = Option.required("hub", .string.named("url"), help: "Where the hub listens.")
  static let token = Option.required("token", .string, help: "Whose records are replayed.")
  static let store = Option.required(
    "store", .path.named("directory"), help: "Where the store is made.")
  static let count = Option.required(
    "count", .integer(in: 1...1_000_000), help: "How many records have to come.")

  static let command = Command(
    "replayed",
    summary: "Prints the bytes of memory that a replay takes; used by bench itself.",
    parameters: [hub, token, store, count]
  ) { invocation in
    guard let url = URL(string: invocation[hub]) else { throw UsageError("--hub is no URL") }
    let (hub, token, directory, count) = (
      url, invocation[token], invocation[store], invocation[count]
    )
    let bytes = try await BenchCommand.onThreadOfItsOwn {
      try grown(hub, token, directory, count)
    }
    try invocation.console.print(String(bytes))
    return .ok
  }

  private static func grown(
    _ hub: URL, _ token: String, _ directory: String, _ count: Int
  ) throws -> Int {
    let connection = try HubConnection(url: hub)
    let store = try SignedInStore.make(in: directory, token: token, transport: connection)
    let watch = try MemoryWatch()
    let pass = try store.pass(replaying: true)
    let bytes = try watch.end()
    _ = try pass.verified(.holdfast, "R3, memory", operations: count, digest: 0)
    connection.close()
    return bytes
  }

  /// Runs the command in a process of its own.
  static func measure(hub: URL, token: String, directory: String, count: Int) throws -> Double {
    let text = try ChildProcess.output(
      CommandLine.executable,
      [
        "replayed", "--hub", hub.absoluteString, "--token", token, "--store", directory,
        "--count", String(count),
      ]
    ).trimmingCharacters(in: .whitespacesAndNewlines)
    guard let bytes = Double(text) else {
      throw BenchFailure(sentence: "bench replayed said '\(text)'")
    }
    return bytes
  }
}

/// Looks again and again at how much memory of its own this process has.
private final class MemoryWatch: Sendable {
  private let before: Int
  private let most: Mutex<Int>
  private let isOver = Atomic(false)
  private let failure = Mutex<(any Error)?>(nil)

  /// Begins.
  init() throws {
    before = try Self.anonymousByteCount()
    most = Mutex(before)
    let thread = Thread { [self] in
      while !isOver.load(ordering: .relaxed) {
        look()
        usleep(1_000)
      }
    }
    thread.start()
  }

  private func look() {
    do {
      let now = try Self.anonymousByteCount()
      most.withLock { $0 = max($0, now) }
    } catch {
      failure.withLock { $0 = error }
    }
  }

  /// - Returns: the most that there was beyond what was there at the beginning.
  func end() throws -> Int {
    look()
    isOver.store(true, ordering: .relaxed)
    if let error = failure.withLock({ $0 }) { throw error }
    return most.withLock { $0 } - before
  }

  /// See proc(5): memory that is no file's.
  private static func anonymousByteCount() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = text.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
    guard let word = line?.split(whereSeparator: \.isWhitespace).dropFirst().first,
      let kibibytes = Int(word)
    else {
      throw BenchFailure(sentence: "/proc/self/status can't be understood")
    }
    return kibibytes << 10
  }
}
