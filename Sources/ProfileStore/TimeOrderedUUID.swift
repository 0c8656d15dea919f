import Foundation
import Synchronization

/// UUIDs of version 7 (RFC 9562): growing within a process, so that the tables that they are keys of
/// are written at one end and not all over. The time in them decides nothing.
enum TimeOrderedUUID {
  /// Milliseconds since 1970 and a counter within one of them, 60 bits in all.
  private static let last = Mutex<UInt64>(0)

  /// A new UUID, behind every earlier one of this process.
  static func next(now: Date = Date()) -> UUID {
    let milliseconds = UInt64(max(0, now.timeIntervalSince1970 * 1_000)) & 0xFFFF_FFFF_FFFF
    let stamp = last.withLock { last in
      // A clock that stands or goes back only uses the counter up.
      last = max(last + 1, milliseconds << 12)
      return last
    }
    var bytes: [UInt8] = []
    for shift in stride(from: 52, through: 12, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: stamp >> UInt64(shift)))
    }
    bytes.append(0x70 | UInt8(truncatingIfNeeded: (stamp >> 8) & 0x0F))
    bytes.append(UInt8(truncatingIfNeeded: stamp))
    var random = UInt64.random(in: 0...UInt64.max)
    random = random & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: random >> UInt64(shift)))
    }
    return NSUUID(uuidBytes: bytes) as UUID
  }
}
