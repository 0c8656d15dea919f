import Foundation
import HubRules
import Synchronization

/// One request and its answer, from the request line to the last byte sent.
///
/// Everything but `reply` is touched by the daemon's thread alone.
///
/// - SAFETY: `@unchecked Sendable` since a task that answers only sets `reply`, which has a lock of
///   its own, and the other properties are used by one thread.
final class Exchange: @unchecked Sendable {
  /// What the handler does when it is called next.
  enum Phase {
    /// The head is there; the body, if any, is not.
    case head
    /// The head was refused, and no body follows.
    case refused(Reply)
    /// The body, if any, is being read.
    case body(AdmittedRequest)
    /// A task works on the answer, or has it.
    case answering
  }

  let target: [UInt8]
  /// Where the target stood in memory, to compare addresses with; never read through.
  let targetAddress: UInt
  let startedAt = ContinuousClock.now
  var phase = Phase.head
  var method = ""
  var request: AdmittedRequest?
  var body = Data()
  /// When the body began to arrive.
  var bodyStartedAt: ContinuousClock.Instant?
  /// Bytes of the body that came, kept or not.
  var bodyByteCount = 0
  var socket: Int32 = -1
  /// It counts in the drain gate.
  var isCounted = false
  var status = 0
  var answerByteCount = 0
  var cause: String?
  let reply = Mutex<Reply?>(nil)

  init(target: [UInt8], targetAddress: UInt) {
    self.target = target
    self.targetAddress = targetAddress
  }
}
