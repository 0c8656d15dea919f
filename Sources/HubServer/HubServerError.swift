/// What can go wrong around a hub: its configuration, keys, directory, socket or store.
///
/// What goes wrong inside one request is an answer of the protocol, never this error.
public struct HubServerError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure; more may be added.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Value: String {
      case configurationInvalid, keyInvalid, directoryUnusable, directoryInUse, listenFailed
      case storeUnusable, tokenFailed, accountInvalid, accountUnknown, accountNotErased
    }
    private let value: Value

    /// The configuration is not what `Config/README.md` describes; the message names the key.
    public static let configurationInvalid = Code(value: .configurationInvalid)
    /// A signing key cannot be read, or does not fit its algorithm.
    public static let keyInvalid = Code(value: .keyInvalid)
    /// The data directory cannot be made, read or written.
    public static let directoryUnusable = Code(value: .directoryUnusable)
    /// Another hub process serves this data directory.
    public static let directoryInUse = Code(value: .directoryInUse)
    /// The address cannot be listened on.
    public static let listenFailed = Code(value: .listenFailed)
    /// The store cannot be opened, or failed; the cause says why.
    public static let storeUnusable = Code(value: .storeUnusable)
    /// No token can be issued.
    public static let tokenFailed = Code(value: .tokenFailed)
    /// A text is no account ID.
    public static let accountInvalid = Code(value: .accountInvalid)
    /// An administrative call names an account that this hub has never seen.
    public static let accountUnknown = Code(value: .accountUnknown)

    /// The code's name.
    public var description: String { value.rawValue }
    /// An account that is not erased was to be made again.
    public static let accountNotErased = Code(value: .accountNotErased)
  }

  /// The kind of failure.
  public let code: Code
  /// One sentence that names the thing and the remedy.
  public let message: String
  /// What a layer below reported.
  public let cause: (any Error)?

  package init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.cause = cause
  }

  /// The message, and the cause's own where there is one.
  public var description: String {
    guard let cause else { return message }
    return "\(message) (\(cause))"
  }
}
