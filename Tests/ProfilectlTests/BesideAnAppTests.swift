import Foundation
import HubProtocol
import LMDB
import ProfileStore
import Synchronization
import Testing

@Suite("profilectl, in a process of its own beside an app that writes")
struct BesideAnAppTests {
  @Test("sees what was committed, never less than before, and the app loses nothing")
  func besideAWriter() async throws {
    let store = try TestStore()
    let alice = try TestStore.account("alice@example.org")
    let profile = try await store.profile(of: alice)
    let batchCount = 50
    let stored = Mutex(0)
    let isDone = Mutex(false)
    let writer = Task {
      var batch = 0
      while !isDone.withLock({ $0 }) {
        let changes = (0..<batchCount).map { number -> Mutation in
          .put(RecordID("\(batch)/\(number)"), Data(repeating: 65, count: 200))
        }
        try await profile.enqueue(changes, account: alice)
        batch += 1
        stored.withLock { $0 = batch * batchCount }
      }
    }
    var seen = 0
    for words in [
      ["list", "--json"], ["show", "\(profile.id)", "--json"], ["list", "--json"],
      ["outbox", "\(profile.id)", "--json"], ["list", "--json"],
      ["show", "\(profile.id)", "--json"],
    ] {
      let before = stored.withLock { $0 }
      let run = try await store.runProgram(words)
      #expect(run.exitCode == 0)
      #expect(run.errors == "")
      let count = try pendingCount(run, words[0])
      #expect(count >= max(seen, before))
      #expect(count % batchCount == 0)
      seen = count
    }
    isDone.withLock { $0 = true }
    try await writer.value
    let all = stored.withLock { $0 }
    #expect(try profile.pendingSummary().count == all)
    let last = try await store.runProgram(["list", "--json"])
    #expect(try pendingCount(last, "list") == all)
  }

  private func pendingCount(_ run: ToolRun, _ command: String) throws -> Int {
    if command == "outbox" {
      let entries = try #require(try run.json()["entries"] as? [[String: Any]])
      let orders = entries.compactMap { $0["order"] as? Int }
      #expect(orders == (0..<orders.count).map { $0 + 1 })
      return orders.count
    }
    let profile = command == "show" ? try run.json() : try #require(try run.profiles().first)
    let pending = try #require(profile["pending"] as? [String: Any])
    return try #require(pending["count"] as? Int)
  }

  @Test("reads an area whose map the app has enlarged, and finds the reader's slot free again")
  func enlargedMap() async throws {
    let store = try TestStore()
    let alice = try TestStore.account("alice@example.org")
    let profile = try await store.profile(of: alice)
    let megabyte = Data(repeating: 65, count: 1 << 20)
    for number in 0..<70 {
      try await profile.enqueue(.put(RecordID("\(number)"), megabyte), account: alice)
    }
    // The app's own count: each of its threads that has read keeps a slot ready.
    var slots: [Int] = []
    for _ in 0..<3 {
      let run = try await store.runProgram(["show", "\(profile.id)", "--json"])
      #expect(run.exitCode == 0)
      let contents = try #require(try run.json()["contents"] as? [String: Any])
      #expect(contents["mapBytes"] as? Int == profile.area.environment.mapByteCount)
      #expect(contents["isCopy"] as? Bool == false)
      slots.append(try #require(contents["readerSlots"] as? Int))
    }
    #expect(slots[1] == slots[0] && slots[2] == slots[0], "\(slots)")
  }

  @Test("changes nothing, not even where nobody has it open")
  func nothingChanged() async throws {
    let store = try TestStore()
    let alice = try TestStore.account("alice@example.org")
    let profile = try await store.profile(of: alice)
    try await profile.enqueue(.put("a", Data("1".utf8)), account: alice)
    let commands = [
      ["list"], ["show", "\(profile.id)"], ["outbox", "\(profile.id)", "--payload"],
    ]
    let open = try FileTree(store.directory)
    for words in commands { #expect(try await store.runProgram(words).exitCode == 0) }
    #expect(try FileTree(store.directory) == open)
    let copy = try store.copied()
    let closed = try FileTree(copy.directory)
    for words in commands { #expect(try await copy.runProgram(words).exitCode == 0) }
    #expect(try FileTree(copy.directory) == closed)
  }

  @Test("ends well when the reader of its output is gone")
  func closedPipe() async throws {
    let store = try TestStore()
    _ = try await store.profile(of: try TestStore.account("alice@example.org"))
    for words in [["list"], ["list", "--json"], ["--help"]] {
      let pipe = Pipe()
      try pipe.fileHandleForReading.close()
      let run = try await store.runProgram(words, outputWithoutReader: pipe)
      #expect(run.exitCode == 0)
      #expect(run.errors == "")
    }
  }
}
