import Foundation
import LMDB

/// `fork PATH ROUNDS`: forks while other threads read and write, and says how each child fared.
///
/// The child must be refused on the environment of its parent, may open it for itself, and ends
/// without harm to the parent's.
struct Forking {
  let path: String
  let roundCount: Int

  init(_ words: ArraySlice<String>) throws {
    path = try words.word(0)
    roundCount = try words.number(1)
  }

  func run() throws {
    let environment = try Environment.open(at: path)
    let table = try environment.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
    try environment.write { try $0.put(0, for: 0, in: table) }
    let others = Others(environment, table)
    for round in 1...roundCount {
      let child = try Self.fork()
      if child == 0 {
        // Neither `exit` nor a return: what the parent registered to run at its end is not ours.
        _exit(inChild(environment, table, opens: round % 10 == 0))
      }
      let ended = Self.wait(for: child, seconds: 20)
      say("child \(round) \(ended)")
      let written = UInt64(round)
      try environment.write { try $0.put(written, for: 0, in: table) }
      guard try environment.read({ try $0.value(of: 0, in: table) }) == written else {
        throw CommitStreams.Wrong(what: "the parent's own write")
      }
    }
    say("ok \(try others.stop())")
    try environment.close()
  }

  /// - Returns: an exit code that names what was wrong; 0 when nothing was.
  private func inChild(
    _ environment: Environment, _ table: Table<UInt64Codec, UInt64Codec>, opens: Bool
  ) -> Int32 {
    func isRefused(_ body: () throws -> Void) -> Bool {
      do {
        try body()
        return false
      } catch let error as LMDBError {
        return error.code == .forked
      } catch {
        return false
      }
    }
    if !isRefused({ _ = try environment.read { try $0.value(of: 0, in: table) } }) { return 2 }
    if !isRefused({ try environment.write { try $0.put(99, for: 0, in: table) } }) { return 3 }
    if !isRefused({ _ = try environment.statistics() }) { return 4 }
    if !isRefused({
      _ = try environment.table("new", key: UInt64Codec.self, value: UInt64Codec.self)
    }) {
      return 5
    }
    if !isRefused({ try environment.close() }) { return 6 }
    guard opens else { return 0 }
    do {
      let own = try Environment.open(at: path)
      if own === environment { return 7 }
      let table = try own.table("t", key: UInt64Codec.self, value: UInt64Codec.self)
      if try own.read({ try $0.value(of: 0, in: table) }) == nil { return 8 }
      return 0
    } catch {
      say("child \(describe(error))")
      return 9
    }
  }

  private struct CannotFork: Error {}

  /// Swift hides `fork`, for the reasons that these tests are about.
  private static func fork() throws -> pid_t {
    guard let symbol = dlsym(nil, "fork") else { throw CannotFork() }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)
    let child = fork()
    guard child >= 0 else { throw CannotFork() }
    return child
  }

  /// How a child ended: `ok`, its exit code, its signal, or `hung`.
  private static func wait(for child: pid_t, seconds: Int) -> String {
    var status: Int32 = 0
    for _ in 0..<seconds * 1_000 {
      if waitpid(child, &status, WNOHANG) == child {
        guard status & 0x7F == 0 else { return "signal \(status & 0x7F)" }
        return status == 0 ? "ok" : "code \(status >> 8 & 0xFF)"
      }
      usleep(1_000)
    }
    kill(child, SIGKILL)
    waitpid(child, &status, 0)
    return "hung"
  }
}

/// Threads that read and write while their process forks.
private final class Others: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): all mutable state is behind the lock.
  private let lock = NSLock()
  private var mustStop = false
  private var error: (any Error)?
  private var roundCount = 0
  private let group = DispatchGroup()

  init(_ environment: Environment, _ table: Table<UInt64Codec, UInt64Codec>) {
    for number in UInt64(1)...3 {
      group.enter()
      Thread.detachNewThread { [self] in
        defer { group.leave() }
        var round: UInt64 = 0
        while !lock.withLock({ mustStop }) {
          round += 1
          do {
            if number == 1 {
              try environment.write { try $0.put(round, for: number, in: table) }
            } else {
              _ = try environment.read { try $0.value(of: 1, in: table) }
            }
          } catch {
            lock.withLock { self.error = error }
            return
          }
          lock.withLock { roundCount += 1 }
        }
      }
    }
  }

  func stop() throws -> Int {
    lock.withLock { mustStop = true }
    group.wait()
    if let error { throw error }
    return roundCount
  }
}
