import Foundation
import Synchronization

/// UUIDs of version 7 (RFC 9562): growing within a process, so that the tables that they are keys of
/// are written at one end and not all over. The time in them decides nothing.
enum TimeOrderedUUID {
  private struct Source {
    /// Milliseconds since 1970 and a counter within one of them, 60 bits in all.
    var last: UInt64 = 0
    /// Random numbers that were not used yet; asking the system for each costs more than the rest of
    /// an enqueue.
    var random: [UInt64] = []
    /// Whose numbers they are: a forked child must not use its parent's.
    var process: pid_t = 0
  }

  private static let source = Mutex(Source())

  /// A new UUID, behind every earlier one of this process.
  static func next(now: Date = Date()) -> UUID {
    let milliseconds = UInt64(max(0, now.timeIntervalSince1970 * 1_000)) & 0xFFFF_FFFF_FFFF
    let (stamp, random) = source.withLock { source in
      // A clock that stands or goes back only uses the counter up.
      source.last = max(source.last + 1, milliseconds << 12)
      return (source.last, nextRandom(&source))
    }
    // Time and version, then the variant.
    let high = (stamp >> 12) << 16 | 0x7000 | stamp & 0x0FFF
    let low = random & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    func byte(_ word: UInt64, _ index: UInt64) -> UInt8 {
      UInt8(truncatingIfNeeded: word >> (56 - 8 * index))
    }
    return UUID(
      uuid: (
        byte(high, 0), byte(high, 1), byte(high, 2), byte(high, 3), byte(high, 4), byte(high, 5),
        byte(high, 6), byte(high, 7), byte(low, 0), byte(low, 1), byte(low, 2), byte(low, 3),
        byte(low, 4), byte(low, 5), byte(low, 6), byte(low, 7)
      ))
  }

  private static func nextRandom(_ source: inout Source) -> UInt64 {
    let process = getpid()
    if source.process != process {
      source.random.removeAll(keepingCapacity: true)
      source.process = process
    }
    if source.random.isEmpty { source.random = randomNumbers(count: 32) }
    return source.random.removeLast()
  }

  private static func randomNumbers(count: Int) -> [UInt64] {
    var numbers = [UInt64](repeating: 0, count: count)
    let isFilled = numbers.withUnsafeMutableBytes { bytes in
      getentropy(bytes.baseAddress, bytes.count) == 0
    }
    // 256 bytes at most at once; where the system has none, its generator is asked one by one.
    return isFilled ? numbers : (0..<count).map { _ in UInt64.random(in: 0...UInt64.max) }
  }
}
