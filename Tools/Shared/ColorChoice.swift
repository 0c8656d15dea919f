/// When to color output; the value of `--color`.
public enum ColorChoice: String, CaseIterable, Sendable {
  /// On a terminal that is not `TERM=dumb`, unless `NO_COLOR` is set to something
  /// (no-color.org).
  case auto
  /// Never.
  case never
  /// Always, also into a pipe.
  case always

  /// The decision for one output.
  ///
  /// - Parameters:
  ///   - isTerminal: whether that output is a terminal.
  ///   - environment: the variables of the process.
  public func allowsColor(isTerminal: Bool, environment: [String: String]) -> Bool {
    switch self {
    case .always: true
    case .never: false
    case .auto:
      isTerminal && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
    }
  }
}
