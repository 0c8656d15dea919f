import CCurl
import Foundation
import HubProtocol
import ProfileSync

/// libcurl's multi interface with the exchanges that are under way; it lives on one thread.
final class TransferDriver {
  /// Wakes the driver from another thread.
  struct Waker: @unchecked Sendable {
    // SAFETY: `curl_multi_wakeup` is the one function that any thread may call; `TransferLoop`
    // calls it under a lock and forgets this value under the same lock before the handle is freed.
    fileprivate let multi: UnsafeMutableRawPointer

    func wake() { curl_multi_wakeup(multi) }
  }

  /// How long to wait when nothing is under way; a wake-up ends it.
  private static let idleWait: Duration = .seconds(3_600)

  /// Nil if libcurl could not be set up; then every exchange fails.
  private let multi: UnsafeMutableRawPointer?
  private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

  init(connectionCountMax: Int) {
    blockSignals()
    multi = curlIsReady ? curl_multi_init() : nil
    guard let multi else { return }
    // A setting that is refused only leaves the default, which is without a bound.
    let count = connectionCountMax
    _ = holdfast_curl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, count)
    _ = holdfast_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, count)
  }

  var waker: Waker? { multi.map(Waker.init(multi:)) }

  func begin(_ submission: Submission) {
    let name = submission.exchange.name
    guard !submission.ticket.isCancelled else {
      return submission.finish(.failure(.cancelled(exchange: name)))
    }
    guard let multi, let transfer = Transfer(submission) else {
      return submission.finish(.failure(TransferDriver.notSetUp(exchange: name)))
    }
    if let error = transfer.configure() {
      transfer.free()
      return submission.finish(.failure(error))
    }
    guard curl_multi_add_handle(multi, transfer.easy) == CURLM_OK else {
      transfer.free()
      return submission.finish(.failure(TransferDriver.notSetUp(exchange: name)))
    }
    transfers[transfer.easy] = transfer
  }

  func cancel(_ ticket: TransferTicket) {
    for transfer in transfers.values where transfer.submission.ticket === ticket {
      end(transfer, .failure(.cancelled(exchange: transfer.submission.exchange.name)))
    }
  }

  /// Moves what can be moved, ends what is over, and waits for something to happen.
  /// - Returns: An error if libcurl itself failed; the driver is then of no more use.
  func turn() -> TransportError? {
    guard let multi else { return TransferDriver.notSetUp(exchange: "any request") }
    var runningCount: Int32 = 0
    guard curl_multi_perform(multi, &runningCount) == CURLM_OK else {
      return TransferDriver.notSetUp(exchange: "any request")
    }
    endFinished(multi)
    let wait = endStalled(now: .now)
    guard curl_multi_poll(multi, nil, 0, Int32(wait.curlMilliseconds), nil) == CURLM_OK else {
      return TransferDriver.notSetUp(exchange: "any request")
    }
    return nil
  }

  /// Ends everything that is under way and frees what libcurl holds; nothing may be called after.
  func end(because failure: TransportError?) {
    for transfer in transfers.values {
      end(transfer, .failure(failure ?? .cancelled(exchange: transfer.submission.exchange.name)))
    }
    if let multi { curl_multi_cleanup(multi) }
  }

  private func endFinished(_ multi: UnsafeMutableRawPointer) {
    var remainingCount: Int32 = 0
    while let message = curl_multi_info_read(multi, &remainingCount) {
      // SAFETY: the message is valid until the next call on the multi handle; it is copied here.
      let (kind, easy, code) = (
        message.pointee.msg, message.pointee.easy_handle, message.pointee.data.result
      )
      guard kind == CURLMSG_DONE, let easy, let transfer = transfers[easy] else { continue }
      end(transfer, transfer.outcome(code))
    }
  }

  /// Ends the exchanges in which nothing moved for too long.
  /// - Returns: How long until the next one may be.
  private func endStalled(now: ContinuousClock.Instant) -> Duration {
    var wait = TransferDriver.idleWait
    for transfer in transfers.values {
      let rest = transfer.timeUntilStalled(now: now)
      if rest <= .zero {
        let exchange = transfer.submission.exchange
        end(
          transfer,
          .failure(.stalled(exchange: exchange.name, limit: exchange.stallLimit)))
      } else {
        wait = min(wait, rest)
      }
    }
    return wait
  }

  /// Takes the exchange out, frees its handle and hands back its outcome, in this order.
  private func end(_ transfer: Transfer, _ result: Result<HubResponse, TransportError>) {
    transfers[transfer.easy] = nil
    if let multi { curl_multi_remove_handle(multi, transfer.easy) }
    transfer.free()
    transfer.submission.finish(result)
  }

  private static func notSetUp(exchange: String) -> TransportError {
    TransportError(
      code: .other,
      description: "\(exchange): libcurl could not go on, most likely for lack of memory;"
        + " make a new connection later")
  }
}

/// `curl_global_init`, once in a process.
let curlIsReady = holdfast_curl_global_init() == CURLE_OK

/// Keeps every signal away from the calling thread. With `CURLOPT_NOSIGNAL` libcurl leaves SIGPIPE
/// to us, and a write to a connection that the server has closed would end the process.
private func blockSignals() {
  var signals = sigset_t()
  sigfillset(&signals)
  pthread_sigmask(SIG_BLOCK, &signals, nil)
}
