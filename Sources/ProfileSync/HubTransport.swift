public import HubProtocol

/// Carries one request to a hub and brings its answer back: the only way out of this module.
///
/// A transport sends a ``HubRequest`` as it is and returns what came back as it is, whatever the
/// status. It never follows a redirect, keeps no cookies and no cache, and adds nothing that names
/// an account. It decides nothing: whether an answer is a hub's, and what it means, is the
/// caller's to judge (protocol section "What the client does with an answer").
///
/// Several calls may be in flight at once. An answer is given whole or not at all.
public protocol HubTransport: Sendable {
  /// Sends a request and returns the whole answer.
  ///
  /// - Parameter request: The exchange, with its own time and size limits.
  /// - Returns: The answer, redirects and errors of the server too.
  /// - Throws: ``TransportError``. Whether the hub acted on the request is then *unknown*: send
  ///   the same mutation UUIDs again. A cancelled task gets ``TransportError/Code/cancelled``
  ///   within milliseconds.
  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse
}

/// Why an exchange brought no answer.
///
/// Its text holds no token, no header and no query.
public struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of failure; later versions may add some.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Kind: String {
      case unreachable
      case timedOut
      case cancelled
      case connectionLost
      case answerTooLarge
      case tlsFailed
      case invalidURL
      case invalidRequest
      case other
    }

    private let kind: Kind

    /// No connection was made: the name was not found, or nothing listens there. Retry later.
    public static let unreachable = Code(kind: .unreachable)
    /// A limit passed: connecting, the whole exchange, or a time in which no byte moved. Retry
    /// later.
    public static let timedOut = Code(kind: .timedOut)
    /// The calling task was cancelled or the transport was closed. Not an error of the hub.
    public static let cancelled = Code(kind: .cancelled)
    /// The connection ended before the answer did. Retry with the same mutation UUIDs.
    public static let connectionLost = Code(kind: .connectionLost)
    /// The answer has more bytes than ``HubRequest/answerByteCountMax``; nothing of it was kept.
    public static let answerTooLarge = Code(kind: .answerTooLarge)
    /// No trusted encrypted connection could be made. Needs a person: a wrong address, a
    /// certificate that is not trusted, or someone in between.
    public static let tlsFailed = Code(kind: .tlsFailed)
    /// The hub's address cannot be used. Needs a correct one.
    public static let invalidURL = Code(kind: .invalidURL)
    /// The request cannot be sent as it is, for instance a header value with a line break. It was
    /// not sent, and would not be the next time.
    public static let invalidRequest = Code(kind: .invalidRequest)
    /// Any other failure. Retry later.
    public static let other = Code(kind: .other)

    /// The code's name, for logs.
    public var description: String { kind.rawValue }
  }

  /// The kind of failure; decide by this, never by the text.
  public let code: Code
  /// One sentence that names what failed and the remedy, without token, header or query.
  public let description: String

  /// Makes an error; a transport's author keeps tokens, headers and queries out of the text.
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - description: One sentence with the remedy.
  public init(code: Code, description: String) {
    self.code = code
    self.description = description
  }
}
