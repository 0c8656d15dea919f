/// What a path asks for. A path is compared as it is written, never decoded. (protocol.md, *HTTP*.)
package enum Endpoint: Hashable, Sendable {
  case session
  /// The segment behind `/v1/clients/`, whatever it is.
  case client(String)
  case changes
  case records
  case mutations
  case events
  case health
  case readiness

  /// The endpoint of a path, or nil.
  package init?(path: String) {
    switch path {
    case "/v1/session": self = .session
    case "/v1/changes": self = .changes
    case "/v1/records": self = .records
    case "/v1/mutations": self = .mutations
    case "/v1/events": self = .events
    case "/healthz": self = .health
    case "/readyz": self = .readiness
    default:
      let prefix = "/v1/clients/"
      guard path.utf8.starts(with: prefix.utf8) else { return nil }
      let segment = path.utf8.dropFirst(prefix.utf8.count)
      guard !segment.isEmpty, !segment.contains(UInt8(ascii: "/")) else { return nil }
      self = .client(String(decoding: segment, as: UTF8.self))
    }
  }

  /// The methods it has, as `Allow` lists them.
  package var methods: [String] {
    switch self {
    case .session, .changes, .records, .events, .health, .readiness: ["GET", "HEAD"]
    case .client: ["PUT"]
    case .mutations: ["POST"]
    }
  }

  /// No token, no account, no epoch.
  package var isOpen: Bool { self == .health || self == .readiness }

  /// Whether its requests assert an account; `/v1/session` ignores an assertion.
  package var needsAssertion: Bool { !isOpen && self != .session }

  /// Whether its requests carry a message in their body.
  package var takesBody: Bool {
    switch self {
    case .client, .mutations: true
    case .session, .changes, .records, .events, .health, .readiness: false
    }
  }

  /// The parameters that its query knows.
  package var parameters: Set<String> {
    switch self {
    case .session: ["nonce"]
    case .changes: ["after", "epoch", "limit", "until", "wait"]
    case .records: ["id"]
    case .client, .mutations, .events, .health, .readiness: []
    }
  }
}
