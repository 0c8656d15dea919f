/// What some measured numbers have in common.
package struct Summary: Equatable, Sendable {
  package let median: Double
  package let min: Double
  package let max: Double
  /// Three quarters of the numbers are at most this.
  package let upperQuartile: Double
  package let count: Int

  /// - Returns: nil if there are no numbers.
  package init?(_ numbers: [Double]) {
    let sorted = numbers.sorted()
    guard let first = sorted.first, let last = sorted.last else { return nil }
    min = first
    max = last
    median = Self.quantile(0.5, of: sorted)
    upperQuartile = Self.quantile(0.75, of: sorted)
    count = sorted.count
  }

  /// Between two numbers the value lies where the quantile lies between their places.
  private static func quantile(_ share: Double, of sorted: [Double]) -> Double {
    let place = share * Double(sorted.count - 1)
    let below = Int(place)
    let above = Swift.min(below + 1, sorted.count - 1)
    return sorted[below] + (sorted[above] - sorted[below]) * (place - Double(below))
  }
}
