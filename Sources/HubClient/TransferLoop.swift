import Dispatch
import Foundation
import HubProtocol
import ProfileSync
import Synchronization

/// What a caller hands over to have it sent: the exchange, and where its outcome goes.
struct Submission: Sendable {
  /// Who takes what comes in.
  enum Taker: Sendable {
    /// A caller who waits for the whole answer.
    case answer(CheckedContinuation<Result<HubResponse, TransportError>, Never>)
    /// A reader of events, who gets each as it comes.
    case events(EventReceiver)
  }

  let exchange: Exchange
  let ticket: TransferTicket
  let taker: Taker

  func finish(_ result: Result<HubResponse, TransportError>) {
    switch taker {
    case .answer(let continuation): continuation.resume(returning: result)
    case .events(let receiver): receiver.finish(result)
    }
  }
}

/// Names one exchange from before it is handed over, since cancelling may come first.
final class TransferTicket: Sendable {
  private let cancelled = Atomic(false)

  var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

  func cancel() { cancelled.store(true, ordering: .releasing) }
}

/// The thread that serves all exchanges of a connection, and the mailbox through which it is told.
///
/// Whoever puts something into the mailbox wakes the thread; the thread empties it at each turn.
/// No outcome is handed back under the lock.
final class TransferLoop: Sendable {
  private struct Mailbox {
    var submissions: [Submission] = []
    var cancellations: [TransferTicket] = []
    /// The loop is to end, or has ended: nothing is taken in any more.
    var isClosed = false
    /// Why it ended, where nobody closed it.
    var failure: TransportError?
    /// How to wake the thread; nil before it listens and once it does not any more.
    var waker: TransferDriver.Waker?
  }

  private let mailbox = Mutex(Mailbox())
  private let ended = DispatchGroup()
  private let connectionCountMax: Int

  init(connectionCountMax: Int) {
    self.connectionCountMax = connectionCountMax
  }

  /// Starts the thread; once only.
  func start() {
    ended.enter()
    let thread = Thread { [self] in
      run()
      ended.leave()
    }
    thread.name = "holdfast.hub-connection"
    thread.stackSize = 1 << 20
    thread.start()
  }

  /// Hands an exchange over. Its continuation is resumed exactly once, whatever happens.
  func submit(_ submission: Submission) {
    let name = submission.exchange.name
    let refusal: TransportError? = mailbox.withLock { mailbox in
      guard !mailbox.isClosed else { return mailbox.failure ?? .cancelled(exchange: name) }
      mailbox.submissions.append(submission)
      mailbox.waker?.wake()
      return nil
    }
    if let refusal { submission.finish(.failure(refusal)) }
  }

  /// Ends an exchange, which may be anywhere: not handed over yet, waiting, under way, or over.
  func cancel(_ ticket: TransferTicket) {
    ticket.cancel()
    mailbox.withLock { mailbox in
      guard !mailbox.isClosed else { return }
      mailbox.cancellations.append(ticket)
      mailbox.waker?.wake()
    }
  }

  /// Tells the thread to end everything, and returns at once.
  func close() {
    mailbox.withLock { mailbox in
      mailbox.isClosed = true
      mailbox.waker?.wake()
    }
  }

  /// Waits until the thread has freed what it had.
  func waitUntilEnded() { ended.wait() }

  private func run() {
    let driver = TransferDriver(connectionCountMax: connectionCountMax)
    mailbox.withLock { $0.waker = driver.waker }
    var failure: TransportError?
    while failure == nil, serveMailbox(driver) {
      failure = driver.turn()
    }
    let rest = mailbox.withLock { mailbox in
      mailbox.isClosed = true
      mailbox.failure = failure
      // From here on nobody may wake what is about to be freed.
      mailbox.waker = nil
      defer { mailbox.submissions = [] }
      return mailbox.submissions
    }
    driver.end(because: failure)
    for submission in rest {
      submission.finish(
        .failure(failure ?? .cancelled(exchange: submission.exchange.name)))
    }
  }

  /// Does what the mailbox asks for.
  /// - Returns: False if the loop is to end.
  private func serveMailbox(_ driver: TransferDriver) -> Bool {
    let (submissions, cancellations, isClosed) = mailbox.withLock { mailbox in
      defer {
        if !mailbox.isClosed { mailbox.submissions = [] }
        mailbox.cancellations = []
      }
      return (mailbox.submissions, mailbox.cancellations, mailbox.isClosed)
    }
    guard !isClosed else { return false }
    for ticket in cancellations { driver.cancel(ticket) }
    for submission in submissions { driver.begin(submission) }
    return true
  }
}
