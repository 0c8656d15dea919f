/// The names of the header fields that the protocol uses.
public enum HubHeader {
  /// The hub's UUID, on every answer.
  public static let hub = "Holdfast-Hub"
  /// The account ID, percent-encoded UTF-8: on a request what the client asserts, on an answer
  /// what the token says.
  public static let account = "Holdfast-Account"
  /// The account's epoch, on an answer once the assertion was accepted.
  public static let epoch = "Holdfast-Epoch"
  /// A fault that a test asks a hub for.
  public static let fault = "Holdfast-Fault"
  /// `Bearer` and the token.
  public static let authorization = "Authorization"
  /// The form that the client wants.
  public static let accept = "Accept"
  /// The form of the body.
  public static let contentType = "Content-Type"
  /// How the body is compressed.
  public static let contentEncoding = "Content-Encoding"
  /// How many bytes the body has.
  public static let contentLength = "Content-Length"
  /// Seconds to wait, with 429 and 503.
  public static let retryAfter = "Retry-After"
  /// `private, no-store` on every answer.
  public static let cacheControl = "Cache-Control"
  /// `Authorization` on every answer.
  public static let vary = "Vary"
  /// `Bearer`, with 401.
  public static let wwwAuthenticate = "WWW-Authenticate"
  /// The methods of a path, with 405.
  public static let allow = "Allow"
}
