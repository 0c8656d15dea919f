import Synchronization

@testable import ToolSupport

/// Keeps what was written, and can fail like a pipe or disk.
final class RecordingSink: ConsoleSink {
  let isTerminal: Bool
  let columns: Int?
  private let failure: OutputError?
  private let written = Mutex("")

  init(terminalOf columns: Int? = nil, failingWith failure: OutputError? = nil) {
    isTerminal = columns != nil
    self.columns = columns
    self.failure = failure
  }

  func write(_ text: String) throws(OutputError) {
    if let failure { throw failure }
    written.withLock { $0 += text }
  }

  var text: String { written.withLock { $0 } }
}

/// A console whose both outputs are kept.
struct RecordedConsole {
  let output: RecordingSink
  let errorOutput: RecordingSink
  let console: Console

  init(
    output: RecordingSink = RecordingSink(), errorOutput: RecordingSink = RecordingSink(),
    environment: [String: String] = [:]
  ) {
    self.output = output
    self.errorOutput = errorOutput
    console = Console(output: output, errorOutput: errorOutput, environment: environment)
  }
}
