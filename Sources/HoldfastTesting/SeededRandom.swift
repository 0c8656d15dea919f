public import Foundation

/// Random numbers that are the same again for the same seed. (SplitMix64: Steele, Lea and Flood,
/// *Fast splittable pseudorandom number generators*, 2014.)
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Begins at a seed.
  public init(seed: UInt64) { state = seed }

  /// The next number, 0 to 2^64 - 1.
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A UUID of version 4.
  public mutating func uuid() -> UUID {
    var (high, low) = (next(), next())
    high = high & ~0xf000 | 0x4000
    low = low & ~(3 << 62) | 1 << 63
    return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) {
      UUID(uuid: $0.loadUnaligned(as: uuid_t.self))
    }
  }

  /// Whether something happens that happens so many times in a thousand.
  public mutating func happens(perThousand: Int) -> Bool {
    Int(next() % 1_000) < perThousand
  }
}
