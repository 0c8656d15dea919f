/// What a world runs on: one thread whose jobs, time, randomness and disk are the owner's.
///
/// The program `simulator` has one that stands before the C library, libdispatch, Swift's runtime and
/// liblmdb, so that the product runs in it as it is.
package protocol Machine: AnyObject {
  /// How many jobs could run now.
  func readyCount() -> Int
  /// Runs one of them, to its end or to where it waits.
  func run(_ index: Int)
  /// Lets time pass until the next alarm; false when there is none.
  func wake() -> Bool
  /// Nanoseconds since the start.
  var now: UInt64 { get }

  /// All files below a directory are a device's from now on.
  func addDevice(_ device: Int, directory: String)
  /// The device dies at its step with that number from now on, before it or, where it is a commit and
  /// `after`, right behind it; 0: it does not.
  func planDeath(of device: Int, atStep step: UInt64, after: Bool)
  /// It dies now.
  func kill(_ device: Int)
  /// Whether it has died.
  func isDead(_ device: Int) -> Bool
  /// What it was doing when it died.
  func lastStep(of device: Int) -> String
  /// How many environments it has open.
  func openCount(of device: Int) -> Int
  /// It may use its files again.
  func revive(_ device: Int)
  /// Commits so far.
  var commitCount: UInt64 { get }
  /// Runs something that looks at files and is no step of any device.
  func looking<R>(_ body: () throws -> R) rethrows -> R

  /// The canaries that lie in some bytes.
  func canaries(in bytes: UnsafeRawBufferPointer) -> CanarySet
  /// What was written into environments since the last call, by their directories; nil: no more.
  func nextWrites() -> (directory: String, found: CanarySet)?
}

extension Machine {
  /// The canaries that lie in some bytes.
  package func canaries(in bytes: some Sequence<UInt8>) -> CanarySet {
    Array(bytes).withUnsafeBytes { canaries(in: $0) }
  }
}
