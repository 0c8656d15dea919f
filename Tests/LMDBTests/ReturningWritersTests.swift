import Testing

@testable import LMDB

@Suite("Whom the next commit waits for")
struct ReturningWritersTests {
  private let start = ContinuousClock.now
  private func after(_ microseconds: Int) -> ContinuousClock.Instant {
    start + .microseconds(microseconds)
  }

  @Test("is nobody before a commit, and nobody behind one that served one write")
  func alone() {
    var returning = ReturningWriters()
    let before = returning.wait(now: start)
    returning.note(served: 1, waiting: 3, since: start, now: after(200))
    let behind = returning.wait(now: after(200))
    #expect(before == nil)
    #expect(behind == nil)
  }

  @Test("are as many as were served and waited, once, and no more than a commit takes")
  func several() {
    var returning = ReturningWriters()
    returning.note(served: 5, waiting: 3, since: start, now: after(200))
    let waits = [returning.wait(now: after(210)), returning.wait(now: after(211))]
    #expect(
      waits == [
        .init(count: 8, pause: .microseconds(50), durationMax: .microseconds(200)), nil,
      ])
    returning.note(served: 500, waiting: 500, since: start, now: after(200))
    let many = returning.wait(now: after(210))
    #expect(many?.count == Environment.groupCountMax)
  }

  @Test(
    "may take a quarter of a commit each, within bounds",
    arguments: [(1, 40), (159, 40), (400, 100), (1_000, 250), (20_000, 250)])
  func pause(duration: Int, pause: Int) {
    var returning = ReturningWriters()
    returning.note(served: 2, waiting: 0, since: start, now: after(duration))
    let wait = returning.wait(now: after(duration))
    #expect(wait?.pause == .microseconds(pause))
    #expect(wait?.durationMax == .microseconds(duration))
  }

  @Test("is nobody for a write that comes a pause later")
  func late() {
    var returning = ReturningWriters()
    returning.note(served: 5, waiting: 0, since: start, now: after(200))
    let wait = returning.wait(now: after(250))
    #expect(wait == nil)
  }

  @Test("is nobody for more and more commits after waiting in vain, until all came")
  func inVain() {
    var returning = ReturningWriters()
    func skips() -> Int {
      for count in 0... {
        returning.note(served: 5, waiting: 0, since: start, now: start)
        if returning.wait(now: start) != nil { return count }
      }
      return 0
    }
    var counts: [Int] = []
    for _ in 0..<9 {
      counts.append(skips())
      returning.note(came: false)
    }
    #expect(counts == [0, 1, 2, 4, 8, 16, 32, 64, 64])
    _ = skips()
    returning.note(came: true)
    let count = skips()
    #expect(count == 0)
  }

  @Test("tell the thread that waits for them once, when the last has come, or who joins no group")
  func told() {
    var turn = WriterTurn()
    var told: [Bool] = []
    told.append(turn.append(WriteJob(.storing)))
    told.append(turn.want(1))
    told.append(turn.want(3))
    for _ in 0..<3 { told.append(turn.append(WriteJob(.storing))) }
    told.append(turn.wantNoMore())
    #expect(told == [false, false, true, false, true, false, false])
    told = [turn.want(9)]
    told.append(turn.append(BlockedWrite(.storing)))
    told.append(turn.want(9))
    told.append(turn.wantNoMore())
    told.append(turn.append(WriteJob(.storing)))
    #expect(told == [true, true, true, true, false])
  }
}
