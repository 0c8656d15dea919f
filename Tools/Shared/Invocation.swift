/// What a command is given when it runs: the values of its parameters, and where to print.
public struct Invocation: Sendable {
  /// Where the command prints.
  public let console: Console
  /// The words that named the command, the tool's name first.
  public let commandPath: [String]
  private let values: ParameterValues

  init(commandPath: [String], values: ParameterValues, console: Console) {
    self.commandPath = commandPath
    self.values = values
    self.console = console
  }

  /// The value of a parameter of this command or of one above it.
  ///
  /// - Precondition: the command or one above it declares this parameter.
  public subscript<P: Parameter>(parameter: P) -> P.Value {
    guard let value = values.value(of: parameter) else {
      let command = commandPath.joined(separator: " ")
      preconditionFailure(
        "'\(command)' does not declare '\(parameter.declaration.spelling)': add it to its parameters"
      )
    }
    return value
  }
}
