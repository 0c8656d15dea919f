import Measuring
import Testing

@Suite("A summary of rounds")
struct StatisticsTests {
  static let cases: [(numbers: [Double], median: Double, quartile: Double)] = [
    ([3], 3, 3),
    ([1, 2], 1.5, 1.75),
    ([9, 1, 5], 5, 7),
    ([4, 1, 3, 2], 2.5, 3.25),
    ([5, 4, 3, 2, 1], 3, 4),
    (Array(stride(from: 11, through: 1, by: -1)), 6, 8.5),
  ]

  @Test("has the middle number and what three quarters stay below", arguments: cases)
  func quantiles(numbers: [Double], median: Double, quartile: Double) throws {
    let summary = try #require(Summary(numbers))
    #expect(summary.median == median)
    #expect(summary.upperQuartile == quartile)
    #expect(summary.min == numbers.min())
    #expect(summary.max == numbers.max())
    #expect(summary.count == numbers.count)
  }

  @Test("of nothing there is none")
  func nothing() {
    #expect(Summary([]) == nil)
  }
}
