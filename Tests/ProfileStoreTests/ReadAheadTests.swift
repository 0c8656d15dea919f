import ProfileStore
import Testing

@Suite("Reading ahead")
struct ReadAheadTests {
  /// What is asked for when the pages are looked at one after another.
  private func asked(_ ahead: ReadAhead, at pages: some Sequence<Int>) -> [Int: Range<Int>] {
    var ahead = ahead
    var asked: [Int: Range<Int>] = [:]
    for page in pages { asked[page] = ahead.next(at: page) }
    return asked
  }

  @Test("two parts at the beginning, then one whenever the last but one is begun")
  func ordinary() {
    let ahead = ReadAhead(pageCount: 100, byteCount: 1_000, partByteCount: 300)
    #expect(asked(ahead, at: 0..<100) == [0: 0..<60, 30: 60..<90, 60: 90..<100])
  }

  @Test(
    "each page once, none before the one looked at, whatever the sizes",
    arguments: [
      (0, 0, 10), (1, 10, 10), (1, 10, 1), (2, 20, 10), (7, 70, 10), (7, 70, 1_000), (100, 1, 10),
      (1_000, 1 << 40, 4 << 20), (5, 0, 10),
    ])
  func all(_ pageCount: Int, _ byteCount: Int, _ part: Int) {
    let ahead = ReadAhead(pageCount: pageCount, byteCount: byteCount, partByteCount: part)
    let asked = asked(ahead, at: 0..<pageCount).sorted { $0.key < $1.key }
    #expect(asked.flatMap { Array($0.value) } == Array(0..<pageCount))
    #expect(asked.allSatisfy { $0.value.lowerBound >= $0.key })
  }

  @Test("who skips pages is not told to read them")
  func skipping() {
    let ahead = ReadAhead(pageCount: 100, byteCount: 100, partByteCount: 10)
    #expect(asked(ahead, at: [50, 51, 99]) == [50: 50..<70, 99: 99..<100])
  }

  @Test("the same page again asks for nothing")
  func again() {
    let ahead = ReadAhead(pageCount: 100, byteCount: 100, partByteCount: 10)
    #expect(asked(ahead, at: [0]) == [0: 0..<20])
    var twice = ahead
    _ = twice.next(at: 0)
    #expect(twice.next(at: 0) == nil)
  }
}
