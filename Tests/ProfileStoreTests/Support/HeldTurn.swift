import Foundation
import LMDB
import ProfileStore
import Testing

/// An area's turn to write, held by a transaction that is under way: what is written meanwhile lines up
/// behind it.
///
/// On a thread of its own, since those that tasks share must not be blocked.
final class HeldTurn: Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private let ended: AsyncStream<Void>

  /// Returns once the transaction is under way. Before that, what lines up would be in its commit, or
  /// ahead of it.
  init(
    _ area: Area, _ body: @escaping @Sendable (inout WriteTransaction) throws -> Void = { _ in }
  ) async {
    let (begun, begin) = AsyncStream<Void>.makeStream()
    let (ended, end) = AsyncStream<Void>.makeStream()
    self.ended = ended
    Thread.detachNewThread { [gate] in
      #expect(throws: Never.self) {
        try area.writeBlocking { transaction in
          try body(&transaction)
          begin.finish()
          gate.wait()
        }
      }
      begin.finish()
      end.finish()
    }
    for await _ in begun {}
  }

  /// Lets the transaction be committed, without waiting for that.
  func release() { gate.signal() }

  /// Waits until it is.
  func untilEnded() async { for await _ in ended {} }
}
