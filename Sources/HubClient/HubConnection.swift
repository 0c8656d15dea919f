public import Foundation
public import HubProtocol
public import ProfileSync

/// The way to one hub over HTTP/1.1: the ``HubTransport`` that ships with the product.
///
/// It sends a request as it is and brings back the answer as it is. It never follows a redirect
/// (a token would go along), keeps no cookies and no cache, asks no proxy of the environment, and
/// decompresses nothing. Connections are kept and used again. Any number of tasks may send at the
/// same time; each answer is bounded by ``HubRequest/answerByteCountMax`` while it comes in, so
/// that no server can fill the memory.
///
/// All connections are served by libcurl's multi interface on one thread, which ``close()`` or the
/// end of the last reference ends.
public final class HubConnection: HubTransport {
  /// What is not a matter of a single request.
  public struct Configuration: Hashable, Sendable {
    /// How long a connection may take to be made, its encryption included; 15 s by default.
    public var connectTimeout: Duration
    /// The most connections at the same time, 1 to 256; further requests wait for one, within
    /// their own limits. 16 by default.
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
  }

  /// Sends a request and returns the whole answer; see ``HubTransport/send(_:)``.
  ///
  /// A cancelled task ends its exchange within milliseconds and closes that connection, since an
  /// answer may still be coming on it; others are not touched.
  /// - Throws: ``TransportError``. Its code says whether to try again; whether the hub acted is
  ///   unknown, except for ``TransportError/Code/invalidRequest``: then nothing was sent.
  public func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let exchange = try Exchange(request, to: address, connectTimeout: configuration.connectTimeout)
    let ticket = TransferTicket()
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        loop.submit(Submission(exchange: exchange, ticket: ticket, continuation: continuation))
      }
    } onCancel: {
      loop.cancel(ticket)
    }
    return try result.get()
  }

  /// Ends every exchange that is under way with ``TransportError/Code/cancelled``, closes the
  /// connections, and returns when the thread has ended and everything was freed: a matter of
  /// milliseconds. Later sends fail with the same code. Closing twice is harmless.
  public func close() {
    loop.close()
    loop.waitUntilEnded()
  }
}
