import Foundation
import LMDB

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
    /// The store, or a note beside it, cannot be opened or understood, or failed; the cause says why.
    public static let storeUnusable = Code(value: .storeUnusable)
    /// No token can be issued.
    public static let tokenFailed = Code(value: .tokenFailed)
    /// A text is no account ID.
    public static let accountInvalid = Code(value: .accountInvalid)
    /// An administrative call names an account that this hub has never seen.
    public static let accountUnknown = Code(value: .accountUnknown)
    /// An account that is not erased was to be made again.
    public static let accountNotErased = Code(value: .accountNotErased)

    /// The code's name.
    public var description: String { value.rawValue }
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

  /// The message, and what the store or the system said in its own words.
  public var description: String {
    guard let cause, let words = HubServerError.words(of: cause) else { return message }
    return "\(message) (\(words))"
  }

  /// One clause for a person; nil where an error has only words for a programmer.
  private static func words(of cause: any Error) -> String? {
    if let cause = cause as? LMDBError { return cause.description }
    return systemNumber(of: cause).map { String(cString: strerror($0)) }
  }

  /// The `errno` behind an error of Foundation, which has it somewhere below or as a code of its own.
  static func systemNumber(of error: any Error) -> Int32? {
    var next: NSError? = error as NSError
    while let error = next {
      if error.domain == NSPOSIXErrorDomain { return Int32(exactly: error.code) }
      next = error.userInfo[NSUnderlyingErrorKey] as? NSError
    }
    return switch (error as? CocoaError)?.code {
    case .fileNoSuchFile?, .fileReadNoSuchFile?: ENOENT
    case .fileReadNoPermission?, .fileWriteNoPermission?: EACCES
    case .fileWriteFileExists?: EEXIST
    case .fileWriteOutOfSpace?: ENOSPC
    case .fileWriteVolumeReadOnly?: EROFS
    default: nil
    }
  }
}
