import Foundation

/// Where every random choice of these tests comes from. `LMDB_FAULT_SEED` repeats a run's.
struct FaultSeed: RandomNumberGenerator {
  /// The seed of this run, printed once.
  static let ofThisRun: UInt64 = {
    let given = ProcessInfo.processInfo.environment["LMDB_FAULT_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 1...999_999_999)
    print("LMDB_FAULT_SEED=\(seed)")
    return seed
  }()

  private var state: UInt64

  /// - Parameter salt: each test has its own, so that one alone chooses as it does among others.
  init(_ salt: UInt64) { state = Self.ofThisRun &* 0x9E37_79B9_7F4A_7C15 &+ salt }

  mutating func next() -> UInt64 {
    // SplitMix64.
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
