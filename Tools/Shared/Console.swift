import Foundation
import Synchronization

/// What a tool says: results on standard output, everything else on standard error.
///
/// May be used from several tasks; each call's text stays in one piece, and a progress bar stays
/// below it.
public final class Console: Sendable {
  private struct State {
    var colorChoice = ColorChoice.auto
    var statusLine: String?
    var isErrorOutputLost = false
  }

  private let output: any ConsoleSink
  private let errorOutput: any ConsoleSink
  private let environment: [String: String]
  private let state = Mutex(State())

  /// Makes a console.
  ///
  /// - Parameter environment: the variables `NO_COLOR`, `TERM` and `COLUMNS` are read.
  public init(
    output: any ConsoleSink, errorOutput: any ConsoleSink, environment: [String: String]
  ) {
    self.output = output
    self.errorOutput = errorOutput
    self.environment = environment
  }

  /// The console of this process.
  public static func standard() -> Console {
    Console(
      output: FileDescriptorSink.standardOutput, errorOutput: FileDescriptorSink.standardError,
      environment: ProcessInfo.processInfo.environment)
  }

  /// The width to lay results out for: of the terminal that standard output is, or what `COLUMNS`
  /// says about it, or 80. `nil` if it is no terminal, where nothing should be cut.
  public var width: Int? {
    output.isTerminal ? terminalWidth(of: output) : nil
  }

  /// Prints a line of results.
  ///
  /// Throws ``OutputError``; let it through to the ``Tool``, which knows that a closed pipe is no
  /// failure.
  public func print(_ text: String = "") throws(OutputError) {
    let result: Result<Void, OutputError> = state.withLock { state in
      if output.isTerminal { clearStatus(&state) }
      defer { if output.isTerminal { drawStatus(&state) } }
      do throws(OutputError) {
        try output.write(text + "\n")
        return .success(())
      } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  /// Prints lines of results with one write.
  public func print(_ lines: [String]) throws(OutputError) {
    if !lines.isEmpty { try print(lines.joined(separator: "\n")) }
  }

  /// Prints a line for the person on standard error: a note, a warning, a failure.
  ///
  /// If standard error itself fails, nobody is left to be told, and later notes are dropped.
  public func note(_ text: String) {
    state.withLock { state in
      clearStatus(&state)
      writeError(text + "\n", &state)
      drawStatus(&state)
    }
  }

  /// The text in a style, or as it is where `--color` and the terminal say so.
  public func styled(_ text: String, _ style: TextStyle) -> String {
    let choice = state.withLock { $0.colorChoice }
    let allowed = choice.allowsColor(isTerminal: output.isTerminal, environment: environment)
    return allowed ? style.applied(to: text) : text
  }

  func choose(_ colorChoice: ColorChoice) {
    state.withLock { $0.colorChoice = colorChoice }
  }

  // MARK: - The status line, which a progress bar draws

  var showsStatus: Bool {
    errorOutput.isTerminal
  }

  /// The width for one line in place; one less than the terminal's, since a full line may wrap.
  var statusWidth: Int {
    max(terminalWidth(of: errorOutput) - 1, 1)
  }

  /// Shows a line that the next one replaces; `nil` takes it away. Nothing if standard error is no
  /// terminal.
  func showStatus(_ line: String?) {
    guard showsStatus else { return }
    state.withLock { state in
      if line == nil { clearStatus(&state) }
      state.statusLine = line
      drawStatus(&state)
    }
  }

  private func clearStatus(_ state: inout State) {
    if state.statusLine != nil { writeError("\r\u{1B}[K", &state) }
  }

  private func drawStatus(_ state: inout State) {
    if let line = state.statusLine { writeError("\r\(line)\u{1B}[K", &state) }
  }

  private func writeError(_ text: String, _ state: inout State) {
    guard !state.isErrorOutputLost else { return }
    do {
      try errorOutput.write(text)
    } catch {
      state.isErrorOutputLost = true
    }
  }

  private func terminalWidth(of sink: any ConsoleSink) -> Int {
    if let columns = environment["COLUMNS"].flatMap({ Int($0) }), columns > 0 { return columns }
    return sink.columns ?? 80
  }
}
