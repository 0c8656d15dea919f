public import Foundation
public import HubProtocol
public import ProfileSync
import Synchronization

/// The way to one hub over HTTP/1.1: the ``HubTransport`` that ships with the product.
///
/// It sends a request as it is and brings back the answer as it is. It never follows a redirect
/// (a token would go along), keeps no cookies and no cache, asks no proxy of the environment, and
/// decompresses nothing. Connections are kept and used again. Any number of tasks may send at the
/// same time; each answer is bounded by ``HubRequest/answerByteCountMax`` while it comes in, so
/// that no server can fill the memory.
///
/// All connections are served by libcurl's multi interface on one thread, which ``close()`` or the
/// end of the last reference ends. Requests that the hub may keep waiting
/// (``HubRequest/mayWait``), and streams of events, have a second thread with connections of their
/// own, so that no push waits behind them; it is there once the first of them is.
public final class HubConnection: HubEventTransport {
  /// What is not a matter of a single request.
  public struct Configuration: Hashable, Sendable {
    /// How long a connection may take to be made, its encryption included; 15 s by default.
    public var connectTimeout: Duration
    /// The most connections at the same time, 1 to 256; further requests wait for one, within
    /// their own limits. 16 by default. Requests that the hub may keep waiting do not count here:
    /// of those there are at most 256.
    public var connectionCountMax: Int

    /// Takes the settings.
    /// - Parameters:
    ///   - connectTimeout: How long a connection may take to be made.
    ///   - connectionCountMax: The most connections at the same time; a number outside 1 to 256
    ///     counts as the nearer of the two.
    public init(connectTimeout: Duration = .seconds(15), connectionCountMax: Int = 16) {
      self.connectTimeout = connectTimeout
      self.connectionCountMax = min(max(connectionCountMax, 1), 256)
    }
  }

  private let address: HubAddress
  private let configuration: Configuration
  private let loop: TransferLoop
  private let waiting = Mutex(WaitingLoop())

  /// The loop of the requests that may wait.
  private struct WaitingLoop {
    var loop: TransferLoop?
    var isClosed = false
  }

  /// The most requests that wait at the same time.
  private static let waitingCountMax = 256

  /// Makes the way to a hub; nothing is sent yet.
  ///
  /// - Parameters:
  ///   - url: The hub's base address, as in `https://hub.example.org` or, behind a path,
  ///     `https://example.org/holdfast`: `http` or `https`, no user, no query, no fragment. Use
  ///     `http` on loopback only: it shows the token to everyone in between.
  ///   - configuration: Settings of all requests.
  /// - Throws: ``TransportError/Code/invalidURL``: correct the address.
  public init(
    url: URL, configuration: Configuration = Configuration()
  ) throws(TransportError) {
    address = try HubAddress(url)
    self.configuration = configuration
    loop = TransferLoop(connectionCountMax: configuration.connectionCountMax)
    // On the caller's thread: a short program may be leaving `main` by the time that the loop's
    // thread begins, and OpenSSL must not be set up while `exit` takes it down.
    _ = curlIsReady
    loop.start()
  }

  deinit {
    loop.close()
    waiting.withLock { $0.loop }?.close()
  }

  /// Sends a request and returns the whole answer; see ``HubTransport/send(_:)``.
  ///
  /// A cancelled task ends its exchange within milliseconds and closes that connection, since an
  /// answer may still be coming on it; others are not touched.
  /// - Throws: ``TransportError``. Its code says whether to try again; whether the hub acted is
  ///   unknown, except for ``TransportError/Code/invalidRequest``: then nothing was sent.
  public func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let exchange = try Exchange(request, to: address, connectTimeout: configuration.connectTimeout)
    let loop = request.mayWait ? waitingLoop() : loop
    let ticket = TransferTicket()
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        loop.submit(
          Submission(exchange: exchange, ticket: ticket, taker: .answer(continuation)))
      }
    } onCancel: {
      loop.cancel(ticket)
    }
    return try result.get()
  }

  /// Begins to listen to the hub's events; see ``HubEventTransport/events(_:)``.
  ///
  /// The stream has a connection of its own, which is closed as soon as its reader is gone.
  /// - Throws: ``TransportError``, as ``send(_:)`` does.
  public func events(_ request: HubRequest) async throws(TransportError) -> HubEventAnswer {
    let exchange = try Exchange(
      request, to: address, connectTimeout: configuration.connectTimeout, isStream: true)
    let loop = waitingLoop()
    let ticket = TransferTicket()
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let receiver = EventReceiver(continuation) { loop.cancel(ticket) }
        loop.submit(Submission(exchange: exchange, ticket: ticket, taker: .events(receiver)))
      }
    } onCancel: {
      loop.cancel(ticket)
    }
    return try result.get()
  }

  /// The loop of the requests that may wait, made when it is needed; after ``close()`` one that has
  /// ended.
  private func waitingLoop() -> TransferLoop {
    waiting.withLock { waiting in
      if let loop = waiting.loop { return loop }
      let loop = TransferLoop(connectionCountMax: HubConnection.waitingCountMax)
      loop.start()
      if waiting.isClosed { loop.close() }
      waiting.loop = loop
      return loop
    }
  }

  /// Ends every exchange that is under way with ``TransportError/Code/cancelled``, closes the
  /// connections, and returns when the thread has ended and everything was freed: a matter of
  /// milliseconds. Later sends fail with the same code. Closing twice is harmless.
  public func close() {
    let waitingLoop = waiting.withLock { waiting in
      waiting.isClosed = true
      return waiting.loop
    }
    loop.close()
    waitingLoop?.close()
    loop.waitUntilEnded()
    waitingLoop?.waitUntilEnded()
  }
}
