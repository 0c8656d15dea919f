import Foundation

/// A command-line tool: its commands, and the way from words to an exit code.
///
/// Declare parameters as constants, the command with them, and end the main file with one line:
///
/// ```swift
/// enum ListCommand {
///   static let json = Flag("json", help: "Print JSON.")
///   static let command = Command(
///     "list", summary: "Lists every profile.", parameters: [json]
///   ) { invocation in
///     try invocation.console.print(invocation[json] ? "[]" : "no profiles")
///     return .ok
///   }
/// }
///
/// // main.swift
/// await Tool(ListCommand.command, version: "1.0.0").main()
/// ```
///
/// Every tool accepts `--help`, `--version` and `--color`.
public struct Tool: Sendable {
  private let root: Command
  private let version: String
  private let meanings: [ExitCode: String]
  private let translate: @Sendable (any Error) -> ToolFailure?

  /// Makes a tool.
  ///
  /// - Parameters:
  ///   - root: its name is the tool's.
  ///   - version: what `--version` prints after the name.
  ///   - meanings: what exit codes mean here: every code that the tool ends with. Help lists these,
  ///     and 0, 64, 70 and 74 with their general meaning where none is given.
  ///   - translate: turns an error of a library into a sentence and an exit code; `nil` for one it
  ///     doesn't know, which ends the tool with ``ExitCode/internalError``.
  ///
  /// - Precondition: the declarations are sound: no name occurs twice in a command and those above
  ///   it, arguments that must be given come first, and one that takes all comes last.
  public init(
    _ root: Command, version: String, meanings: [ExitCode: String] = [:],
    translate: @escaping @Sendable (any Error) -> ToolFailure? = { _ in nil }
  ) {
    let problems = root.problems(inherited: BuiltInParameters.all.map(\.declaration))
    precondition(problems.isEmpty, problems.joined(separator: "; "))
    self.root = root
    self.version = version
    self.meanings = meanings
    self.translate = translate
  }

  /// Runs the tool on this process's words and outputs, and ends the process.
  ///
  /// From here on the process ignores `SIGPIPE`, so that a closed pipe or socket is an error where
  /// it is written to. Processes started from it inherit that.
  public func main() async -> Never {
    await main(Array(ProcessInfo.processInfo.arguments.dropFirst()))
  }

  func main(_ words: [String]) async -> Never {
    signal(SIGPIPE, SIG_IGN)
    InterruptListener.unblockSignals()
    exit(await run(words, on: .standard()).rawValue)
  }

  /// Runs the tool and answers its exit code; what a test calls.
  ///
  /// - Parameter words: the words after the tool's name.
  public func run(_ words: [String], on console: Console) async -> ExitCode {
    do {
      switch try CommandParser.parse(words, for: root) {
      case .help(let path):
        try console.print(help(path, on: console))
        return .ok
      case .version:
        try console.print("\(root.name) \(version)")
        return .ok
      case .run(let path, let values):
        return try await run(path, values, on: console)
      }
    } catch {
      return report(error, on: console)
    }
  }

  private func run(
    _ path: [Command], _ values: ParameterValues, on console: Console
  ) async throws -> ExitCode {
    let names = path.map(\.name)
    guard let action = path.last?.action else {
      preconditionFailure("the parser answered '\(names)' to run, which has no action")
    }
    let invocation = Invocation(commandPath: names, values: values, console: console)
    console.choose(invocation[BuiltInParameters.color])
    do {
      return try await action(invocation)
    } catch let error as UsageError where error.commandPath.isEmpty {
      throw UsageError(error.message, commandPath: names)
    }
  }

  private func help(_ path: [Command], on console: Console) -> String {
    HelpText.render(path: path, meanings: meanings, columns: console.width ?? 80)
  }

  // MARK: - Failures

  private func report(_ error: any Error, on console: Console) -> ExitCode {
    switch error {
    case OutputError.closedPipe:
      return .ok
    case let error as UsageError:
      let command = error.commandPath.joined(separator: " ")
      console.note("\(root.name): \(error.message)")
      console.note("See '\(command) --help'.")
      return .usage
    default:
      let failure = failure(of: error)
      console.note("\(root.name): \(TerminalText.escaped(failure.message))")
      return failure.exitCode
    }
  }

  private func failure(of error: any Error) -> ToolFailure {
    if let failure = error as? ToolFailure { return failure }
    if let failure = translate(error) { return failure }
    if let error = error as? OutputError { return ToolFailure(.inputOutput, error.description) }
    return ToolFailure(.internalError, "unexpected error: \(error)")
  }
}
