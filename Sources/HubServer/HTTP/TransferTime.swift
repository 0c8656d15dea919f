/// How long a body may take to arrive, and an answer to be taken, in all.
///
/// A fixed time would cut off a line that is slow but moves, in every attempt anew; no limit would
/// let bytes that drip hold a connection for ever. So what moves earns time.
package enum TransferTime {
  /// The slowest rate that is never cut off, in bytes a second.
  package static let leastBytesPerSecond = 4_096

  /// The seconds for so many bytes, at a base that is there without any.
  package static func seconds(base: Int, byteCount: Int) -> Int {
    base + byteCount / leastBytesPerSecond
  }
}
