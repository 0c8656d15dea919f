/// How far a pass has come, for a progress bar.
public struct SyncProgress: Sendable, Hashable {
  /// What the pass is doing.
  public enum Phase: Sendable, Hashable {
    /// Mutations are being sent; counted in mutations.
    case sending
    /// Records are being brought; counted in sequence numbers.
    case receiving
  }

  /// What the pass is doing.
  public let phase: Phase
  /// How much is done.
  public let completed: UInt64
  /// How much there is, as far as is known.
  public let total: UInt64
  /// How much of the whole pass is done, sending and receiving together, from 0 to 1. It never falls
  /// within a pass, also when more turns out to be there.
  public let fractionCompleted: Double
}

/// Is told how far a pass has come, from any thread.
///
/// A type of its own, so that a closure behind `synchronize(account:)` is always `applyChanges`.
public struct ProgressObserver: Sendable {
  let observe: @Sendable (SyncProgress) -> Void

  /// - Parameter observe: must not take long: the pass waits for it.
  public init(_ observe: @escaping @Sendable (SyncProgress) -> Void) {
    self.observe = observe
  }
}
