/// Where a ``Console`` writes: a file descriptor, or memory in a test.
public protocol ConsoleSink: Sendable {
  /// Whether a person may be watching.
  var isTerminal: Bool { get }
  /// The width of the terminal now; `nil` if it is none or doesn't say.
  var columns: Int? { get }
  /// Writes all of the text before it returns, or throws. What was written before an error stays.
  func write(_ text: String) throws(OutputError)
}

/// Why output could not be written.
public enum OutputError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The reader of the pipe or socket is gone, as `head` is when it has its lines. ``Tool`` ends
  /// without a word and with ``ExitCode/ok``.
  case closedPipe
  /// `write(2)` failed with this `errno`, as on a full disk. ``Tool`` ends with
  /// ``ExitCode/inputOutput``.
  case failed(code: Int32)

  /// A sentence without the text that was to be written.
  public var description: String {
    switch self {
    case .closedPipe: "the reader of the output is gone"
    case .failed(let code): "the output could not be written: \(systemMessage(code))"
    }
  }
}
