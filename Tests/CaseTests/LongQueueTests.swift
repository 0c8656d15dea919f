import Foundation
import HubProtocol
import ProfileStore
import ProfileSync
import SyncTestSupport
import Synchronization
import Testing

@Suite("I: a long queue")
struct LongQueueTests {
  private static let depth = 100_000

  /// What a child said under a name.
  private static func number(_ name: String, in lines: [String]) throws -> Int {
    let line = try #require(lines.first { $0.hasPrefix(name + " ") }, "\(lines)")
    return try #require(Int(line.dropFirst(name.count + 1)))
  }

  @Test(
    "I1, I2, I3: at 100,000 waiting, an enqueue and an open cost what they cost at the beginning")
  func costs() async throws {
    try await TestHub.run { hub in
      let directory = try TemporaryDirectory()
      let short = try await CaseChild.run(
        "queue", hub, directory.url, as: "alice", ["1000"])
      #expect(short.ending == .exited(0), "\(short.lines)")
      let before = try await CaseChild.run("queue", hub, directory.url, as: "alice", ["0"]).lines
      let filling = try await CaseChild.run(
        "queue", hub, directory.url, as: "alice", ["\(Self.depth)"])
      #expect(filling.ending == .exited(0), "\(filling.lines)")
      let early = try Self.number("early", in: filling.lines)
      let late = try Self.number("late", in: filling.lines)
      // Trees of a hundred times the rows have two more levels at most, each a page that is copied;
      // an enqueue changes eight trees at most, with the lists of tables and of free pages.
      let more = 2 * 8 * Int(getpagesize())
      #expect(late <= early + more, "bytes written for each enqueue: \(early), then \(late)")
      let after = try await CaseChild.run("queue", hub, directory.url, as: "alice", ["0"]).lines
      #expect(try Self.number("pending", in: after) >= Self.depth)
      let faults = try [before, after].map { try Self.number("faults", in: $0) }
      let memory = try [before, after].map { try Self.number("memory", in: $0) }
      let filled = try Self.number("filled", in: filling.lines)
      if !isSanitized {
        #expect(faults[1] <= faults[0] * 2 + 50, "pages touched by opening: \(faults)")
        #expect(memory[1] <= memory[0] + (8 << 20), "anonymous memory after opening: \(memory)")
        #expect(filled <= memory[0] + (64 << 20), "anonymous memory while filling: \(filled)")
      }
      try await drains(directory, hub)
    }
  }

  /// Killed again and again while it drains, it goes on where it was.
  private func drains(_ directory: TemporaryDirectory, _ hub: TestHub) async throws {
    let app = directory.url.appending(path: "app.json").path
    var last: UInt64 = 0
    for _ in 0..<3 {
      // Verify, the empty scan of a first pass, then pushes of 500.
      let child = try await CaseChild.run(
        "pass", hub, directory.url, as: "alice", ["ordinary", app, "request:6"])
      #expect(child.ending == .signal(SIGKILL), "\(child.lines.prefix(5))")
      let applied = try await hub.highWater(of: "alice")
      #expect(applied >= last + 1_000)
      let profile = try #require(
        try StoreInspector(directory: directory.url).profiles().first)
      #expect(profile.pending.count + Int(applied) >= Self.depth)
      last = applied
    }
  }

  @Test("I4: 3,500 remote deletions arrive in seven pages, with a commit for each page")
  func manyDeletions() async throws {
    try await TestHub.run { hub in
      let names = (1...3_500).map { RecordID("r\($0)") }
      let desk = try await Person.withRecords(hub, names)
      let alice = try await Device(hub).signIn()
      try await alice.sync()
      #expect(try alice.texts().count == 3_500)
      try await desk.delete(names)
      try await desk.sync()
      let commits = Log<Void>()
      alice.profile.area.onCommit.withLock { $0 = { if $0 == .committed { commits.add(()) } } }
      try await alice.sync()
      alice.profile.area.onCommit.withLock { $0 = nil }
      #expect(try alice.texts().isEmpty)
      // Seven pages; beside them what a pass notes at its beginning and its end.
      #expect(commits.entries.count <= 7 + 3)
    }
  }
}
