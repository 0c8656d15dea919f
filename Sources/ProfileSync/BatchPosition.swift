/// A place in the batches that an area hands over: growing by one, saved by the app with its rows.
public struct BatchPosition: Sendable, Hashable, Codable, Comparable {
  /// Before the first batch: what an app gives whose store is new, or was lost.
  public static let start = BatchPosition(0)

  /// The number itself; 0 before the first batch.
  public let number: UInt64

  /// Takes a number that the app has saved.
  public init(_ number: UInt64) { self.number = number }

  /// Earlier or later within one area.
  public static func < (left: BatchPosition, right: BatchPosition) -> Bool {
    left.number < right.number
  }
}
