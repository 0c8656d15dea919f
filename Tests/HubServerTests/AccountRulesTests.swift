import Foundation
import HubProtocol
import HubRules
import HubServer
import Testing

@Suite("An account's state")
struct AccountStateTests {
  private let epochs = (0..<4).map { _ in UUID() }

  @Test("keeps the epochs that it left, and a fork lowers older ones above it")
  func lineage() {
    var state = AccountState(epoch: epochs[0])
    state.highWater = 100
    state.beginEpoch(epochs[1], forkedAt: 10)
    state.beginEpoch(epochs[2], forkedAt: 50)
    state.beginEpoch(epochs[3], forkedAt: 20)
    #expect(state.epoch == epochs[3])
    #expect(state.lineage.map(\.epoch) == Array(epochs[..<3]))
    #expect(state.lineage.map(\.forkedAt) == [10, 20, 20])
    #expect(state.highWater == 100)
  }

  @Test("drops the oldest epochs beyond the limit")
  func longLineage() {
    var state = AccountState(epoch: UUID())
    for _ in 0..<AccountState.lineageCountMax + 5 { state.beginEpoch(UUID(), forkedAt: 0) }
    #expect(state.lineage.count == AccountState.lineageCountMax)
  }

  @Test("never raises a floor above the high water, and never lowers one")
  func floors() {
    var state = AccountState(epoch: UUID())
    state.highWater = 10
    state.raiseMinimumCursor(to: 99)
    state.raiseIdempotencyFloor(to: 7)
    state.raiseIdempotencyFloor(to: 3)
    #expect(state.minimumCursor == 10)
    #expect(state.idempotencyFloor == 7)
  }

  @Test("that was erased and made again shares nothing with its past")
  func recreated() {
    var state = AccountState(epoch: epochs[0])
    state.highWater = 10
    state.beginEpoch(epochs[1], forkedAt: 5)
    state.erase()
    #expect(state.statusRefusal == .erased)
    state.recreate(epochs[2])
    #expect(state.statusRefusal == nil)
    #expect(state.highWater == 0)
    #expect(state.lineage.map(\.forkedAt) == [0, 0])
    #expect(state.epoch == epochs[2])
  }
}

@Suite("What a claim of epoch and cursor meets")
struct AccountGateTests {
  private static let epoch = UUID()

  private static func state(_ change: (inout AccountState) -> Void = { _ in }) -> AccountState {
    var state = AccountState(epoch: epoch)
    state.highWater = 10
    state.minimumCursor = 5
    change(&state)
    return state
  }

  @Test(
    "cursors up to the high water pass, from the minimum on",
    arguments: [
      (5, nil, GateOutcome.pass), (10, nil, .pass), (0, 5, .pass), (0, 99, .pass),
      (4, nil, .refused(.cursorExpired(minimumCursor: 5))),
      (0, 4, .refused(.cursorExpired(minimumCursor: 5))), (11, nil, .mustFork),
      (11, 12, .mustFork),
    ] as [(UInt64, UInt64?, GateOutcome)])
  func cursors(cursor: UInt64, until: UInt64?, outcome: GateOutcome) {
    let claim = CursorClaim(epoch: Self.epoch, cursor: cursor, newestWanted: until)
    #expect(Self.state().gate(claim) == outcome)
  }

  @Test("the epoch counts before the cursor, the status before the epoch")
  func order() {
    let foreign = CursorClaim(epoch: UUID(), cursor: 99)
    #expect(
      Self.state().gate(foreign) == .refused(.epochChanged(epoch: Self.epoch, lineage: [])))
    #expect(Self.state { $0.status = .disabled }.gate(foreign) == .refused(.disabled))
    #expect(Self.state { $0.status = .erased }.gate(foreign) == .refused(.erased))
  }

  @Test("a cursor above the high water forks there, at most once a minute")
  func fork() {
    var state = Self.state()
    let first = UUID()
    #expect(
      state.forkByCursor(to: first, now: 1_000)
        == .epochChanged(
          epoch: first, lineage: [LineageEntry(epoch: Self.epoch, forkedAt: 10)]))
    let before = state
    #expect(
      state.forkByCursor(to: UUID(), now: 1_059) == .forkedTooRecently(retryAfterSeconds: 1))
    #expect(state == before)
    let second = UUID()
    _ = state.forkByCursor(to: second, now: 1_060)
    #expect(state.epoch == second)
    // A clock that was set back does not lock the account.
    let third = UUID()
    _ = state.forkByCursor(to: third, now: 5)
    #expect(state.epoch == third)
  }
}

@Suite("Where a data file comes from")
struct DataFileOriginTests {
  private static let run = UUID()
  private static let other = UUID()

  @Test(
    "it is the last run's exactly if run and number say so",
    arguments: [
      (nil, 0, nil, DataFileOrigin.fresh),
      (nil, 0, [RunWindow(run: run, first: 1, last: 9)], .fresh),
      (run, 5, nil, .restored),
      (run, 5, [], .restored),
      (run, 5, [RunWindow(run: run, first: 5, last: 5)], .continued),
      (run, 5, [RunWindow(run: run, first: 4, last: 68)], .continued),
      (run, 68, [RunWindow(run: run, first: 4, last: 68)], .continued),
      (run, 3, [RunWindow(run: run, first: 4, last: 68)], .restored),
      (run, 69, [RunWindow(run: run, first: 4, last: 68)], .restored),
      (run, 5, [RunWindow(run: other, first: 4, last: 68)], .restored),
      (
        run, 5,
        [RunWindow(run: run, first: 4, last: 6), RunWindow(run: other, first: 5, last: 69)],
        .continued
      ),
    ] as [(UUID?, UInt64, [RunWindow]?, DataFileOrigin)])
  func origin(
    run: UUID?, transaction: UInt64, noted: [RunWindow]?, expected: DataFileOrigin
  ) {
    #expect(DataFileOrigin.of(run: run, transaction: transaction, noted: noted) == expected)
  }
}
