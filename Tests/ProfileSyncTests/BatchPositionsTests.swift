import ProfileSync
import Testing

@Suite("The position of a batch")
struct BatchPositionsTests {
  @Test("grows by one with every batch of an ordinary pass")
  func ordinary() {
    var positions = BatchPositions(stored: 10, app: nil)
    #expect(!positions.isBehind)
    for expected in [11, 12, 13] as [UInt64] {
      let position = positions.position(at: .ordinary)
      #expect(position == expected)
      #expect(positions.accept(position) == expected)
    }
  }

  @Test("in a replay is the one that the pass was given, but for the last batch")
  func replay() {
    var positions = BatchPositions(stored: 10, app: 3)
    #expect(positions.isBehind)
    for _ in 0..<3 {
      let position = positions.position(at: .replay(isLast: false))
      #expect(position == 3)
      #expect(positions.accept(position) == nil)
    }
    // Nothing else says that the app has everything while it has not.
    #expect(positions.position(at: .ordinary) == 3)
    #expect(positions.isBehind)
    let last = positions.position(at: .replay(isLast: true))
    #expect(last == 11)
    #expect(positions.accept(last) == 11)
    #expect(!positions.isBehind)
    #expect(positions.position(at: .ordinary) == 12)
  }

  @Test("of an app that gives none is the stored one")
  func notGiven() {
    let positions = BatchPositions(stored: 10, app: nil)
    #expect(positions.position(at: .replay(isLast: false)) == 10)
    #expect(positions.position(at: .replay(isLast: true)) == 11)
  }

  @Test("goes on from the app's when the area is the older one")
  func areaBehind() {
    var positions = BatchPositions(stored: 3, app: 10)
    #expect(!positions.isBehind)
    #expect(positions.position(at: .replay(isLast: false)) == 10)
    let next = positions.position(at: .ordinary)
    #expect(next == 11)
    #expect(positions.accept(next) == 11)
    #expect(positions.stored == 11)
  }
}

@Suite("A refused token")
struct TokenRefreshTests {
  @Test("is refreshed once; refused again, the person has to sign in")
  func once() {
    var refresh = TokenRefresh()
    #expect(refresh.refused() == .refresh)
    #expect(refresh.refused() == .giveUp)
    #expect(refresh.refused() == .giveUp)
  }

  @Test("that stays as it is, or goes, is not sent again")
  func unchanged() {
    let refresh = TokenRefresh()
    #expect(refresh.isWorthTrying("new", after: "old"))
    #expect(refresh.isWorthTrying("new", after: nil))
    #expect(!refresh.isWorthTrying("old", after: "old"))
    #expect(!refresh.isWorthTrying(nil, after: "old"))
    #expect(!refresh.isWorthTrying(nil, after: nil))
  }
}
