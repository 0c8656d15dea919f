import HoldfastTesting
import SyncTestSupport
import Synchronization
import Testing

@testable import ProfileSync

@Suite("A commit that gathers what it settles")
struct GatheringCommitTests {
  private let clock = ManualClock()

  private func commit(
    _ items: [Int], patience: Duration = .seconds(1),
    _ body: @escaping @Sendable ([Int]) async throws -> Int = { $0.reduce(0, +) }
  ) -> GatheringCommit<Int, Int> {
    GatheringCommit(items, countMax: 3, patience: patience, clock: clock, body)
  }

  @Test("who joins in time is committed with the first, and it begins when it is full")
  func joining() async throws {
    let began = Gate()
    let commit = commit([1]) { items in
      began.open()
      return items.reduce(0, +)
    }
    try await clock.waitForSleepers()
    #expect(!commit.hasEnded)
    #expect(commit.join(2))
    #expect(commit.join(3))
    // Nobody waits for it, and no time goes by.
    await began.wait()
    #expect(!commit.join(4))
    #expect(try await commit.wait() == 6)
    #expect(commit.items == [1, 2, 3])
    #expect(commit.hasEnded)
  }

  @Test("it begins alone when its patience is over")
  func patience() async throws {
    let began = Gate()
    let commit = commit([1]) { items in
      began.open()
      return items.count
    }
    try await clock.waitForSleepers()
    clock.advance(by: .seconds(1))
    await began.wait()
    #expect(!commit.join(2))
    #expect(try await commit.wait() == 1)
  }

  @Test("who waits for it does not wait for others to join")
  func waiting() async throws {
    let commit = commit([1])
    try await clock.waitForSleepers()
    #expect(try await commit.wait() == 1)
    #expect(!commit.join(2))
    #expect(commit.items == [1])
  }

  @Test("one that is full, or without patience, does not sleep", arguments: [[1, 2, 3], [1]])
  func atOnce(_ items: [Int]) async throws {
    let began = Gate()
    let commit = commit(items, patience: items.count < 3 ? .zero : .seconds(1)) { items in
      began.open()
      return items.count
    }
    await began.wait()
    #expect(try await commit.wait() == items.count)
    #expect(clock.sleeping.isEmpty)
  }

  @Test("what it throws reaches who waits, and nobody can join what has failed")
  func failing() async throws {
    struct Refused: Error {}
    let commit = commit([1]) { _ in throw Refused() }
    await #expect(throws: Refused.self) { try await commit.wait() }
    #expect(commit.hasEnded)
    #expect(!commit.join(2))
  }
}
