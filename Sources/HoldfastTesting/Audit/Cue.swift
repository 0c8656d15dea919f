import ProfileSync
import Synchronization

/// The n-th time that an app asks something of a batch.
final class Cue: Sendable {
  private let question: ChangeBatch.Question
  private let number: Int
  private let count = Mutex(0)

  /// - Parameter number: from 1.
  init(_ question: ChangeBatch.Question, _ number: Int) {
    self.question = question
    self.number = number
  }

  /// Counts a question.
  /// - Returns: whether it is the one.
  func isNow(_ asked: ChangeBatch.Question) -> Bool {
    guard asked == question else { return false }
    return count.withLock { count in
      count += 1
      return count == number
    }
  }

  /// Whether it was asked so often.
  var hasCome: Bool { count.withLock { $0 >= number } }
}
